"""The labels of one file in any format: a long table, a platform's export, a database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotruth.errors import InputError, is_database_url, is_url
from annotruth.io.batches import read_columns
from annotruth.io.content import DATABASE_TITLE, ContentKind, FileContent, read_content
from annotruth.io.options import ReadOptions
from annotruth.io.reading.long_table import (
    choose_long_table,
    label_builder,
    of_question,
    read_long_table,
    refuse_query,
)
from annotruth.labels.frames import to_arrow

if TYPE_CHECKING:
    from annotruth.io.formats.source import ParsedLabels
    from annotruth.io.sources import LabelFile


def parse_file(path: LabelFile, read: ReadOptions) -> ParsedLabels:
    """Return the labels of one of several files."""
    with local_copy(path, read.max_size) as file:
        return parse_opened(file, open_content(file, read), read)


def parse_frame(data: Any, read: ReadOptions) -> tuple[ParsedLabels, str]:
    """Return the rows of one question in a frame, and the name of the frame's library."""
    from annotruth.io.formats.source import ParsedLabels

    choose = partial(
        choose_long_table, label_builder(read), "arrow", replace(read, input_format="long")
    )
    table, frame = to_arrow(data, choose)
    table = table.select(choose(table.column_names))
    return of_question(ParsedLabels(table, columns=read.columns), read), frame


@contextmanager
def local_copy(source: LabelFile, max_size: str | int | None) -> Iterator[LabelFile]:
    """Return the source, or the temporary copy of a file elsewhere."""
    if not is_url(source) or is_database_url(source):
        yield source
        return
    from annotruth.io.remote import downloaded

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


def parse_opened(file: LabelFile, content: FileContent | None, read: ReadOptions) -> ParsedLabels:
    """Return the labels of a file that `open_content` opened."""
    from annotruth.io.formats.source import ParsedLabels

    table = None if content is None else read_long_table(content, read)
    if content is None or table is None:
        return parse_other_format(file, content, read)
    notes = tuple(filter(None, (content.sheet,)))
    parsed = ParsedLabels(table, read.columns, content.kind == "text", notes)
    return of_question(parsed, read)


def parse_other_format(
    source: LabelFile, content: FileContent | None, read: ReadOptions
) -> ParsedLabels:
    """Return the labels of a format that is named or recognised, or of JSON lines."""
    if is_database_url(source):
        return _parse_url(source, read)
    path = Path(source)
    parsed = parse_several(path, read) if content is None else None
    if parsed is None:
        content = content or read_content(path, max_size=read.max_size, sheet=read.query)
        parsed = _parse_content(path, content, read)
        parsed = replace(parsed, notes=(*parsed.notes, *filter(None, (content.sheet,))))
    for role in read.time_columns if parsed.title else ():
        if role not in parsed.table.column_names:
            raise InputError(
                f"the {role} is not read from a {parsed.title}: leave {role} out of columns "
                "(`--columns`)"
            )
    if read.covariates and parsed.title:
        raise InputError(
            f"covariates are columns of a long table, and this is a {parsed.title}: leave "
            "them out (`--covariates`)"
        )
    if parsed.title and "question" in (read.columns or {}):
        raise InputError(
            f"columns names a column of questions, and this is a {parsed.title}: leave it out "
            "(`--columns`), and name a question (`--question`)"
        )
    return parsed


def parse_several(path: Path, read: ReadOptions) -> ParsedLabels | None:
    """Return the labels of a folder or zip of one file per user, or of a Python file."""
    from annotruth.io import formats

    formats.check_name(read.input_format)
    return formats.read_several(path, max_size=read.max_size)


def _parse_content(path: Path, content: FileContent, read: ReadOptions) -> ParsedLabels:
    from annotruth.io import formats
    from annotruth.io.formats.source import ParsedLabels, Source

    formats.check_name(read.input_format)
    if content.kind in DATABASE_TITLE:
        from annotruth.io.databases import read_database

        choose = partial(_choose_in_database, content.kind, read)
        parsed = read_database(path, content.kind, read.query, choose, limit=content.limit)
        return of_question(replace(parsed, columns=read.columns), read)
    refuse_query(content, read)
    columns, categories = read.columns or {}, read.categories
    source = Source(path, content, columns, read.question, read.content, categories)
    if read.input_format not in (None, "long"):
        return formats.read_as(read.input_format, source)
    recognised = formats.recognise(source) if read.input_format is None else None
    if recognised is not None:
        return recognised
    choose = partial(choose_long_table, label_builder(read), source.kind, read)
    table = read_columns(source.content, choose, keep_codes=True)
    return of_question(ParsedLabels(table, columns=read.columns, from_text=source.from_text), read)


def _parse_url(url: LabelFile, read: ReadOptions) -> ParsedLabels:
    """Return the labels of a database server."""
    from annotruth.io.databases import read_database_url

    choose = partial(_choose_in_database, "sqlite", read)
    parsed = read_database_url(os.fspath(url), read.query, choose, max_size=read.max_size)
    return of_question(replace(parsed, columns=read.columns), read)


def _choose_in_database(kind: ContentKind, read: ReadOptions, names: list[str]) -> list[str]:
    return choose_long_table(label_builder(read), kind, read, names)
