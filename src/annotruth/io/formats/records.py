"""A JSON list of plain records, each with an item, an annotator and a label."""

from __future__ import annotations

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.formats.source import Format, ParsedLabels, Source
from annotruth.io.formats.votes import counted
from annotruth.observations.covariates import find_time_columns
from annotruth.observations.frames import (
    LABEL_ROLES,
    TIME_ROLES,
    describe_columns,
    find_columns,
    is_platform_export,
    make_column,
)


def _recognise(source: Source) -> bool:
    if is_platform_export(source.first):
        return False
    try:
        find_columns(list(source.first), LABEL_ROLES, source.label_columns)
    except InputError:
        return False
    return True


def _read(source: Source) -> ParsedLabels:
    rows = list(source.records())
    names = list({name: None for row in rows for name in row})
    columns = find_columns(names, LABEL_ROLES, source.label_columns)
    given = {role: name for role, name in source.columns.items() if role in TIME_ROLES}
    times = find_time_columns(names, given, columns.values())
    table = {
        role: make_column(name, [row.get(name) for row in rows])
        for role, name in (*columns.items(), *((name, name) for name in times.values()))
    }
    return ParsedLabels(
        pa.table(table),
        columns=times,
        notes=(counted(len(rows), "record", "records"), describe_columns(columns, source.columns)),
    )


FORMATS = (Format("records", "JSON list of labels", _recognise, _read),)
