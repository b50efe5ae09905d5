"""Labels from files in any common format, and from what callers have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotruth.errors import InputError, hide_credentials, is_url
from annotruth.io.options import ReadOptions
from annotruth.io.reading.file_errors import (
    file_errors_reported,
    file_named_in_errors,
    refuse_empty_name,
    refuse_other_than_paths,
)
from annotruth.io.reading.long_table import asks_question, read_long_table
from annotruth.io.reading.parse import (
    local_copy,
    open_content,
    parse_file,
    parse_frame,
    parse_opened,
    parse_other_format,
    parse_several,
)
from annotruth.io.reading.tables import load_table
from annotruth.labels.options import ALL_QUESTIONS
from annotruth.labels.table import Labels
from annotruth.labels.validate import describe_codes

if TYPE_CHECKING:
    from annotruth.io.formats.source import ParsedLabels
    from annotruth.io.sources import LabelFile


def load_labels(
    data: Any, read: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
) -> Labels:
    """Return the labels in a path, a frame or `Labels`, with known truths and priors attached."""
    given, read = read, replace(read, drop=())
    if is_source(data):
        labels = read_labels(data, read)
    else:
        read.refuse_options_of_files()
        labels = _frame_labels(data, read) if asks_question(read) else Labels.of(data, read)
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
    refuse_other_than_paths(path, "annotruth.fit")
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
            users = parse_several(Path(source), read)
        if users is not None:
            return labels_of(users, read)
    from annotruth.io.sources import combine, find_files

    files = find_files(source) if single is None else [single]
    if read.memory is not None:
        from annotruth.io.reading.to_disk import read_to_disk

        return read_to_disk(files, read)
    if len(files) > 1:
        return combine(files, read, parse_file, file_errors_reported)
    return _read_file(files[0], read)


def single_file(source: LabelFile | Sequence[LabelFile]) -> LabelFile | None:
    """Return the only file of a source; None if there may be several."""
    if not isinstance(source, str | os.PathLike):
        return single_file(source[0]) if len(source) == 1 else None
    refuse_empty_name(source)
    if is_url(source):
        return source
    may_match = any(mark in os.fspath(source) for mark in "*?[")
    return None if may_match or Path(source).is_dir() else source


def _read_file(path: LabelFile, read: ReadOptions) -> Labels:
    with file_errors_reported(path), local_copy(path, read.max_size) as file:
        content = open_content(file, read)
        if asks_question(read):
            return labels_of(parse_opened(file, content, read), read)
        table = None if content is None else read_long_table(content, read)
        if content is not None and table is not None:
            labels = Labels.from_arrow(table, read, from_text=content.kind == "text")
            how = filter(None, (content.sheet, labels.read_as))
            return replace(labels, read_as=", ".join(how)) if content.sheet else labels
        return labels_of(parse_other_format(file, content, read), read)


def labels_of(parsed: ParsedLabels, read: ReadOptions) -> Labels:
    """Return the labels that a format found."""
    labels = Labels.from_arrow(parsed.table, parsed.options(read), from_text=parsed.from_text)
    also = describe_codes(labels.scale) if parsed.title else labels.read_as
    labels = replace(labels, read_as=", ".join(filter(None, (parsed.read_as, also))))
    return labels if parsed.gold is None else labels.with_gold(parsed.gold)
