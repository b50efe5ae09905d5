"""Labels, gold and truth from files in any common format, and from what callers have."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from annotruth.errors import (
    ComparisonsError,
    InputError,
    OutputError,
    describe_exhaustion,
    hide_credentials,
    is_database_url,
    is_url,
    one_line,
    printable,
    shorten,
)
from annotruth.io.batches import read_batches, read_columns
from annotruth.io.content import DATABASE_TITLE, ContentKind, FileContent, read_content
from annotruth.io.options import ReadOptions
from annotruth.labels.build import LabelBuilder
from annotruth.labels.encode import restore_text
from annotruth.labels.frames import (
    LABEL_ROLES,
    is_known_name,
    is_platform_export,
    refuse_comparisons,
    to_arrow,
)
from annotruth.labels.options import ALL_QUESTIONS
from annotruth.labels.table import Labels

if TYPE_CHECKING:
    from annotruth.io.formats.source import ParsedLabels
    from annotruth.io.sources import LabelFile
    from annotruth.labels.on_disk.table import MappedLabels

_NO_HEADER = "; if the first row holds no names, put one before it: item,annotator,label"


def load_labels(
    data: Any, read: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
) -> Labels:
    """Return the labels in a path, a frame or `Labels`, with known truths and priors attached."""
    given, read = read, replace(read, drop=())
    if is_source(data):
        labels = read_labels(data, read)
    else:
        for name in ("input_format", "query", "memory"):
            if getattr(read, name) is not None:
                raise InputError(f"{name} is for files: leave it out")
        labels = _frame_labels(data, read) if _asks_question(read) else Labels.of(data, read)
    if gold is not None:
        with file_named_in_errors(gold):
            labels = labels.with_gold(load_table(gold, max_size=read.max_size))
    if annotator_prior is not None:
        with file_named_in_errors(annotator_prior):
            prior = load_table(annotator_prior, max_size=read.max_size)
            labels = labels.with_annotator_prior(prior)
    return _without_dropped(labels, given)


def _frame_labels(data: Any, read: ReadOptions) -> Labels:
    """Return the labels of one question in a frame."""
    parsed, frame = parse_frame(data, read)
    return Labels.from_arrow(parsed.table, parsed.options(read), frame=frame)


def parse_frame(data: Any, read: ReadOptions) -> tuple[ParsedLabels, str]:
    """Return the rows of one question in a frame, and the name of the frame's library."""
    from annotruth.io.formats.source import ParsedLabels

    choose = partial(
        _choose_long_table, _label_builder(read), "arrow", replace(read, input_format="long")
    )
    table, frame = to_arrow(data, choose)
    table = table.select(choose(table.column_names))
    return _of_question(ParsedLabels(table, columns=read.columns), read), frame


def _without_dropped(labels: Labels, read: ReadOptions) -> Labels:
    """Return the labels without those of the annotators to leave out."""
    if "drop" not in read.changed():
        return labels
    if labels.on_disk:
        raise InputError(
            "annotators can be left out in memory only: leave out memory (`--memory`), or drop "
            "(`--drop`)"
        )
    from annotruth.io.drop_list import leave_out

    return leave_out(labels, read.drop, max_size=read.max_size)


def is_source(data: Any) -> bool:
    """Return whether data are the path of a file, or paths of several."""
    several = data if isinstance(data, list | tuple) and data else [data]
    return all(isinstance(each, str | Path) for each in several)


def reading_stage(data: Any) -> str:
    """Return the name of the stage in which labels are read, such as "reading labels.csv"."""
    if isinstance(data, str | Path):
        return f"reading {hide_credentials(str(data)) if is_url(data) else Path(data).name}"
    return f"reading {len(data):,} sources" if is_source(data) else "reading labels"


def load_table(data: Any, *, max_size: str | int | None = None) -> Any:
    """Return the table in a file; whatever is not a path is returned as it is."""
    return read_table(data, max_size=max_size) if isinstance(data, str | Path) else data


