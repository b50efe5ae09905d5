"""One row per answer and one column of 0 and 1 per label: answers are sets of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from annotruth.errors import InputError, listed
from annotruth.io.formats.source import Format, Record, Source
from annotruth.io.formats.votes import Votes, counted
from annotruth.observations.columns.names import KNOWN_NAMES, find_known, pass_columns, spelling
from annotruth.observations.options import ParsedLabels

_MIN_COLUMNS = 3  # fewer may be questions
_PAIRS = (("0", "1"), ("0.0", "1.0"), ("false", "true"), ("False", "True"), ("FALSE", "TRUE"))


def _indicators(source: Source, used: set[str]) -> dict[str, str]:
    """Return the columns of 0 and 1, or of another pair, and what stands for yes in them."""
    columns = list(zip(*source.rows[1:], strict=False)) if len(source.rows) > 1 else []
    found: dict[str, tuple[str, str]] = {}
    for name, cells in zip(source.names, columns, strict=False):
        pair = next((pair for pair in _PAIRS if set(cells) <= set(pair)), None)
        if pair is not None and name not in used:
            found[name] = pair
    if not found:
        return {}
    most = Counter(found.values()).most_common(1)[0][0]
    return {name: pair[1] for name, pair in found.items() if pair == most}


def _columns(source: Source) -> Mapping[str, str] | None:
    """Return the columns of the item and the annotator; None where they are not known."""
    given = source.columns
    by_id = [name for name in source.names if spelling(name) == "id"][:1]
    items = [given["item"]] if "item" in given else by_id
    items = items or find_known(KNOWN_NAMES["item"], source.names)
    people = [given["annotator"]] if "annotator" in given else []
    people = people or find_known(KNOWN_NAMES["annotator"], source.names)
    if len(items) != 1 or len(people) != 1:
        return None
    return {"item": items[0], "annotator": people[0]}


def _recognise(source: Source) -> bool:
    if source.kind == "json" or "label" in source.columns or source.read.question is not None:
        return False
    if find_known(KNOWN_NAMES["label"], source.names):
        return False
    columns = _columns(source)
    used = set(columns.values()) if columns else set()
    return columns is not None and len(_indicators(source, used)) >= _MIN_COLUMNS


def _read(source: Source) -> ParsedLabels:
    columns = _columns(source)
    found = _indicators(source, set(columns.values())) if columns else {}
    if columns is None or not found:
        ask = pass_columns({"item": "", "annotator": ""})
        raise InputError(f"no columns of 0 and 1 (found: {listed(source.names)}); {ask}")
    item, who = columns["item"], columns["annotator"]
    rows = source.table(list(dict.fromkeys([item, who, *found]))).to_pylist()
    for number, row in enumerate(rows, start=1):
        for name, yes in found.items():
            if str(row[name]) not in next(pair for pair in _PAIRS if yes in pair):
                raise InputError(
                    f"column {name!r} has {row[name]!r} in row {number}, not yes or no as others: "
                    f"{pass_columns({'label': ''})}"
                )
    traits = _traits(rows, who, found)
    found = {name: yes for name, yes in found.items() if name not in traits}
    votes = Votes()
    for row in rows:
        votes.add(
            row[item], row[who], [name for name, yes in found.items() if str(row[name]) == yes]
        )
    parsed = votes.parsed(
        counted(len(rows), "row"),
        f"item = {item}, annotator = {who}",
        f"left out as traits of annotators: {listed(traits)}" if traits else "",
        f"labels are columns {listed(found)}; for one of them {pass_columns({'label': ''})}",
    )
    return replace(parsed, from_text=source.from_text)


def _traits(rows: Sequence[Record], who: str, names: Iterable[str]) -> list[str]:
    """Return the columns that are constant for each annotator, but differ between annotators."""
    found = []
    for name in names:
        pairs = {(row[who], row[name]) for row in rows}
        n_people, n_values = (len({pair[k] for pair in pairs}) for k in (0, 1))
        if len(pairs) == n_people < len(rows) and n_values > 1:
            found.append(name)
    return found


FORMATS = (Format("indicators", "columns of 0 and 1", _recognise, _read),)
