"""The labels of one file in any format: a long table, a platform's export, a database."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from annotruth.errors import InputError, is_database_url, is_url
from annotruth.io.batches import read_batches, read_columns
from annotruth.io.content import DATABASE_TITLE, ContentKind, FileContent, read_content
from annotruth.io.formats.source import Source
from annotruth.io.json_lines import is_json_list, table_of_records
from annotruth.io.sources import (
    LabelFile,
    check_same_columns,
    check_same_kind,
    describe_files,
    file_errors_reported,
    source_name,
)
from annotruth.observations.build import LabelBuilder
from annotruth.observations.disk import Disk, parse_size
from annotruth.observations.encode import restore_text
from annotruth.observations.frames import (
    LABEL_ROLES,
    is_known_name,
    is_platform_export,
    refuse_comparisons,
    to_arrow,
)
from annotruth.observations.options import ReadOptions
from annotruth.observations.table import MappedLabels

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
    parsed = ParsedLabels(table, read.columns, from_text=content.kind == "text", notes=notes)
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


_NO_HEADER = "; if the first row holds no names, put one before it: item,annotator,label"


class _NoLongTableError(InputError):
    """The columns of a long table are missing."""


def read_long_table(content: FileContent, read: ReadOptions) -> pa.Table | None:
    """Return the columns of a long table; None for another format, named or to be recognised."""
    if read.input_format not in (None, "long") or content.kind in DATABASE_TITLE:
        return None
    refuse_query(content, read)
    # The keys of JSON lines are known only once they are read, so other formats are tried first.
    if read.input_format is None and content.kind == "json":
        return None
    try:
        choose = partial(choose_long_table, label_builder(read), content.kind, read)
        return read_columns(content, choose, keep_codes=True)
    except _NoLongTableError:
        if read.input_format is None:
            return None
        raise


def choose_long_table(
    builder: LabelBuilder, kind: ContentKind, read: ReadOptions, names: list[str]
) -> list[str]:
    """Choose the columns of a long table."""
    names_all_roles = set(read.columns or ()) >= set(LABEL_ROLES)
    if read.input_format is None and not names_all_roles and is_platform_export(names):
        raise _NoLongTableError(
            "this is a platform's export, not a table of one row per label; to read it so, pass "
            "columns={'item': NAME, 'annotator': NAME, 'label': NAME} "
            "(`--columns item=NAME,annotator=NAME,label=NAME`)"
        )
    if read.input_format is None:
        refuse_comparisons(names, read.columns)  # before another format takes them for labels
    question = _question_column(read, names)
    try:
        columns = builder.choose_columns([name for name in names if name != question])
    except InputError as error:
        no_names = kind == "text" and not read.columns and not any(map(is_known_name, names))
        raise _NoLongTableError(f"{error}{_NO_HEADER if no_names else ''}") from None
    if question is not None:
        return [*columns, question]
    if read.question is not None:
        from annotruth.observations.questions import no_questions_error

        raise no_questions_error()
    return columns


def _question_column(read: ReadOptions, names: list[str]) -> str | None:
    """Return the column that names the question of each label; None if there is none."""
    if not asks_question(read):
        return None
    from annotruth.observations.questions import find_question_column

    return find_question_column(names, read.columns)


def label_builder(read: ReadOptions) -> LabelBuilder:
    """Return a builder of the labels of one question, or of the only one."""
    if asks_question(read):
        from annotruth.observations.questions import without_question_column

        read = without_question_column(read)
    return LabelBuilder(read)


def asks_question(read: ReadOptions) -> bool:
    """Return whether a table may have several questions: one is named, or their column is."""
    return read.question is not None or "question" in (read.columns or {})


def of_question(parsed: ParsedLabels, read: ReadOptions) -> ParsedLabels:
    """Return the rows of one question, where a long table has several."""
    if not asks_question(read):
        return parsed
    from annotruth.io.formats.votes import chosen
    from annotruth.observations import questions

    table = parsed.table
    column = questions.find_question_column(table.column_names, read.columns)
    assert column is not None  # else the table was refused
    question = chosen(questions.question_names(table, column), read.question, "question")
    return replace(
        parsed,
        table=questions.rows_of_question(table, column, question),
        columns=questions.without_question_column(read).columns,
        notes=(*parsed.notes, f"question {question}"),
    )


def refuse_query(content: FileContent, read: ReadOptions) -> None:
    """Refuse a query of what is neither a database nor a workbook."""
    if read.query is not None and not content.sheet:
        raise InputError("this is not a database or workbook: leave out query (`--query`)")


def read_to_disk(files: Sequence[LabelFile], read: ReadOptions) -> MappedLabels:
    """Read long tables in batches; the labels stay on disk, and only ids are in memory."""
    assert read.memory is not None
    disk = Disk(parse_size(read.memory))
    with disk.stopped_on_failure():
        builder = None
        kinds: list[ContentKind] = []
        columns: list[str] = []
        for file in files:
            with file_errors_reported(file), local_copy(file, read.max_size) as path:
                _check_on_disk(file, read)
                content = read_content(Path(path), disk=disk, max_size=read.max_size)
                kinds.append(content.kind)
                check_same_kind(content.kind, kinds[0], source_name(files[0]))
                if builder is None:
                    is_text = content.kind == "text"
                    builder = LabelBuilder(read, disk=disk, from_text=is_text, na_is_empty=is_text)
                choose = partial(_choose_same, builder, content.kind, read, columns, files[0])
                for batch in read_batches(
                    content, choose, max_rows=disk.rows_at_once, keep_codes=True
                ):
                    builder.add(batch)
                builder.check_rows()
        assert builder is not None
        with file_errors_reported(files):
            built = builder.finish()
            if len(files) > 1:
                built = built.described(describe_files(len(files), built.read_as))
            return MappedLabels.from_built(built, disk=disk, rows=built.rows)


def _check_on_disk(file: LabelFile, read: ReadOptions) -> None:
    """Refuse sources and options that are not for labels on disk."""
    if is_database_url(file) or read.query is not None:
        raise InputError("databases are not read within a memory limit: leave out `--memory`")
    if read.input_format not in (None, "long") or asks_question(read):
        raise InputError(
            "within a memory limit only a table of one row per label is read: leave out "
            "input_format and question (`--input-format`, `--question`), or memory (`--memory`)"
        )
    for role in read.time_columns:
        raise InputError(
            f"labels on disk do not carry their {role}: leave {role} out of columns (`--columns`), or "
            "leave out memory (`--memory`)"
        )
    for name in ("covariates", "content"):
        if getattr(read, name):
            raise InputError(
                f"labels on disk do not carry {name}: leave out {name} (`--{name}`), or "
                "memory (`--memory`)"
            )


def _choose_same(
    builder: LabelBuilder,
    kind: ContentKind,
    read: ReadOptions,
    columns: list[str],
    first: LabelFile,
    names: list[str],
) -> list[str]:
    """Choose the columns of a long table, which must be ``columns``; of the first file, set them."""
    chosen = choose_long_table(builder, kind, read, names)
    check_same_columns(chosen, columns or chosen, source_name(first))
    columns[:] = chosen
    return chosen


def load_table(data: Any, *, max_size: str | int | None = None) -> Any:
    """Return the table in a file; whatever is not a path is returned as it is."""
    return read_table(data, max_size=max_size) if isinstance(data, str | Path) else data


def read_table(path: str | os.PathLike[str], *, max_size: str | int | None = None) -> pa.Table:
    """Read all columns of a long table, in the formats of `read_labels`; those of a CSV as text."""
    with file_errors_reported(path), local_copy(path, max_size) as file:
        content = read_content(Path(file), max_size=max_size)
        if content.kind == "json" and is_json_list(content.data):
            records = list(Source(Path(file), content).records())
            return table_of_records(records, lambda names: names)
        table = read_columns(content, lambda names: names)
        if content.kind != "text":
            return table
        return pa.table([restore_text(column) for column in table.columns], table.column_names)