def read_labels(
    path: LabelFile | Sequence[LabelFile], read: ReadOptions | None = None, **options: Any
) -> Labels:
    """Read labels from a file, or from several of one kind.

    Parameters
    ----------
    path
        A long table as CSV or TSV (also with ; or | between columns), Parquet, Arrow, Feather
        or JSON lines, plain or compressed with gzip, bzip2, xz, zstd, lz4 or zip; an Excel file, or
        a SQLite or DuckDB file; a URL (https, s3, gs, or of a database); or what another tool
        wrote (see ``io.formats``), recognised by its content. Within ``memory`` only a long
        table is read, and not as JSON lines, xz or zip. Several files are read one after the
        other: a list of paths, a folder, or a pattern such as ``day-*.csv``. - is standard input.
    read, **options
        How to read it: `ReadOptions`, or its fields as keywords.

    Raises
    ------
    InputError
        When the file or its content cannot be used; one line says what, where and what to do.
    """
    read = ReadOptions.of(read, options)
    return _without_dropped(_read_labels(path, read), read)


def _read_labels(source: LabelFile | Sequence[LabelFile], read: ReadOptions) -> Labels:
    if read.question == ALL_QUESTIONS:
        raise InputError(
            "all questions at once are for fit (`annotruth fit`): name one question here"
        )
    single = single_file(source)
    if single is not None and read.memory is None:
        return _read_file(single, read)
    if read.memory is None and isinstance(source, str | os.PathLike) and Path(source).is_dir():
        with file_errors_reported(source):
            users = _parse_several(Path(source), read)
        if users is not None:
            return labels_of(users, read)
    from annotruth.io.sources import combine, find_files

    files = find_files(source) if single is None else [single]
    if read.memory is not None:
        return _read_to_disk(files, read)
    if len(files) > 1:
        return combine(files, read, _parse_file, file_errors_reported)
    return _read_file(files[0], read)


def single_file(source: LabelFile | Sequence[LabelFile]) -> LabelFile | None:
    """Return the only file of a source; None if there may be several."""
    if not isinstance(source, str | os.PathLike):
        return single_file(source[0]) if len(source) == 1 else None
    if is_url(source):
        return source
    may_match = any(mark in os.fspath(source) for mark in "*?[")
    return None if may_match or Path(source).is_dir() else source


def _read_file(path: LabelFile, read: ReadOptions) -> Labels:
    with file_errors_reported(path), local_copy(path, read.max_size) as file:
        content = open_content(file, read)
        if _asks_question(read):
            return labels_of(parse_opened(file, content, read), read)
        table = None if content is None else _read_long_table(content, read)
        if content is not None and table is not None:
            labels = Labels.from_arrow(table, read, from_text=content.kind == "text")
            how = filter(None, (content.sheet, labels.read_as))
            return replace(labels, read_as=", ".join(how)) if content.sheet else labels
        return labels_of(_parse_other_format(file, content, read), read)


def labels_of(parsed: ParsedLabels, read: ReadOptions) -> Labels:
    """Return the labels that a format found."""
    labels = Labels.from_arrow(parsed.table, parsed.options(read), from_text=parsed.from_text)
    how = (parsed.read_as,) if parsed.title else (parsed.read_as, labels.read_as)
    labels = replace(labels, read_as=", ".join(filter(None, how)))
    return labels if parsed.gold is None else labels.with_gold(parsed.gold)


def _parse_file(path: LabelFile, read: ReadOptions) -> ParsedLabels:
    """Return the labels of one of several files."""
    with local_copy(path, read.max_size) as file:
        return parse_opened(file, open_content(file, read), read)


def parse_opened(file: LabelFile, content: FileContent | None, read: ReadOptions) -> ParsedLabels:
    """Return the labels of a file that `open_content` opened."""
    from annotruth.io.formats.source import ParsedLabels

    table = None if content is None else _read_long_table(content, read)
    if content is None or table is None:
        return _parse_other_format(file, content, read)
    notes = tuple(filter(None, (content.sheet,)))
    parsed = ParsedLabels(table, read.columns, content.kind == "text", notes)
    return _of_question(parsed, read)


