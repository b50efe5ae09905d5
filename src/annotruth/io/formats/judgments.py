"""Comparisons of models by people, as data sets publish them: PandaLM, MultiPref, summaries, WMT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from annotruth.errors import ComparisonsError, InputError, function, shown
from annotruth.io.formats.source import Format, Record, Source
from annotruth.io.formats.votes import check_scalar, counted, mapping, sequence
from annotruth.observations.frames import make_column
from annotruth.observations.pairs.build import ParsedComparisons

_ROLES = ("left", "right", "annotator", "winner", "context")
_Row = tuple[Any, Any, Any, Any, Any]


def _parsed(title: str, rows: Sequence[_Row], *notes: str) -> ParsedComparisons:
    columns = zip(*rows, strict=True) if rows else [()] * len(_ROLES)
    by_role = {
        role: pa.chunked_array([make_column(role, list(map(check_scalar, values)))])
        for role, values in zip(_ROLES, columns, strict=True)
    }
    return ParsedComparisons(by_role, title=title, notes=notes)


def _read_no_labels(source: Source) -> NoReturn:
    """Refuse to read labels."""
    raise ComparisonsError(
        f"these are comparisons of pairs, not labels: rank them with {function('rank')}"
    )


def _outcome(value: Any, outcomes: Mapping[Any, str], where: str) -> str | None:
    """Return the outcome that a value stands for, None for a missing one."""
    if value is None or value == "":
        return None
    if isinstance(value, bool | list | dict) or value not in outcomes:
        raise InputError(
            f"{where} is {shown(value)}: it must be one of {', '.join(map(str, outcomes))}"
        )
    return outcomes[value]


# PandaLM: the pair in one field, the votes of each annotator in another.

_PANDALM = {"cmp_key", "response1", "response2", "annotator1"}
_PANDALM_OUTCOMES = {0: "tie", 1: "left", 2: "right"}


def _read_pandalm(source: Source) -> ParsedComparisons:
    rows: list[_Row] = []
    records = list(source.records())
    for record in records:
        left, right = _sides(str(record.get("cmp_key")))
        for name in sorted(name for name in record if name.startswith("annotator")):
            winner = _outcome(record[name], _PANDALM_OUTCOMES, name)
            rows.append((left, right, name, winner, record.get("idx")))
    return _parsed("PandaLM's test set", rows, counted(len(records), "comparison"), "0 is a tie")


def _sides(key: str) -> tuple[str, str]:
    """Return the two models of a key such as a_b; a name with an underscore makes it unclear."""
    left, _, right = key.partition("_")
    if not right or "_" in right:
        raise InputError(
            f"cmp_key is {shown(key)}, which are not two names joined by one underscore"
        )
    return left, right


# MultiPref: votes of workers and of experts in lists, A or B being the better.

_MULTIPREF = ("normal_worker_annotations", "expert_worker_annotations")
_MULTIPREF_OUTCOMES = {
    "A-is-clearly-better": "left",
    "A-is-slightly-better": "left",
    "Tie": "tie",
    "B-is-slightly-better": "right",
    "B-is-clearly-better": "right",
}


def _read_multipref(source: Source) -> ParsedComparisons:
    rows: list[_Row] = []
    n_records = 0
    for record in source.records():
        n_records += 1
        for name in _MULTIPREF:
            for one in sequence(record.get(name), name):
                vote = mapping(one, "an annotation")
                winner = _outcome(vote.get("overall_pref"), _MULTIPREF_OUTCOMES, "overall_pref")
                pair = record.get("model_a"), record.get("model_b")
                rows.append((*pair, vote.get("evaluator"), winner, record.get("prompt_id")))
    return _parsed("MultiPref", rows, counted(n_records, "comparison"), "question overall_pref")


# Summarize from feedback: two summaries, and which was chosen.

_SUMMARIES = {"summaries", "choice", "worker"}
_CHOICES = {0: "left", 1: "right"}


def _read_summaries(source: Source) -> ParsedComparisons:
    rows: list[_Row] = []
    for record in source.records():
        both = sequence(record.get("summaries"), "the summaries")
        if len(both) != 2:
            raise InputError(f"a comparison has {len(both)} summaries, not two: export it again")
        left, right = (mapping(one, "a summary").get("policy") for one in both)
        about: Record = mapping(record.get("info") or {}, "info")
        winner = _outcome(record.get("choice"), _CHOICES, "choice")
        rows.append((left, right, record.get("worker"), winner, about.get("id")))
    return _parsed("summaries by policy", rows, counted(len(rows), "comparison"))


# WMT: a rank for each of two systems, 1 being the best.

_WMT = {"judgeID", "system1Id", "system1rank", "system2Id", "system2rank"}


def _read_wmt(source: Source) -> ParsedComparisons:
    if "system3Id" in source.names:
        raise InputError(
            "each row ranks more than two systems: write one row per system, with the columns "
            "item, annotator, rank and ranking"
        )
    segment = [name for name in ("segmentId", "srcIndex") if name in source.names][:1]
    names = ["system1Id", "system2Id", "judgeID", "system1rank", "system2rank", *segment]
    rows: list[_Row] = []
    for number, row in enumerate(source.table(names).to_pylist(), start=1):
        ranks = [_rank(row[name], number) for name in ("system1rank", "system2rank")]
        winner = None
        if min(ranks) > 0:  # -1 is no rank
            winner = "tie" if ranks[0] == ranks[1] else "left" if ranks[0] < ranks[1] else "right"
        about = row[segment[0]] if segment else None
        rows.append((row["system1Id"], row["system2Id"], row["judgeID"], winner, about))
    return _parsed("WMT rankings", rows, counted(len(rows), "pair"), "rank 1 is the best")


def _rank(cell: Any, row: int) -> int:
    try:
        return int(cell)
    except (TypeError, ValueError):
        raise InputError(f"a rank in row {row} is {shown(cell)}, not a whole number") from None


FORMATS = (
    Format(
        "pandalm", "PandaLM", lambda s: set(s.first) >= _PANDALM, _read_no_labels, _read_pandalm
    ),
    Format(
        "multipref",
        "MultiPref",
        lambda s: set(s.first) >= set(_MULTIPREF),
        _read_no_labels,
        _read_multipref,
    ),
    Format(
        "summaries",
        "summaries by policy",
        lambda s: set(s.first) >= _SUMMARIES,
        _read_no_labels,
        _read_summaries,
    ),
    Format("wmt", "WMT rankings", lambda s: set(s.names) >= _WMT, _read_no_labels, _read_wmt),
)
