"""Which columns of a table are the two items, the annotator and the winner."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from annotruth.errors import InputError, LabelsError, function, listed, shorten
from annotruth.observations.columns.names import (
    KNOWN_NAMES,
    LABEL_ROLES,
    ColumnsNotFoundError,
    KnownNames,
    check_further_columns,
    find_columns,
    find_known,
    pass_columns,
)

Shape = Literal["sides", "winners", "ranks", "rank columns", "ranking"]

NO_ANNOTATOR = "none"
"""The name of the annotator's column where a table has none: ``--columns annotator=none``."""

# Column names that need no option, as in `annotruth.observations.frames.KNOWN_NAMES`.
_NAMES: KnownNames = {
    "left": (("left",),),
    "right": (("right",),),
    "winner": (
        ("winner",),
        ("outcome", "preferred", "preference", "pairwise"),
        ("label", "answer", "vote", "choice", "response", "result"),
    ),
    "loser": (("loser",),),
    "tie": (("tie", "is_tie", "draw"),),
    "annotator": (
        KNOWN_NAMES["annotator"][0],
        (*KNOWN_NAMES["annotator"][1], "voter", "voter_id", "participant", "participant_id"),
        KNOWN_NAMES["annotator"][2],
    ),
    "context": (
        ("context", "prompt", "scene", "question"),
        ("context_id", "prompt_id", "scene_id", "question_id"),
    ),
    "order": (("order", "position", "trial"),),
    "time": (("time", "timestamp", "tstamp", "created_at", "date"),),
    "item": KNOWN_NAMES["item"],
    "rank": (("rank",),),
    "ranking": (("ranking",), ("ranking_id",)),
}
ROLES: Mapping[Shape, tuple[str, ...]] = {
    "sides": ("left", "right", "annotator", "winner"),
    "winners": ("winner", "loser", "annotator"),
    "ranks": ("item", "annotator", "rank"),
    "rank columns": ("annotator",),
    "ranking": ("annotator", "ranking"),
}
"""The roles that a table of each shape must have."""
_OPTIONAL = ("context", "order", "time")
FURTHER = "further:"
"""Before the name of a further column in the role that it has."""

OF_BOTH_SIDES = ":sides"
"""After the name that two further columns have in common, such as cost of cost_a and cost_b."""
_RANKINGS = "rankings, each as all pairs of its items"
_SHAPE_NOTES: Mapping[Shape, str] = {
    "rank columns": "ranks of {n} items per row, each row as up to {n_pairs} pairs",
    "ranks": _RANKINGS,
    "ranking": _RANKINGS,
    "winners": "winners and losers, sides not known",
}
_SHAPE_OF_ROLE: Mapping[str, Shape] = {"loser": "winners", "rank": "ranks", "ranking": "ranking"}

# Two columns are the sides of a pair if they differ only in these: model_a and model_b.
_MARKS = (("left", "right"), ("a", "b"), ("1", "2"), ("first", "second"))
# What columns of sides hold, the most specific first: names of systems rather than what they said.
_STEMS = ("", "model", "item", "system", "option", "generator")
_RANK_COLUMN = re.compile(r"rank[ _-]?(\d+)")


@dataclass(frozen=True)
class PairColumns:
    """The columns of a table of comparisons."""

    shape: Shape
    """What a row is: two sides and the winner, a winner and a loser, the rank of an item, or a whole
    ranking, in one column or in one column per rank."""
    by_role: Mapping[str, str]
    """The column of each role; without the annotator where the caller says there is none. Further
    columns that are kept have the role `FURTHER` and their name."""
    ranked: tuple[str, ...] = ()
    """The columns that hold the items of a ranking, best first."""
    covariates: tuple[str, ...] = ()
    """Further columns, which are numbers."""
    read_as: str = ""
    """What was taken for what, for the summary."""

    def names(self) -> list[str]:
        """Return the columns to read."""
        return list(dict.fromkeys([*self.by_role.values(), *self.ranked, *self.covariates]))


def find_pair_columns(
    names: Sequence[str],
    given: Mapping[str, str] | None = None,
    covariates: Sequence[str] = (),
    further: Sequence[str] = (),
) -> PairColumns:
    """Return the columns of a table of comparisons; refuse one in which they are not found."""
    given = dict(given or {})
    spelled = {_spelling(name): name for name in reversed(names)}
    shape = _find_shape(spelled, given)
    ranked = _rank_columns(names) if shape == "rank columns" else ()
    may_have = (
        *_OPTIONAL,
        *(["tie"] if shape == "winners" else []),
        *(["ranking"] if shape in ("sides", "winners") else []),
    )
    optional = [role for role in may_have if role in given or find_known(_NAMES[role], names)]
    roles = [*ROLES[shape], *optional]
    has_annotator = given.get("annotator") != NO_ANNOTATOR or NO_ANNOTATOR in names
    if not has_annotator:
        roles.remove("annotator")
    asked = {role: name for role, name in given.items() if has_annotator or role != "annotator"}
    known = {**_NAMES, **(_find_sides(names) if shape == "sides" else {})}
    found = _find(names, roles, asked, optional, known)
    check_further_columns("covariate", names, covariates, list(found.values()))
    kept = _further_columns(names, further)
    notes = [
        _SHAPE_NOTES.get(shape, "").format(
            n=len(ranked), n_pairs=len(ranked) * (len(ranked) - 1) // 2
        ),
        *(
            f"{role} = {shorten(name)}"
            for role, name in found.items()  # those that are a guess, and matter
            if role not in given and _spelling(name) != role and role not in ("order", "time")
        ),
        "" if has_annotator else "no annotators: all comparisons count as one annotator's",
    ]
    read_as = ", ".join(note for note in notes if note)
    return PairColumns(shape, {**found, **kept}, ranked, tuple(covariates), read_as)