def _asks_question(read: ReadOptions) -> bool:
    """Return whether a table may have several questions: one is named, or their column is."""
    return read.question is not None or "question" in (read.columns or {})


def _of_question(parsed: ParsedLabels, read: ReadOptions) -> ParsedLabels:
    """Return the rows of one question, where a long table has several."""
    if not _asks_question(read):
        return parsed
    from annotruth.io.formats.votes import chosen
    from annotruth.labels import questions

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


def read_table(path: str | os.PathLike[str], *, max_size: str | int | None = None) -> pa.Table:
    """Read all columns of a long table, in the formats of `read_labels`; those of a CSV as text."""
    with file_errors_reported(path), local_copy(path, max_size) as file:
        content = read_content(Path(file), max_size=max_size)
        table = read_columns(content, lambda names: names)
        if content.kind != "text":
            return table
        return pa.table([restore_text(column) for column in table.columns], table.column_names)


@contextmanager
def local_copy(source: LabelFile, max_size: str | int | None) -> Iterator[LabelFile]:
    """Return the source, or the temporary copy of a file elsewhere."""
    if not is_url(source) or is_database_url(source):
        yield source
        return
    from annotruth.io.remote import downloaded

    with downloaded(os.fspath(source), max_size=max_size) as path:
        yield path


class _NoLongTableError(InputError):
    """The columns of a long table are missing."""


def open_content(source: LabelFile, read: ReadOptions) -> FileContent | None:
    """Return the content of a file; None for what may hold several, Python files and databases."""
    if is_database_url(source):
        return None
    path = Path(source)
    if path.suffix.lower() in (".py", ".zip") or path.is_dir():
        return None
    return read_content(path, max_size=read.max_size, sheet=read.query)


def _read_long_table(content: FileContent, read: ReadOptions) -> pa.Table | None:
    """Return the columns of a long table; None for another format, named or to be recognised."""
    if read.input_format not in (None, "long") or content.kind in DATABASE_TITLE:
        return None
    _refuse_query(content, read)
    # The keys of JSON lines are known only once they are read, so other formats are tried first.
    if read.input_format is None and content.kind == "json":
        return None
    try:
        choose = partial(_choose_long_table, _label_builder(read), content.kind, read)
        return read_columns(content, choose, keep_codes=True)
    except _NoLongTableError:
        if read.input_format is None:
            return None
        raise


def _parse_other_format(
    source: LabelFile, content: FileContent | None, read: ReadOptions
) -> ParsedLabels:
    """Return the labels of a format that is named or recognised, or of JSON lines."""
    if is_database_url(source):
        return _parse_url(source, read)
    path = Path(source)
    parsed = _parse_several(path, read) if content is None else None
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


def _parse_several(path: Path, read: ReadOptions) -> ParsedLabels | None:
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
        return _of_question(replace(parsed, columns=read.columns), read)
    _refuse_query(content, read)
    columns, categories = read.columns or {}, read.categories
    source = Source(path, content, columns, read.question, read.content, categories)
    if read.input_format not in (None, "long"):
        return formats.read_as(read.input_format, source)
    recognised = formats.recognise(source) if read.input_format is None else None
    if recognised is not None:
        return recognised
    choose = partial(_choose_long_table, _label_builder(read), source.kind, read)
    table = read_columns(source.content, choose, keep_codes=True)
    return _of_question(ParsedLabels(table, columns=read.columns, from_text=source.from_text), read)


def _parse_url(url: LabelFile, read: ReadOptions) -> ParsedLabels:
    """Return the labels of a database server."""
    from annotruth.io.databases import read_database_url

    choose = partial(_choose_in_database, "sqlite", read)
    parsed = read_database_url(os.fspath(url), read.query, choose, max_size=read.max_size)
    return _of_question(replace(parsed, columns=read.columns), read)


def _choose_in_database(kind: ContentKind, read: ReadOptions, names: list[str]) -> list[str]:
    return _choose_long_table(_label_builder(read), kind, read, names)


def _refuse_query(content: FileContent, read: ReadOptions) -> None:
    if read.query is not None and not content.sheet:
        raise InputError("this is not a database or workbook: leave out query (`--query`)")


