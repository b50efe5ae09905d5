"""Label Studio's JSON-MIN and CSV exports: one row per annotation, questions among the data."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

from annotruth.errors import InputError, listed
from annotruth.io.formats.label_studio import CLASS_KINDS, is_region, join_path
from annotruth.io.formats.source import (
    ANNOTATORS_FIELD,
    ITEM_FIELD,
    Format,
    ParsedLabels,
    Record,
    Source,
)
from annotruth.io.formats.votes import (
    Votes,
    chosen,
    counted,
    differing,
    pass_question,
    refuse_regions,
)
from annotruth.io.json_lines import is_deep
from annotruth.observations.options import ALL_QUESTIONS

_OURS = {"annotator", "annotation_id", "lead_time"}
_KNOWN = _OURS | {"id", "created_at", "updated_at", "agreement", ITEM_FIELD, ANNOTATORS_FIELD}


def _recognise(source: Source) -> bool:
    return set(source.first) >= _OURS or set(source.names) >= _OURS


def _read(source: Source) -> ParsedLabels:
    rows = list(source.records()) if source.kind == "json" else _rows_of_table(source)
    question = _question(rows, source.question)
    votes = Votes()
    for row in rows:
        times = {"time": row.get("created_at"), "seconds": row.get("lead_time")}
        votes.add(_item(row), row.get("annotator"), _unwrap(row.get(question)), times=times)
    parsed = votes.parsed(counted(len(rows), "annotation", "annotations"), f"question {question}")
    return replace(parsed, from_text=source.from_text)


def _item(row: Record) -> Any:
    """Return the item of a row: the one that annotruth made its task for, else the task's id."""
    return row.get(ITEM_FIELD, row.get("id"))


def _rows_of_table(source: Source) -> list[Record]:
    source.check_cells()
    rows: list[Record] = source.table(list(source.names)).to_pylist()
    return [
        {name: value if name in _KNOWN else _parse_cell(value) for name, value in row.items()}
        for row in rows
    ]


def _parse_cell(value: Any) -> Any:
    """Return the value of a cell, which is JSON where an answer is more than one text."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):  # text that only begins like JSON
            parsed = json.loads(value)
            return value if is_deep([parsed]) else parsed
    return value


def _question(rows: list[Record], wanted: str | None) -> str:
    """Return the question: a field that differs between the annotations of an item is not data."""
    names = list(dict.fromkeys(name for row in rows for name in row if name not in _KNOWN))
    named = wanted not in (None, ALL_QUESTIONS)
    if named and wanted not in names:
        raise InputError(f"no question {wanted!r} (found: {listed(names)})")
    regions = {name: kind for row in rows for name in names if (kind := _region(row.get(name)))}
    if wanted in regions:
        refuse_regions(wanted, regions[wanted])
    if wanted is not None and named:
        return wanted
    classes = [name for name in names if name not in regions]
    possible = classes if len(names) == 1 else differing(rows, _item, classes)
    if len(possible) == 1 or (possible and wanted == ALL_QUESTIONS):
        return chosen(possible, wanted, "question")
    if regions and not possible:
        refuse_regions(*next(iter(regions.items())))
    possible = possible or classes
    raise InputError(
        f"the question could be any of {listed(possible)}, as this export does not mark "
        f"which fields are labels: {pass_question(possible[0])}"
        if possible
        else "there is no question with a label: nothing to fit"
    )


def _region(value: Any) -> str:
    """Return the kind of the regions that a field holds, an empty text if it holds none."""
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict):
            kind = next((key for key in one if key.endswith("labels")), "")
            if is_region(kind, one):
                return kind or "regions without a label"
    return ""


def _unwrap(value: Any) -> Any:
    """Return the label in a value: text, ``{"choices": [..]}``, or ``[{"rating": 4}]``."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        for kind in CLASS_KINDS:
            if kind in value:
                value = value[kind]
                break
    return list(map(join_path, value)) if isinstance(value, list) else value


FORMATS = (Format("label-studio-min", "Label Studio short export", _recognise, _read),)
