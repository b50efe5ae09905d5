"""Comparisons from files in any common format, and from what callers have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError, counted, is_database_url, shown
from annotruth.io import formats
from annotruth.io.batches import read_batches, read_columns
from annotruth.io.content import DATABASE_TITLE, read_content
from annotruth.io.formats import mturk
from annotruth.io.formats.source import ParsedLabels, Source
from annotruth.io.json_lines import table_of_records
from annotruth.io.parse import local_copy
from annotruth.io.readers import is_source
from annotruth.io.sources import (
    LabelFile,
    check_same_columns,
    check_same_kind,
    describe_files,
    file_errors_reported,
    find_files,
    refuse_other_than_paths,
    source_name,
)
from annotruth.observations.disk import Disk, parse_size
from annotruth.observations.frames import default_frame, to_arrow
from annotruth.observations.options import ALL_QUESTIONS, ReadOptions
from annotruth.observations.pairs.build import ComparisonBuilder, ParsedComparisons, parse_table
from annotruth.observations.pairs.columns import ROLES, PairColumns, find_pair_columns
from annotruth.observations.pairs.table import Comparisons

# Options of labels, which have no meaning for comparisons.
_OF_LABELS = (
    *("scale", "categories", "duplicates", "bins", "sets", "separator", "content"),
    "input_format",
)


def load_comparisons(data: Any, read: ReadOptions | None = None, **options: Any) -> Comparisons:
    """Return the comparisons in a path, a frame, plain Python data, or `Comparisons`."""
    read = ReadOptions.of(read, options)
    if is_source(data):
        return read_comparisons(data, read)
    return _without_dropped(comparisons_of(data, read), read)


def read_comparisons(
    path: LabelFile | Sequence[LabelFile], read: ReadOptions | None = None, **options: Any
) -> Comparisons:
    """Read pair comparisons from a file, or from several of one kind.

    Parameters
    ----------
    path
        A table with one row per comparison (left, right, annotator, winner; or winner, loser,
        annotator) or per rank, in the file formats of `read_labels`; a Label Studio export of a
        Pairwise project, the results of a Mechanical Turk batch, or a sureal dataset of paired
        comparisons. Several files are read one after the other: a list of paths, a folder, or a
        pattern such as ``day-*.csv``. - is standard input.
    read, **options
        How to read it: `ReadOptions`, or its fields as keywords. Options about the scale of labels
        do not apply.

    Raises
    ------
    InputError
        When the file or its content cannot be used; one line says what, where and what to do.
    """
    read = ReadOptions.of(read, options)
    _check_options(read)
    refuse_other_than_paths(path, "annotruth.rank")
    files = find_files(path)
    disk = None if read.memory is None else Disk(parse_size(read.memory))
    with nullcontext() if disk is None else disk.stopped_on_failure():
        builder = ComparisonBuilder(disk)
        found: list[PairColumns] = []
        first: ParsedComparisons | None = None
        for file in files:
            with file_errors_reported(file), local_copy(file, read.max_size) as local:
                for parsed in _parse_batches(local, file, read, disk, found, files[0]):
                    first = first or parsed
                    check_same_kind(parsed.kind, first.kind, source_name(files[0]))
                    builder.add(parsed)
                builder.end_source()
        with file_errors_reported(files):
            made = builder.finish()
    if len(files) > 1:
        made = replace(made, read_as=describe_files(len(files), made.read_as))
    return _without_dropped(made, read)


def comparisons_of(data: Any, read: ReadOptions | None = None, **options: Any) -> Comparisons:
    """Return the comparisons in a frame or plain Python data; see `Comparisons.of`."""
    read = ReadOptions.of(read, options)
    if isinstance(data, Comparisons):
        if read.changed().keys() - {"drop"}:
            raise InputError("these are Comparisons already: give options where they are made")
        return data
    _check_options(read)
    read.refuse_options_of_files()
    found: list[PairColumns] = []
    choose = partial(_choose, read, found)
    if isinstance(data, Sequence) and len(data) and isinstance(data[0], Mapping):
        table, frame = _dicts_to_table(data, choose), default_frame()
    else:
        table, frame = to_arrow(data, choose, ROLES["sides"])
    if not found:
        choose(table.column_names)
    builder = ComparisonBuilder()
    builder.add(parse_table(table, found[-1], from_text=False))
    builder.end_source()
    return builder.finish(frame=frame)


def _check_options(read: ReadOptions) -> None:
    if read.question == ALL_QUESTIONS:
        raise InputError("all questions at once are for labels: name one question (`--question`)")
    changed = read.changed()
    for name in _OF_LABELS:
        if name in changed:
            flag = name.replace("_", "-")
            raise InputError(
                f"{name} is for labels, not for comparisons: leave it out (`--{flag}`)"
            )


def _choose(read: ReadOptions, found: list[PairColumns], names: list[str]) -> list[str]:
    """Return the columns to read, and add what they are to ``found``."""
    if mturk.is_batch(names):
        found.append(mturk.batch_columns(names, read.columns, read.covariates, read.question))
        return [*found[-1].names(), *mturk.review_columns(names)]
    if read.question is not None:
        raise InputError(
            "a table of comparisons has no questions: leave out question (`--question`)"
        )
    found.append(find_pair_columns(names, read.columns, read.covariates, read.further))
    return found[-1].names()


def _parse_file(file: LabelFile, read: ReadOptions) -> ParsedComparisons:
    found: list[PairColumns] = []
    choose = partial(_choose, read, found)
    if is_database_url(file):
        from annotruth.io.databases import read_database_url

        rows = read_database_url(os.fspath(file), read.query, choose, max_size=read.max_size)
        return _of_database(rows, found)
    path = Path(file)
    content = read_content(path, max_size=read.max_size)
    if content.kind in DATABASE_TITLE:
        from annotruth.io.databases import read_database

        rows = read_database(path, content.kind, read.query, choose, limit=content.limit)
        return _of_database(rows, found)
    if read.query is not None:
        raise InputError("this is no database: leave out query (`--query`)")
    source = Source(path, content, read.columns or {}, read.question)
    if content.kind == "json" or path.suffix.lower() == ".py":
        parsed = formats.recognise_comparisons(source)
        if parsed is not None:
            return parsed
    if content.kind == "json" and not source.in_lines:
        table = table_of_records(list(source.records()), choose)
    else:
        table = read_columns(content, choose, keep_codes=True)
    if not mturk.review_columns(table.column_names):
        return parse_table(table, found[-1], from_text=source.from_text)
    kept = mturk.without_rejected(table)
    n_rejected = table.num_rows - kept.num_rows
    rejected = f"{n_rejected:,} rejected left out" if n_rejected else ""
    parsed = parse_table(kept, found[-1], from_text=source.from_text)
    return replace(parsed, title="MTurk batch results", notes=(*parsed.notes, rejected))


def _parse_batches(
    path: LabelFile,
    file: LabelFile,
    read: ReadOptions,
    disk: Disk | None,
    found: list[PairColumns],
    first: LabelFile,
) -> Iterator[ParsedComparisons]:
    """Yield the comparisons of a file: all at once, or, for comparisons on disk, in batches of rows."""
    if disk is None:
        yield _parse_file(path, read)
        return
    _check_on_disk(file, read)
    content = read_content(Path(path), disk=disk, max_size=read.max_size)
    choose = partial(_choose_table, read, found, first)
    n_rows = 0
    for batch in read_batches(content, choose, max_rows=disk.rows_at_once, keep_codes=True):
        yield parse_table(batch, found[-1], from_text=content.kind == "text", first_row=n_rows)
        n_rows += batch.num_rows


def _check_on_disk(file: LabelFile, read: ReadOptions) -> None:
    """Refuse sources and options that are not for comparisons on disk."""
    if is_database_url(file) or read.query is not None:
        raise InputError("databases are not read within a memory limit: leave out `--memory`")
    for name in ("covariates", "further", "drop"):
        if name in read.changed():
            raise InputError(
                f"comparisons on disk do not take {name}: leave out {name} (`--{name}`), or memory "
                "(`--memory`)"
            )


def _choose_table(
    read: ReadOptions, found: list[PairColumns], first: LabelFile, names: list[str]
) -> list[str]:
    """Choose the columns of a table of one row per comparison, the same in all files."""
    chosen = _choose(read, found, names)
    if found[-1].shape not in ("sides", "winners") or mturk.is_batch(names):
        raise InputError(
            "within a memory limit only a table of one row per comparison is read: leave out memory "
            "(`--memory`)"
        )
    check_same_columns(chosen, found[0].names(), source_name(first))
    return chosen


def _of_database(rows: ParsedLabels, found: list[PairColumns]) -> ParsedComparisons:
    parsed = parse_table(rows.table, found[-1], from_text=False)
    return replace(parsed, notes=(*rows.notes, *parsed.notes))


def _dicts_to_table(rows: Sequence[Any], choose: Callable[[list[str]], list[str]]) -> pa.Table:
    """Return the chosen entries of a list of dicts; refuse rows of another type."""
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise InputError(f"row {number} is {shown(row)}: each must be a dict, as others are")
    return table_of_records(rows, choose)


def _without_dropped(data: Comparisons, read: ReadOptions) -> Comparisons:
    """Return the comparisons without those of the annotators to leave out."""
    if "drop" not in read.changed():
        return data
    from annotruth.io.drop_list import describe_dropped, dropped_annotators

    dropped = dropped_annotators(
        data.annotators, read.drop, max_size=read.max_size, what="comparison"
    )
    if not dropped.any():
        return data
    kept = ~dropped[data.annotator_of_comparison()]
    lost = counted(int(np.count_nonzero(~kept)), "comparison")
    left_out = describe_dropped(data.annotators, dropped, lost)
    return replace(data.subset(kept).without_gaps(), left_out=left_out)