def _read_to_disk(files: Sequence[LabelFile], read: ReadOptions) -> MappedLabels:
    """Read long tables in batches; the labels stay on disk, and only ids are in memory."""
    from annotruth.io.sources import check_same_kind, describe_files, source_name
    from annotruth.labels.on_disk.disk import Disk, parse_size
    from annotruth.labels.on_disk.sort import DiskStore
    from annotruth.labels.on_disk.table import MappedLabels

    assert read.memory is not None
    disk = Disk(parse_size(read.memory))
    with disk.stopped_on_failure():
        store, builder = DiskStore(disk), None
        kinds: list[ContentKind] = []
        columns: list[str] = []
        for file in files:
            with file_errors_reported(file), local_copy(file, read.max_size) as path:
                _check_on_disk(file, read)
                content = read_content(Path(path), disk=disk, max_size=read.max_size)
                kinds.append(content.kind)
                check_same_kind(content.kind, kinds[0], source_name(files[0]))
                if builder is None:
                    builder = LabelBuilder(read, store=store, from_text=content.kind == "text")
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
                built = built._replace(read_as=describe_files(len(files), built.read_as))
            return MappedLabels.from_built(built, disk=disk, rows=store.rows)


def _check_on_disk(file: LabelFile, read: ReadOptions) -> None:
    """Refuse sources and options that are not for labels on disk."""
    if is_database_url(file) or read.query is not None:
        raise InputError("databases are not read within a memory limit: leave out `--memory`")
    if read.input_format not in (None, "long") or _asks_question(read):
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
    from annotruth.io.sources import check_same_columns, source_name

    chosen = _choose_long_table(builder, kind, read, names)
    check_same_columns(chosen, columns or chosen, source_name(first))
    columns[:] = chosen
    return chosen


def _choose_long_table(
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
        from annotruth.labels.questions import no_questions_error

        raise no_questions_error()
    return columns


def _question_column(read: ReadOptions, names: list[str]) -> str | None:
    """Return the column that names the question of each label; None if there is none."""
    if not _asks_question(read):
        return None
    from annotruth.labels.questions import find_question_column

    return find_question_column(names, read.columns)


def _label_builder(read: ReadOptions) -> LabelBuilder:
    """Return a builder of the labels of one question, or of the only one."""
    if _asks_question(read):
        from annotruth.labels.questions import without_question_column

        read = without_question_column(read)
    return LabelBuilder(read)


@contextmanager
def file_errors_reported(path: LabelFile | Sequence[LabelFile]) -> Iterator[None]:
    """Turn every failure to read a file into an `InputError` of one line that names the file.

    What is wrong with one of several files names that file only.
    """
    kind: type[InputError] = InputError
    try:
        yield
    except OutputError:
        raise
    except InputError as error:
        reason, cause = str(error), error.__cause__
        if isinstance(error, ComparisonsError):
            kind = ComparisonsError
    except (MemoryError, RecursionError) as error:
        reason, cause = describe_exhaustion(error), error
    except FileNotFoundError as error:
        reason, cause = "no such file: check the path", error
    except IsADirectoryError as error:
        reason = "this is a folder with no saved fit in it: name a file, or a folder of `--save`"
        cause = error
    except PermissionError as error:
        reason, cause = "the file may not be read: check its permissions", error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        what = shorten(one_line(str(error)), 200)
        reason, cause = f"the file cannot be read ({what}): check that it is complete", error
    else:
        return
    from annotruth.io.sources import source_name

    raise kind(f"{source_name(path)}: {reason}") from cause


@contextmanager
def file_named_in_errors(data: Any) -> Iterator[None]:
    """Put the path before messages about what a file holds, where ``data`` is a path."""
    try:
        yield
    except InputError as error:
        if not isinstance(data, str | Path):
            raise
        from annotruth.io.sources import source_name

        name = source_name(data)
        if str(error).startswith(printable(f"{name}: ")):
            raise
        raise type(error)(f"{name}: {error}") from error
