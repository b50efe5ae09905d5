"""Label Studio's JSON-MIN and CSV exports: one row per annotation, questions among the data."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from annotruth.errors import InputError, listed
from annotruth.io.formats.source import (
    ANNOTATORS_FIELD,
    ITEM_FIELD,
    Format,
    ParsedLabels,
    Record,
    Source,
)
from annotruth.io.formats.votes import Votes, counted

_OURS = {"annotator", "annotation_id", "lead_time"}
_KNOWN = _OURS | {"id", "created_at", "updated_at", "agreement", ITEM_FIELD, ANNOTATORS_FIELD}


def _recognise(source: Source) -> bool:
    return set(source.first) >= _OURS or set(source.names) >= _OURS


def _read(source: Source) -> ParsedLabels:
    rows = list(source.records()) if source.kind == "json" else _rows_of_table(source)
    question = _question(rows, source.question)
    votes = Votes()
    for row in rows:
        votes.add(_item(row), row.get("annotator"), _unwrap(row.get(question)))
    return votes.parsed(counted(len(rows), "annotation", "annotations"), f"question {question}")


def _item(row: Record) -> Any:
    """Return the item of a row: the one that annotruth made its task for, else the task's id."""
    return row.get(ITEM_FIELD, row.get("id"))


def _rows_of_table(source: Source) -> list[Record]:
    table = source.table(list(source.names))
    rows: list[Record] = table.to_pylist()
    return rows


def _question(rows: list[Record], wanted: str | None) -> str:
    """Return the question: a field that differs between the annotations of an item is not data."""
    names = dict.fromkeys(name for row in rows for name in row if name not in _KNOWN)
    if wanted is not None and wanted not in names:
        raise InputError(f"no question {wanted!r} (found: {listed(names)})")
    if wanted is not None:
        return wanted
    differing = list(names) if len(names) == 1 else list(_differing(rows, list(names)))
    if len(differing) == 1:
        return differing[0]
    among = differing or list(names)
    raise InputError(
        f"the question could be any of {listed(among)}, as this export does not mark "
        "which fields are labels: pass question=NAME (`--question NAME`)"
    )


def _differing(rows: list[Record], names: list[str]) -> Iterator[str]:
    values: dict[tuple[Any, str], set[str]] = defaultdict(set)
    for row in rows:
        for name in names:
            if row.get(name) is not None:
                values[str(_item(row)), name].add(json.dumps(row[name], sort_keys=True))
    return (
        name
        for name in names
        if any(len(seen) > 1 for (_, field), seen in values.items() if field == name)
    )


def _unwrap(value: Any) -> Any:
    """Return the label in a value: text, ``{"choices": [..]}``, or ``[{"rating": 4}]``."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            value = json.loads(value)
        except ValueError:
            return value  # text that only begins like JSON
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        for kind in ("choices", "rating", "number"):
            if kind in value:
                return value[kind]
    return value


FORMATS = (Format("label-studio-min", "Label Studio short export", _recognise, _read),)
