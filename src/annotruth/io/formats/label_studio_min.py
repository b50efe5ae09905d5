"""Label Studio's JSON-MIN and CSV exports: one row an annotation, questions among the data."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from annotruth.errors import InputError
from annotruth.io.formats.base import Format, ParsedLabels
from annotruth.io.formats.source import Record, Source
from annotruth.io.formats.votes import Votes, counted
from annotruth.labels.formatting import listed

_OURS = {"annotator", "annotation_id", "lead_time"}
_KNOWN = _OURS | {"id", "created_at", "updated_at", "agreement"}


def _recognise(source: Source) -> bool:
    return set(source.first) >= _OURS or set(source.names) >= _OURS


def _read(source: Source) -> ParsedLabels:
    rows = list(source.records()) if source.kind == "json" else _rows_of_table(source)
    question = _question(rows, source.question)
    votes = Votes()
    for row in rows:
        votes.add(row.get("id"), row.get("annotator"), _answer(row.get(question)))
    return votes.found(counted(len(rows), "annotation", "annotations"), f"question {question}")


def _rows_of_table(source: Source) -> list[Record]:
    table, _ = source.table(list(source.names))
    rows: list[Record] = table.to_pylist()
    return rows


def _question(rows: list[Record], wanted: str | None) -> str:
    """Find the question: what differs between the annotations of one item is no data of it."""
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
        f"the question could be any of {listed(among)}, for this export does not say "
        "which fields are answers: say which, question NAME"
    )


def _differing(rows: list[Record], names: list[str]) -> Iterator[str]:
    said: dict[tuple[Any, str], set[str]] = defaultdict(set)
    for row in rows:
        for name in names:
            if row.get(name) is not None:
                said[str(row.get("id")), name].add(json.dumps(row[name], sort_keys=True))
    return (
        name for name in names if any(len(s) > 1 for (_, whose), s in said.items() if whose == name)
    )


def _answer(value: Any) -> Any:
    """Unwrap an answer: a word, ``{"choices": [..]}``, or ``[{"rating": 4}]``."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            value = json.loads(value)
        except ValueError:
            return value  # a word that only begins like JSON
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        for kind in ("choices", "rating", "number"):
            if kind in value:
                return value[kind]
    return value


FORMATS = (Format("label-studio-min", "Label Studio short export", _recognise, _read),)
