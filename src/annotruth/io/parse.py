"""What one file holds, in any format: a table, a platform's export, the rows of a database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError, is_database_url, is_url, option
from annotruth.io.batches import read_columns, read_start
from annotruth.io.content import DATABASE_TITLE, FileContent, read_content
from annotruth.io.databases import read_database, read_database_url
from annotruth.io.formats.source import Source
from annotruth.io.json_lines import is_json_list
from annotruth.io.kinds import Kind
from annotruth.io.sources import LabelFile, file_errors_reported
from annotruth.observations.columns.candidates import CANDIDATE_ROWS
from annotruth.observations.columns.names import ColumnsNotFoundError
from annotruth.observations.encode import restore_text
from annotruth.observations.options import ReadOptions


@contextmanager
def local_copy(source: LabelFile, max_size: str | int | None) -> Iterator[LabelFile]:
    """Return the source, or the temporary copy of a file elsewhere."""
    if not is_url(source) or is_database_url(source):
        yield source
        return
    from annotruth.io.remote import downloaded  # loads Python's client of HTTP

    with downloaded(os.fspath(source), max_size=max_size) as path:
        yield path


def open_content(source: LabelFile, read: ReadOptions) -> FileContent | None:
    """Return the content of a file; None for what may hold several, Python files and databases."""
    if is_database_url(source):
        return None
    path = Path(source)
    if path.suffix.lower() in (".py", ".zip") or path.is_dir():
        return None
    return read_content(path, max_size=read.max_size, sheet=read.query)


def parse_opened(file: LabelFile, content: FileContent | None, kind: Kind) -> Any:
    """Return what a file holds that `open_content` opened."""
    read = kind.read
    if is_database_url(file):
        table, note = read_database_url(
            os.fspath(file), read.query, kind.choose, max_size=read.max_size
        )
        return kind.parse(table, note=note)
    path = Path(file)
    if content is None:
        several = kind.read_several(path)
        if several is not None:
            return several
        content = read_content(path, max_size=read.max_size, sheet=read.query)
    if content.kind in DATABASE_TITLE:
        limit = content.limit
        table, note = read_database(path, content.kind, read.query, kind.choose, limit=limit)
        return kind.parse(table, note=note)
    if read.query is not None and not content.sheet:
        raise InputError(f"this is not a database or workbook: leave out {option('query')}")
    source = Source(path, content, read)
    parsed: Any = kind.recognise(source)
    if parsed is None and content.kind == "json" and is_json_list(content.data):
        parsed = _parse_records(source, kind)
    if parsed is None:
        from_text = content.kind == "text"
        choose = partial(kind.choose, from_text=from_text)
        load = partial(read_columns, content, lambda names: names, keep_codes=True)
        try:
            table = read_columns(content, choose, keep_codes=True)
            kind.check_label(table.column_names, partial(read_start, content, CANDIDATE_ROWS))
            parsed = kind.parse(table, from_text=from_text, note=content.sheet)
            return _with_points(parsed, content, kind)
        except ColumnsNotFoundError as error:
            parsed = kind.recognise(source, is_long=False)
            if parsed is None:
                parsed = kind.parse_by_values(load, error, from_text=from_text)
    return _with_points(replace(parsed, notes=(*parsed.notes, content.sheet)), content, kind)


def _with_points(parsed: Any, content: FileContent, kind: Kind) -> Any:
    """Return what a file holds, with decimal points where a table has decimal commas."""
    if content.kind != "text" or content.sheet:
        return parsed
    return kind.with_decimal_points(parsed, content.data)


def _parse_records(source: Source, kind: Kind) -> Any:
    """Return the labels in a JSON list of objects, found by their values; None if none are found."""
    try:
        kind.choose(list(source.first))
    except ColumnsNotFoundError as error:
        try:
            return kind.parse_by_values(source.record_table, error)
        except ColumnsNotFoundError as proposal:
            if proposal is not error:
                raise
    return None


def load_table(data: Any, *, max_size: str | int | None = None) -> Any:
    """Return the table in a file; whatever is not a path is returned as it is."""
    return read_table(data, max_size=max_size) if isinstance(data, str | Path) else data


def read_table(
    path: str | os.PathLike[str], *, max_size: str | int | None = None, sheet: str | None = None
) -> pa.Table:
    """Read all columns of a long table, in the formats of `read_labels`; those of a CSV as text.

    Of a workbook it is that ``sheet``, by default the first.
    """
    with file_errors_reported(path), local_copy(path, max_size) as file:
        content = read_content(Path(file), max_size=max_size, sheet=sheet)
        if content.kind == "json" and is_json_list(content.data):
            return Source(Path(file), content).record_table()
        table = read_columns(content, lambda names: names)
        if content.kind != "text":
            return table
        return pa.table([restore_text(column) for column in table.columns], table.column_names)
