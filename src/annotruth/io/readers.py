"""Labels and comparisons from files in any common format, and from what callers have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from annotruth.errors import InputError, hide_credentials, is_database_url, is_url, option
from annotruth.io.batches import read_batches, read_start
from annotruth.io.content import read_content
from annotruth.io.drop_list import leave_out
from annotruth.io.kinds import Kind, PairKind
from annotruth.io.label_kind import LabelKind
from annotruth.io.parse import load_table, local_copy, open_content, parse_opened
from annotruth.io.sources import (
    LabelFile,
    check_same_columns,
    check_same_kind,
    file_errors_reported,
    file_named_in_errors,
    find_files,
    refuse_empty_name,
    refuse_other_than_paths,
    source_name,
)
from annotruth.observations import Comparisons, Labels
from annotruth.observations.columns.candidates import CANDIDATE_ROWS
from annotruth.observations.columns.names import ColumnsNotFoundError
from annotruth.observations.disk import Disk, parse_size
from annotruth.observations.keywords import ReadKeywords
from annotruth.observations.options import ReadOptions, names_keywords


def is_source(data: Any) -> bool:
    """Return whether data are the path of a file, or paths of several."""
    several = data if isinstance(data, list | tuple) and data else [data]
    return all(isinstance(each, str | Path) for each in several)


def reading_stage(data: Any) -> str:
    """Return the name of the stage in which labels are read, such as "reading labels.csv"."""
    if isinstance(data, str | Path):
        return f"reading {hide_credentials(str(data)) if is_url(data) else Path(data).name}"
    return f"reading {len(data):,} sources" if is_source(data) else "reading labels"


@names_keywords(ReadKeywords)
def read_labels(
    path: LabelFile | Sequence[LabelFile],
    read: ReadOptions | None = None,
    **options: Unpack[ReadKeywords],
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
    labels: Labels = _read(path, LabelKind(ReadOptions.of(read, options)))
    return labels


@names_keywords(ReadKeywords)
def read_comparisons(
    path: LabelFile | Sequence[LabelFile],
    read: ReadOptions | None = None,
    **options: Unpack[ReadKeywords],
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
    comparisons: Comparisons = _read(path, PairKind(ReadOptions.of(read, options)))
    return comparisons


def labels_of(data: Any, read: ReadOptions | None = None, **options: Any) -> Labels:
    """Return the labels in a frame or plain Python data; see `Labels.of`."""
    labels: Labels = _made_of(data, LabelKind(ReadOptions.of(read, options)))
    return labels


def comparisons_of(data: Any, read: ReadOptions | None = None, **options: Any) -> Comparisons:
    """Return the comparisons in a frame or plain Python data; see `Comparisons.of`."""
    comparisons: Comparisons = _made_of(data, PairKind(ReadOptions.of(read, options)))
    return comparisons


def load_labels(
    data: Any, read: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
) -> Labels:
    """Return the labels in a path, a frame or `Labels`, with known truths and priors attached."""
    kind = LabelKind(replace(read, drop=()))
    labels: Labels = _read(data, kind) if is_source(data) else _made_of(data, kind)
    if gold is not None:
        with file_named_in_errors(gold):
            labels = labels.with_gold(load_table(gold, max_size=read.max_size))
    if annotator_prior is not None:
        with file_named_in_errors(annotator_prior):
            prior = load_table(annotator_prior, max_size=read.max_size)
            labels = labels.with_annotator_prior(prior)
    return leave_out(labels, read) if read.drops_annotators else labels


def load_comparisons(data: Any, read: ReadOptions | None = None, **options: Any) -> Comparisons:
    """Return the comparisons in a path, a frame, plain Python data, or `Comparisons`."""
    return (read_comparisons if is_source(data) else comparisons_of)(data, read, **options)


def _made_of(data: Any, kind: Kind) -> Any:
    """Return the observations in a frame or plain Python data; those made already as they are."""
    kind.check_options()
    kind.read.refuse_options_of_files(data)
    table: Any = kind.table
    if not isinstance(data, table):
        parsed, frame = kind.parse_data(data)
        data = _build({None: [parsed]}, kind, frame=frame)
    elif kind.read.changed().keys() - kind.kept_options:
        raise InputError(
            f"these are {kind.table.__name__} already: give their options where they are made"
        )
    return leave_out(data, kind.read) if kind.read.drops_annotators else data


def _read(source: LabelFile | Sequence[LabelFile], kind: Kind) -> Any:
    """Return the observations in files, which are read one after the other."""
    refuse_other_than_paths(source, kind.function)
    kind.check_options()
    if isinstance(kind, PairKind) or kind.read.memory is None:
        made = combine(_parse_files(source, kind), kind)
    else:
        files = find_files(source)
        disk = Disk(parse_size(kind.read.memory))
        with disk.stopped_on_failure():
            made = _build(_parse_in_batches(files, kind, disk), kind, disk)
    return leave_out(made, kind.read) if kind.read.drops_annotators else made


def combine(parts: Mapping[LabelFile, Any], kind: Kind) -> Any:
    """Return the observations in several files of one kind, one after the other, or in one."""
    return _build({file: [part] for file, part in kind.made_alike(parts).items()}, kind)


def _build(
    parts: Mapping[Any, Iterable[Any]],
    kind: Kind,
    disk: Disk | None = None,
    frame: str | None = None,
) -> Any:
    """Return the observations in what was parsed of each file, in batches, or of data in memory."""
    builder: Any = kind.builder(disk)
    for file, batches in parts.items():
        with nullcontext() if file is None else file_errors_reported(file):
            for batch in batches:
                builder.add(batch)
            builder.end_source()
    with nullcontext() if frame else file_errors_reported(list(parts)):
        return builder.finish(frame=frame)


def _parse_files(source: LabelFile | Sequence[LabelFile], kind: Kind) -> dict[LabelFile, Any]:
    """Return what each file of a source holds; refuse files of different kinds."""
    if isinstance(source, str | os.PathLike):
        refuse_empty_name(source)
        if not is_url(source) and Path(source).is_dir():
            with file_errors_reported(source):
                of_users = kind.read_several(Path(source))
            if of_users is not None:
                return {source: of_users}
    parts: dict[LabelFile, Any] = {}
    first = ""
    for file in find_files(source):
        with file_errors_reported(file), local_copy(file, kind.read.max_size) as path:
            part = parse_opened(path, open_content(path, kind.read), kind)
            first = first or source_name(file)
            check_same_kind(part.kind, next(iter(parts.values()), part).kind, first)
            parts[file] = part
    return parts


def _parse_in_batches(
    files: Sequence[LabelFile], kind: LabelKind, disk: Disk
) -> dict[LabelFile, Iterator[Any]]:
    """Return batches of what each file holds, which are read one by one; files are of one kind."""
    read, first = kind.read, source_name(files[0])
    columns: list[str] = []  # of the first file
    source_kind = ""

    def choose(of_file: LabelKind, names: list[str], from_text: bool) -> list[str]:
        chosen = of_file.choose(names, from_text=from_text, on_disk=True)
        columns[:] = columns or chosen
        check_same_columns(chosen, columns, first)
        return chosen

    def parse(file: LabelFile) -> Iterator[Any]:
        nonlocal source_kind
        with local_copy(file, read.max_size) as path:
            if is_database_url(file) or read.query is not None:
                raise InputError(
                    f"databases are not read within a memory limit: leave out {option('memory')}"
                )
            kind.check_on_disk()
            content = read_content(Path(path), disk=disk, max_size=read.max_size)
            from_text = content.kind == "text"
            n_rows = 0
            batches_of = partial(read_batches, content, max_rows=disk.rows_at_once, keep_codes=True)
            of_file = kind
            notes: Sequence[str] = ()
            try:
                next(batches_of(partial(choose, kind, from_text=from_text)))
            except ColumnsNotFoundError as error:
                load = partial(read_start, content, CANDIDATE_ROWS)
                found = kind.parse_by_values(load, error, from_text=from_text)
                of_file, notes = LabelKind(replace(read, columns=found.columns)), found.notes
            chosen = partial(choose, of_file, from_text=from_text)
            for batch in batches_of(chosen):
                part = of_file.parse(batch, from_text=from_text, first_row=n_rows)
                part = replace(part, notes=(*part.notes, *notes))
                if from_text:
                    part = of_file.with_decimal_points(part, content.data)
                source_kind = source_kind or part.kind
                check_same_kind(part.kind, source_kind, first)
                yield part
                n_rows += batch.num_rows

    return {file: parse(file) for file in files}
