"""A JSON list of plain records, each with an item, an annotator and a label."""

from __future__ import annotations

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.formats.source import Format, ParsedLabels, Record, Source
from annotruth.io.formats.votes import counted
from annotruth.labels.frames import (
    LABEL_ROLES,
    describe_columns,
    find_columns,
    is_platform_export,
    make_column,
)


def _recognise(source: Source) -> bool:
    if is_platform_export(source.first):
        return False
    try:
        _columns(source, source.first)
    except InputError:
        return False
    return True


def _read(source: Source) -> ParsedLabels:
    rows = list(source.records())
    columns = _columns(source, {name: None for row in rows for name in row})
    table = {
        role: make_column(name, [row.get(name) for row in rows]) for role, name in columns.items()
    }
    return ParsedLabels(
        pa.table(table),
        notes=(counted(len(rows), "record", "records"), describe_columns(columns, source.columns)),
    )


def _columns(source: Source, record: Record) -> dict[str, str]:
    return find_columns(list(record), LABEL_ROLES, source.columns)


FORMATS = (Format("records", "JSON list of labels", _recognise, _read),)
