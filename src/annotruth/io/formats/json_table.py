"""Tables in one JSON object: by column or by row, as pandas writes them, and answers listed by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from annotruth.errors import InputError, option, shown
from annotruth.io.formats.plain import read_rows
from annotruth.io.formats.source import Format, Record, Source
from annotruth.observations.columns.names import LABEL_ROLES, find_columns
from annotruth.observations.options import ParsedLabels


def _table_rows(data: Any) -> list[Record] | None:
    """Return the rows of a table that is one JSON object; None for anything else."""
    if not isinstance(data, dict) or not data:
        return None
    if {"columns", "data"} <= data.keys() and isinstance(data["columns"], list):  # "split"
        return [dict(zip(data["columns"], row, strict=False)) for row in data["data"]]
    if {"schema", "data"} <= data.keys() and isinstance(data["data"], list):  # "table"
        return data["data"]
    values = list(data.values())
    if all(isinstance(column, dict) for column in values):
        if _has_columns(data):  # by column
            places = dict.fromkeys(place for column in values for place in column)
            return [{name: data[name].get(place) for name in data} for place in places]
        return values if _has_columns({n: None for row in values for n in row}) else None
    if all(isinstance(column, list) for column in values):
        if _has_columns(data) and len({len(column) for column in values}) == 1:
            return [dict(zip(data, row, strict=True)) for row in zip(*values, strict=True)]
        return _listed_answers(data)
    return None


def _listed_answers(data: Mapping[str, list[Any]]) -> list[Record] | None:
    """Return the rows of answers that are listed by item, or by annotator."""
    answers = [answer for column in data.values() for answer in column]
    if not answers or not all(isinstance(answer, dict) for answer in answers):
        return None
    names = {name: None for answer in answers for name in answer}
    for role, other in (("item", "annotator"), ("annotator", "item")):
        if _has_columns(names, (other, "label")) and not _has_columns(names, (role,)):
            return [{role: key, **answer} for key, column in data.items() for answer in column]
    return None


def _has_columns(names: Iterable[str], roles: Sequence[str] = LABEL_ROLES) -> bool:
    try:
        find_columns(list(names), roles)
    except InputError:
        return False
    return True


def _recognise(source: Source) -> bool:
    first = source.first
    is_nest = bool(first) and all(isinstance(each, dict | list) for each in first.values())
    is_named = "data" in first and not {"columns", "schema"}.isdisjoint(first)
    return (is_nest or is_named) and _table_rows(source.whole) is not None


def _read(source: Source) -> ParsedLabels:
    rows = _table_rows(source.document)
    if rows is None:
        raise InputError(
            f"the file is not a table by column or by row: pass another {option('input_format')}"
        )
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise InputError(f"row {number} is {shown(row)}, which is not an object")
    return read_rows(source, rows)


FORMATS = (Format("json-table", "JSON table", _recognise, _read),)
