"""Labels, gold and truth from files in any common format, and from what callers have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from annotruth.errors import (
    InputError,
    OutputError,
    describe_exhaustion,
    one_line,
    printable,
    shorten,
)
from annotruth.io.batches import read_batches, read_columns
from annotruth.io.content import ContentKind, FileContent, read_content
from annotruth.io.options import ReadOptions
from annotruth.labels.build import LabelBuilder
from annotruth.labels.encode import restore_text
from annotruth.labels.frames import LABEL_ROLES, is_known_name, is_platform_export
from annotruth.labels.table import Labels

if TYPE_CHECKING:
    from annotruth.io.formats.source import ParsedLabels
    from annotruth.labels.on_disk.table import MappedLabels

_NO_HEADER = "; if the first row holds no names, put one before it: item,annotator,label"
_MAX_ROWS = 1 << 19
_BYTES_PER_ROW = 1000  # what reading and encoding a row takes at most, with room for the rest


def load_labels(
    data: Any, read: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
) -> Labels:
    """Return the labels in a path, a frame or `Labels`, with known truths and priors attached."""
    given, read = read, replace(read, drop=())
    if isinstance(data, str | Path):
        labels = read_labels(data, read)
    else:
        for name in ("input_format", "question", "memory"):
            if getattr(read, name) is not None:
                raise InputError(f"{name} is for files: leave it out")
        labels = Labels.of(data, read)
    if gold is not None:
        with file_named_in_errors(gold):
            labels = labels.with_gold(load_table(gold, max_size=read.max_size))
    if annotator_prior is not None:
        with file_named_in_errors(annotator_prior):
            prior = load_table(annotator_prior, max_size=read.max_size)
            labels = labels.with_annotator_prior(prior)
    return _without_dropped(labels, given)


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


def reading_stage(data: Any) -> str:
    """Return the name of the stage in which labels are read, such as "reading labels.csv"."""
    return f"reading {Path(data).name if isinstance(data, str | Path) else 'labels'}"


def load_table(data: Any, *, max_size: str | int | None = None) -> Any:
    """Return the table in a file; whatever is not a path is returned as it is."""
    return read_table(data, max_size=max_size) if isinstance(data, str | Path) else data


def read_labels(
    path: str | os.PathLike[str], read: ReadOptions | None = None, **options: Any
) -> Labels:
    """Read labels from a file.

    Parameters
    ----------
    path
        A long table as CSV or TSV (also with ; or | between columns), Parquet, Arrow, Feather
        or JSON lines, plain or compressed with gzip, bzip2, xz, zstd, lz4 or zip; or what another
        tool wrote (see ``io.formats``), recognised by its content. Within ``memory`` only a long
        table is read, and not as JSON lines, xz or zip.
    read, **options
        How to read it: `ReadOptions`, or its fields as keywords.

    Raises
    ------
    InputError
        When the file or its content cannot be used; one line says what, where and what to do.
    """
    read = ReadOptions.of(read, options)
    return _without_dropped(_read_labels(path, read), read)


def _read_labels(path: str | os.PathLike[str], read: ReadOptions) -> Labels:
    if read.memory is not None:
        return _read_to_disk(Path(path), read)
    with file_errors_reported(path):
        content = _read_single(Path(path), read)
        long_table = None if content is None else _read_long_table(content, read)
        if long_table is not None:
            return long_table
        parsed = _parse_other_format(Path(path), content, read)
        if read.covariates and parsed.title:
            raise InputError(
                f"covariates are columns of a long table, and this is a {parsed.title}: leave "
                "them out (`--covariates`)"
            )
        options_of_table = replace(read, columns=parsed.columns).with_categories(parsed.categories)
        labels = Labels.from_arrow(parsed.table, options_of_table, from_text=parsed.from_text)
        labels = replace(labels, read_as=parsed.read_as or labels.read_as)
        return labels if parsed.gold is None else labels.with_gold(parsed.gold)


def read_table(path: str | os.PathLike[str], *, max_size: str | int | None = None) -> pa.Table:
    """Read all columns of a long table, in the formats of `read_labels`; those of a CSV as text."""
    with file_errors_reported(path):
        content = read_content(Path(path), max_size=max_size)
        table = read_columns(content, lambda names: names)
        if content.kind != "text":
            return table
        return pa.table([restore_text(column) for column in table.columns], table.column_names)


class _NoLongTableError(InputError):
    """The columns of a long table are missing."""


def _read_single(path: Path, read: ReadOptions) -> FileContent | None:
    """Return the content of a file; None for what may hold several, and for Python files."""
    if path.suffix.lower() in (".py", ".zip") or path.is_dir():
        return None
    return read_content(path, max_size=read.max_size)


def _read_long_table(content: FileContent, read: ReadOptions) -> Labels | None:
    """Return the labels of a long table; None for another format, named or to be recognised."""
    if read.input_format not in (None, "long"):
        return None
    # The keys of JSON lines are known only once they are read, so other formats are tried first.
    if read.input_format is None and content.kind == "json":
        return None
    try:
        choose = partial(_choose_long_table, LabelBuilder(read), content.kind, read)
        table = read_columns(content, choose, keep_codes=True)
    except _NoLongTableError:
        if read.input_format is None:
            return None
        raise
    return Labels.from_arrow(table, read, from_text=content.kind == "text")


def _parse_other_format(path: Path, content: FileContent | None, read: ReadOptions) -> ParsedLabels:
    """Return the labels of a format that is named or recognised, or of JSON lines."""
    from annotruth.io import formats
    from annotruth.io.formats.source import ParsedLabels, Source

    formats.check_name(read.input_format)
    if content is None:
        several = formats.read_several(path, max_size=read.max_size)
        if several is not None:
            return several
        content = read_content(path, max_size=read.max_size)
    columns, categories = read.columns or {}, read.categories
    source = Source(path, content, columns, read.question, read.content, categories)
    if read.input_format not in (None, "long"):
        return formats.read_as(read.input_format, source)
    recognised = formats.recognise(source) if read.input_format is None else None
    if recognised is not None:
        return recognised
    choose = partial(_choose_long_table, LabelBuilder(read), source.kind, read)
    table = read_columns(source.content, choose, keep_codes=True)
    return ParsedLabels(table, columns=read.columns, from_text=source.from_text)


def _read_to_disk(path: Path, read: ReadOptions) -> MappedLabels:
    """Read a long table in batches; the labels stay on disk, and only ids are in memory."""
    from annotruth.labels.on_disk.disk import Disk, parse_size
    from annotruth.labels.on_disk.sort import DiskStore
    from annotruth.labels.on_disk.table import MappedLabels

    assert read.memory is not None
    disk = Disk(parse_size(read.memory))
    with file_errors_reported(path), disk.stopped_on_failure():
        if read.input_format not in (None, "long") or read.question is not None:
            raise InputError(
                "within a memory limit only a table of one row per label is read: leave out "
                "input_format and question (`--input-format`, `--question`), or memory (`--memory`)"
            )
        for name in ("covariates", "content"):
            if getattr(read, name):
                raise InputError(
                    f"labels on disk do not carry {name} yet: leave out {name} (`--{name}`), or "
                    "memory (`--memory`)"
                )
        content = read_content(path, disk=disk, max_size=read.max_size)
        store = DiskStore(disk)
        builder = LabelBuilder(read, store=store, from_text=content.kind == "text")
        max_rows = max(1, min(_MAX_ROWS, disk.memory // _BYTES_PER_ROW))
        choose = partial(_choose_long_table, builder, content.kind, read)
        for batch in read_batches(content, choose, max_rows=max_rows, keep_codes=True):
            builder.add(batch)
        return MappedLabels.from_built(builder.finish(), disk=disk, rows=store.rows)


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
    try:
        columns = builder.choose_columns(names)
    except InputError as error:
        no_names = kind == "text" and not read.columns and not any(map(is_known_name, names))
        raise _NoLongTableError(f"{error}{_NO_HEADER if no_names else ''}") from None
    if read.question is not None:
        raise InputError(
            "a table of one row per label has no questions: leave out question (`--question`)"
        )
    return columns


@contextmanager
def file_errors_reported(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn every failure to read a file into an `InputError` of one line that names the file."""
    try:
        yield
    except OutputError:
        raise
    except InputError as error:
        reason, cause = str(error), error.__cause__
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
    raise InputError(f"{os.fspath(path)}: {reason}") from cause


@contextmanager
def file_named_in_errors(data: Any) -> Iterator[None]:
    """Put the path before messages about what a file holds, where ``data`` is a path."""
    try:
        yield
    except InputError as error:
        if isinstance(data, str | Path) and not str(error).startswith(printable(f"{data}: ")):
            raise InputError(f"{data}: {error}") from error
        raise