def _further_columns(names: Sequence[str], further: Sequence[str]) -> dict[str, str]:
    """Return the further columns by role; refuse those that are missing."""
    kept = {}
    for name in further:
        if not name.endswith(OF_BOTH_SIDES):
            check_further_columns("further column", names, [name], [])
            kept[f"{FURTHER}{name}"] = name
            continue
        stem = name.removesuffix(OF_BOTH_SIDES)
        pair = dict(_side_pairs(names)).get(_spelling(stem))
        if pair is None:
            raise InputError(
                f"no two columns such as {stem}_a and {stem}_b, one per item (found: {listed(names)})"
            )
        kept |= {f"{FURTHER}{stem}:{side}": c for side, c in zip(_MARKS[0], pair, strict=True)}
    return kept


def _find_shape(spelled: Mapping[str, str], given: Mapping[str, str]) -> Shape:
    """Return the shape that the given roles name, or else the one that the columns' names do."""
    if {"left", "right"} & given.keys():
        return "sides"
    names = list(spelled)
    is_pair = "loser" in spelled or next(_side_pairs(names), None) is not None
    for role, shape in _SHAPE_OF_ROLE.items():
        # Beside two items, a ranking is the one that a vote follows from.
        if role in given and not (role == "ranking" and is_pair):
            return shape
    if len(_rank_columns(names)) > 1:
        return "rank columns"
    if next(_side_pairs(names), None) is not None:
        return "sides"
    if "loser" in spelled:
        return "winners"
    if "rank" in spelled:
        return "ranks"
    return "ranking" if "ranking" in spelled else "sides"


def _find(
    names: Sequence[str],
    roles: list[str],
    given: Mapping[str, str],
    optional: Sequence[str],
    known: KnownNames,
) -> dict[str, str]:
    """Return the column of each role; an optional one only where a single column could be it."""
    needed = [role for role in roles if role not in optional]
    unknown = sorted(given.keys() - set(roles))
    if unknown:
        raise InputError(
            f"columns has the unknown role {unknown[0]!r}: the roles are "
            f"{', '.join(dict.fromkeys([*needed, *_OPTIONAL]))}"
        )
    of_needed = {role: name for role, name in given.items() if role in needed}
    try:
        found = find_columns(names, needed, of_needed, known)
    except InputError as error:
        _refuse_labels(names, given)
        message = f"{error}{_without_annotator(names, needed, given, known)}"
        if not isinstance(error, ColumnsNotFoundError):
            raise InputError(message) from None
        raise ColumnsNotFoundError(message, error.problem, error.known) from None
    for role in optional:
        match = [given[role]] if role in given else find_known(_NAMES[role], names)
        if role in given and given[role] not in names:
            raise InputError(f"no column {given[role]!r} (found: {listed(names)})")
        if len(match) == 1 and match[0] not in found.values():
            found[role] = match[0]
    return found


def _without_annotator(
    names: Sequence[str], needed: list[str], given: Mapping[str, str], known: KnownNames
) -> str:
    """Return what to do where the annotator is all that is missing."""
    others = [role for role in needed if role != "annotator"]
    if "annotator" not in needed or "annotator" in given:
        return ""
    of_others = {role: name for role, name in given.items() if role in others}
    try:
        find_columns(names, others, of_others, known)
    except InputError:
        return ""
    return (
        "; if there is none, all comparisons can count as one annotator's: "
        f"{pass_columns({'annotator': NO_ANNOTATOR})}"
    )


def _refuse_labels(names: Sequence[str], given: Mapping[str, str]) -> None:
    """Refuse a table of labels."""
    if given:
        return
    try:
        columns = find_columns(names, LABEL_ROLES)
    except InputError:
        return
    which = ", ".join(f"{role} = {name}" for role, name in columns.items())
    raise LabelsError(
        f"these are labels ({which}), not comparisons of pairs: fit them with {function('fit')}"
    )


def _find_sides(names: Sequence[str]) -> KnownNames:
    """Return the names of the columns of both sides; none where several pairs could be them."""
    pairs = dict(_side_pairs(names))
    stem = next((stem for stem in _STEMS if stem in pairs), None)
    if stem is None and len(pairs) != 1:
        return {}
    left, right = pairs[stem] if stem is not None else next(iter(pairs.values()))
    return {"left": ((left.strip().lower(),),), "right": ((right.strip().lower(),),)}


def _side_pairs(names: Sequence[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Return pairs of columns that differ only in left and right, a and b, or 1 and 2.

    Each comes with what they have in common, such as model of model_a and model_b.
    """
    parts = {_split(name): name for name in reversed(names)}
    for (stem, mark), name in list(parts.items())[::-1]:
        for first, second in _MARKS:
            if mark == first and (stem, second) in parts:
                yield stem, (name, parts[stem, second])


def _split(name: str) -> tuple[str, str]:
    """Return what a column name says beside its side, and its side; an empty text if it has none."""
    spelling = _spelling(name)
    for mark in (mark for pair in _MARKS for mark in pair):
        if spelling == mark:
            return "", mark
        if spelling.endswith(f"_{mark}") or (mark.isdigit() and spelling.endswith(mark)):
            return spelling.removesuffix(mark).rstrip("_"), mark
        if spelling.startswith(f"{mark}_") and len(mark) > 1:
            return spelling.removeprefix(f"{mark}_"), mark
    return spelling, ""


def _rank_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that hold the item of each rank, best first."""
    matches = [(_RANK_COLUMN.fullmatch(name.strip().lower()), name) for name in names]
    ranked = sorted((int(match[1]), name) for match, name in matches if match)
    return tuple(name for _, name in ranked)


def _spelling(name: str) -> str:
    return re.sub(r"[ -]+", "_", name.strip().lower())
