"""Cells of a table that hold JSON, and the answers of Mechanical Turk's crowd-form in them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError, shown
from annotruth.io.formats.source import Record
from annotruth.io.json_lines import is_deep

ANSWER_PREFIX = "Answer."
_TASK_ANSWERS = "Answer.taskAnswers"


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


def with_task_answers(table: pa.Table) -> pa.Table:
    """Return a table with the answers that crowd-form writes as JSON in columns of their own."""
    if _TASK_ANSWERS not in table.column_names:
        return table
    cells: list[Record] = []
    for number, cell in enumerate(table.column(_TASK_ANSWERS).to_pylist(), start=1):
        answers = load_cell(cell, _TASK_ANSWERS, number) or [{}]
        if not (isinstance(answers, list) and answers and isinstance(answers[0], dict)):
            raise InputError(
                f"{_TASK_ANSWERS} in row {number} is {shown(cell)}, which is no list of an object: "
                "export the file again"
            )
        of_row: Record = {}
        for name, value in answers[0].items():
            inner = value if isinstance(value, dict) else {"": value}
            of_row |= {f"{name}.{key}".rstrip("."): each for key, each in inner.items()}
        cells.append(of_row)
    names = dict.fromkeys(f"{ANSWER_PREFIX}{name}" for row in cells for name in row)
    for name in (name for name in names if name not in table.column_names):
        values = [row.get(name.removeprefix(ANSWER_PREFIX)) for row in cells]
        texts = [None if each is None else str(each) for each in values]
        table = table.append_column(name, pa.array(texts, pa.string()))
    return table.drop_columns([_TASK_ANSWERS])
