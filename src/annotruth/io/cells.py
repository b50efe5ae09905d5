"""Cells of a table that hold JSON, and what crowd-form of Mechanical Turk writes in them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError, shown
from annotruth.io.formats.source import Record
from annotruth.io.json_lines import is_deep

ANSWER_PREFIX = "Answer."
_FORM = "Answer.taskAnswers"


def load_cell(cell: Any, name: str, number: int) -> Any:
    """Return the JSON in a cell of a column; ``number`` is the row, for messages."""
    try:
        value = json.loads(cell) if cell else None
    except (ValueError, RecursionError, TypeError) as error:
        raise InputError(
            f"{name} in row {number} is {shown(cell)}, which is not JSON: export the file again"
        ) from error
    if is_deep([value]):
        raise InputError(f"{name} in row {number} is nested too deeply: export the file again")
    return value


def with_form_columns(table: pa.Table) -> pa.Table:
    """Return a table with what crowd-form writes as JSON in columns of its own."""
    if _FORM not in table.column_names:
        return table
    cells: list[Record] = []
    for number, cell in enumerate(table.column(_FORM).to_pylist(), start=1):
        entries = load_cell(cell, _FORM, number) or [{}]
        if not (isinstance(entries, list) and entries and isinstance(entries[0], dict)):
            raise InputError(
                f"{_FORM} in row {number} is {shown(cell)}, which is no list of an object: "
                "export the file again"
            )
        of_row: Record = {}
        for name, value in entries[0].items():
            inner = value if isinstance(value, dict) else {"": value}
            of_row |= {f"{name}.{key}".rstrip("."): each for key, each in inner.items()}
        cells.append(of_row)
    names = dict.fromkeys(f"{ANSWER_PREFIX}{name}" for row in cells for name in row)
    for name in (name for name in names if name not in table.column_names):
        values = [row.get(name.removeprefix(ANSWER_PREFIX)) for row in cells]
        texts = [None if each is None else str(each) for each in values]
        table = table.append_column(name, pa.array(texts, pa.string()))
    return table.drop_columns([_FORM])
