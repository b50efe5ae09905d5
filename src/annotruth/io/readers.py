"""Labels and comparisons from files in any common format, and from what callers have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic

import pyarrow as pa

from annotruth.errors import InputError, hide_credentials, is_database_url, is_url
from annotruth.io.batches import read_batches
from annotruth.io.content import read_content
from annotruth.io.drop_list import leave_out
from annotruth.io.parse import (
    LabelKind,
    PairKind,
    Parsed,
    TableKind,
    asks_question,
    load_table,
    local_copy,
    parse_file,
    parse_frame,
)
from annotruth.io.sources import (
    LabelFile,
    check_same_columns,
    check_same_kind,
    describe_files,
    file_errors_reported,
    file_named_in_errors,
    find_files,
    refuse_empty_name,
    refuse_other_than_paths,
    source_name,
)
from annotruth.observations.build import LabelBuilder
from annotruth.observations.disk import Disk, parse_size
from annotruth.observations.encode import common_type, to_text
from annotruth.observations.frames import is_list, to_arrow
from annotruth.observations.options import ALL_QUESTIONS, ParsedLabels, ReadOptions
from annotruth.observations.pairs.build import ComparisonBuilder, ParsedComparisons
from annotruth.observations.pairs.columns import ROLES
from annotruth.observations.pairs.table import Comparisons
from annotruth.observations.scale import to_plain
from annotruth.observations.table import Labels, MappedLabels

_MAX_NOTES = 3
# Options of labels, which have no meaning for comparisons.
_OF_LABELS = (
    *("scale", "categories", "duplicates", "bins", "sets", "separator", "content"),
    "input_format",
)


def is_source(data: Any) -> bool:
    """Return whether data are the path of a file, or paths of several."""
    several = data if isinstance(data, list | tuple) and data else [data]
    return all(isinstance(each, str | Path) for each in several)


def reading_stage(data: Any) -> str:
    """Return the name of the stage in which labels are read, such as "reading labels.csv"."""
    if isinstance(data, str | Path):
        return f"reading {hide_credentials(str(data)) if is_url(data) else Path(data).name}"
    return f"reading {len(data):,} sources" if is_source(data) else "reading labels"


def load_labels(
    data: Any, read: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
) -> Labels:
    """Return the labels in a path, a frame or `Labels`, with known truths and priors attached."""
    given, read = read, replace(read, drop=())
    if is_source(data):
        labels = read_labels(data, read)
    else:
        read.refuse_options_of_files()
        if asks_question(read):
            parsed, frame = parse_frame(data, read)
            labels = Labels.from_arrow(parsed.table, parsed.options(read), frame=frame)
        else:
            labels = Labels.of(data, read)
    if gold is not None:
        with file_named_in_errors(gold):
            labels = labels.with_gold(load_table(gold, max_size=read.max_size))
    if annotator_prior is not None:
        with file_named_in_errors(annotator_prior):
            prior = load_table(annotator_prior, max_size=read.max_size)
            labels = labels.with_annotator_prior(prior)
    return leave_out(labels, given) if given.drops_annotators else labels


def load_comparisons(data: Any, read: ReadOptions | None = None, **options: Any) -> Comparisons:
    """Return the comparisons in a path, a frame, plain Python data, or `Comparisons`."""
    read = ReadOptions.of(read, options)
    if is_source(data):
        return read_comparisons(data, read)
    made = comparisons_of(data, read)
    return leave_out(made, read) if read.drops_annotators else made


def comparisons_of(data: Any, read: ReadOptions | None = None, **options: Any) -> Comparisons:
    """Return the comparisons in a frame or plain Python data; see `Comparisons.of`."""
    read = ReadOptions.of(read, options)
    if isinstance(data, Comparisons):
        if read.changed().keys() - {"drop"}:
            raise InputError("these are Comparisons already: give options where they are made")
        return data
    _check_options_of_comparisons(read)
    read.refuse_options_of_files()
    kind = PairKind(read)
    table, frame = to_arrow(data, kind.choose, ROLES["sides"])
    if kind.columns is None:
        kind.choose(table.column_names)
    builder = ComparisonBuilder()
    builder.add(kind.parse(table))
    builder.end_source()
    return builder.finish(frame=frame)


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
    if read.question == ALL_QUESTIONS:
        raise InputError(
            "all questions at once are for fit (`annotruth fit`): name one question here"
        )
    labels = _read_labels(path, read)
    return leave_out(labels, read) if read.drops_annotators else labels


def _read_labels(source: LabelFile | Sequence[LabelFile], read: ReadOptions) -> Labels:
    kind = LabelKind(read)
    single = single_file(source)
    if single is None and read.memory is None and isinstance(source, str | os.PathLike):
        with file_errors_reported(source):
            users = kind.read_several(Path(source)) if Path(source).is_dir() else None
        if users is not None:
            return combine({source: users}, read)
    files = find_files(source) if single is None else [single]
    if read.memory is None:
        return combine(parse_files(files, kind), read)
    disk = Disk(parse_size(read.memory))
    with disk.stopped_on_failure():
        source_on_disk = _OnDisk(files, kind, disk)
        builder: LabelBuilder | None = None
        for file in files:
            with file_errors_reported(file):
                for part in source_on_disk.parse(file):
                    builder = builder or _builder_of(part, read, disk)
                    builder.add(part.table)
                if builder is not None:
                    builder.end_source()
        assert builder is not None
        with file_errors_reported(files):
            built = builder.finish()
            if len(files) > 1:
                built = built.described(describe_files(len(files), built.read_as))
            return MappedLabels.from_built(built, disk=disk, rows=built.rows)


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
    _check_options_of_comparisons(read)
    refuse_other_than_paths(path, "annotruth.rank")
    files, kind = find_files(path), PairKind(read)
    if read.memory is None:
        parts = parse_files(files, kind)
        made = _build_comparisons(files, lambda file: [parts[file]], ComparisonBuilder())
    else:
        disk = Disk(parse_size(read.memory))
        with disk.stopped_on_failure():
            parse = _OnDisk(files, kind, disk).parse
            made = _build_comparisons(files, parse, ComparisonBuilder(disk))
    return leave_out(made, read) if read.drops_annotators else made


def _build_comparisons(
    files: Sequence[LabelFile],
    parse: Callable[[LabelFile], Iterable[ParsedComparisons]],
    builder: ComparisonBuilder,
) -> Comparisons:
    """Return the comparisons of several files, of which ``parse`` returns the rows of one."""
    for file in files:
        with file_errors_reported(file):
            for part in parse(file):
                builder.add(part)
            builder.end_source()
    with file_errors_reported(files):
        made = builder.finish()
    if len(files) == 1:
        return made
    return replace(made, read_as=describe_files(len(files), made.read_as))


def _check_options_of_comparisons(read: ReadOptions) -> None:
    if read.question == ALL_QUESTIONS:
        raise InputError("all questions at once are for labels: name one question (`--question`)")
    changed = read.changed()
    for name in _OF_LABELS:
        if name in changed:
            flag = name.replace("_", "-")
            raise InputError(
                f"{name} is for labels, not for comparisons: leave it out (`--{flag}`)"
            )


def single_file(source: LabelFile | Sequence[LabelFile]) -> LabelFile | None:
    """Return the only file of a source; None if there may be several."""
    if not isinstance(source, str | os.PathLike):
        return single_file(source[0]) if len(source) == 1 else None
    refuse_empty_name(source)
    if is_url(source):
        return source
    may_match = any(mark in os.fspath(source) for mark in "*?[")
    return None if may_match or Path(source).is_dir() else source


def parse_files(files: Sequence[LabelFile], kind: TableKind[Parsed]) -> dict[LabelFile, Parsed]:
    """Return what each of several files holds; refuse files of different kinds."""
    parts: dict[LabelFile, Parsed] = {}
    for file in files:
        with file_errors_reported(file):
            part = parse_file(file, kind)
            if parts:
                check_same_kind(part.kind, parts[files[0]].kind, source_name(files[0]))
            parts[file] = part
    return parts


class _OnDisk(Generic[Parsed]):
    """Files of one kind, read in batches of rows."""

    def __init__(self, files: Sequence[LabelFile], kind: TableKind[Parsed], disk: Disk) -> None:
        self._first = source_name(files[0])
        self._kind = kind
        self._disk = disk
        self._columns: list[str] = []  # of the first file
        self._source_kind = ""

    def parse(self, file: LabelFile) -> Iterator[Parsed]:
        """Yield what a file holds, batch by batch."""
        kind, read = self._kind, self._kind.read
        with local_copy(file, read.max_size) as path:
            if is_database_url(file) or read.query is not None:
                raise InputError(
                    "databases are not read within a memory limit: leave out `--memory`"
                )
            kind.check_on_disk()
            content = read_content(Path(path), disk=self._disk, max_size=read.max_size)
            from_text = content.kind == "text"
            n_rows = 0
            choose = partial(self._choose, from_text)
            at_once = self._disk.rows_at_once
            for batch in read_batches(content, choose, max_rows=at_once, keep_codes=True):
                part = kind.parse(batch, from_text=from_text, first_row=n_rows)
                self._source_kind = self._source_kind or part.kind
                check_same_kind(part.kind, self._source_kind, self._first)
                yield part
                n_rows += batch.num_rows

    def _choose(self, from_text: bool, names: list[str]) -> list[str]:
        """Choose the columns of a table, which must be those of the first file."""
        chosen = self._kind.choose(names, from_text=from_text, on_disk=True)
        self._columns = self._columns or chosen
        check_same_columns(chosen, self._columns, self._first)
        return chosen


def combine(parts: Mapping[LabelFile, ParsedLabels], read: ReadOptions) -> Labels:
    """Return the labels of several files of one kind, one after the other, or of one."""
    files = list(parts)
    name = source_name(files[0])
    for file, part in parts.items():
        with file_errors_reported(file):
            _check_alike(part, parts[files[0]], name)
    parts = _with_common_sets(parts)
    schema: pa.Schema | None = None
    for file, part in parts.items():
        with file_errors_reported(file):
            schema = _common_schema(schema, part.table.schema, name)
    assert schema is not None
    builder = _builder_of(parts[files[0]], read)
    for file, part in parts.items():
        with file_errors_reported(file):
            table = part.table
            builder.add(table.select(schema.names).cast(schema) if len(files) > 1 else table)
            builder.end_source()
    with file_errors_reported(files):
        return _finish(builder, list(parts.values()))


def _builder_of(parsed: ParsedLabels, read: ReadOptions, disk: Disk | None = None) -> LabelBuilder:
    return LabelBuilder(
        parsed.options(read),
        disk=disk,
        from_text=parsed.from_text,
        na_is_empty=parsed.na_is_empty,
    )


def _finish(builder: LabelBuilder, parts: Sequence[ParsedLabels]) -> Labels:
    """Return the labels of all parts, with their known truths and how they were read."""
    built = builder.finish()
    title = parts[0].title
    columns = "" if title else built.read_as
    if len(parts) == 1:
        read_as = ", ".join(filter(None, (parts[0].read_as, columns)))
    else:
        notes = list(dict.fromkeys(note for part in parts for note in part.notes if note))
        some = ", ".join(notes[:_MAX_NOTES] + ["..."] * (len(notes) > _MAX_NOTES))
        how = f"{title} ({some})" if title and some else title or columns
        read_as = describe_files(len(parts), how)
    labels = Labels.from_built(built.described(read_as))
    golds = [part.gold for part in parts if part.gold is not None]
    return labels.with_gold(pa.concat_tables(golds)) if golds else labels


def _check_alike(part: ParsedLabels, first: ParsedLabels, first_name: str) -> None:
    check_same_columns(part.table.column_names, first.table.column_names, first_name)
    if list(part.categories or ()) != list(first.categories or ()):
        raise InputError(
            f"its categories are not those of {first_name}: pass all of them (`--categories A,B,C`)"
        )


def _with_common_sets(parts: Mapping[LabelFile, ParsedLabels]) -> dict[LabelFile, ParsedLabels]:
    """Return the files with sets of labels in all of them, if one has sets.

    A file in which every answer has one label does not say whether several may be chosen.
    """

    def lists(part: ParsedLabels) -> set[str]:
        return {field.name for field in part.table.schema if is_list(field.type)}

    some = set().union(*map(lists, parts.values()))
    return {
        file: _with_sets(part, some) if some - lists(part) else part for file, part in parts.items()
    }


def _with_sets(part: ParsedLabels, names: Iterable[str]) -> ParsedLabels:
    """Return a file whose labels, in the columns of these names, are sets of one label."""
    if part.as_sets is not None:
        table, gold = part.as_sets()
        return replace(part, table=table, gold=gold)
    table = part.table
    for name in names:
        column = table.column(name)
        if not is_list(column.type):
            labels = to_text(to_plain(column)).to_pylist()
            sets = [None if label is None else [label] for label in labels]
            place = table.column_names.index(name)
            table = table.set_column(place, name, pa.array(sets, pa.list_(pa.string())))
    return replace(part, table=table)


def _common_schema(schema: pa.Schema | None, other: pa.Schema, first_name: str) -> pa.Schema:
    """Return the types that the columns of all files have, such as decimals for whole numbers."""
    other = other.remove_metadata()
    if schema is None:
        return other
    for field in other:
        before = schema.field(field.name).type
        try:
            common_type(before, field.type)
        except pa.ArrowException:
            kinds = [getattr(kind, "value_type", kind) for kind in (field.type, before)]
            raise InputError(
                f"column {field.name!r} is {kinds[0]}, and that of {first_name} is {kinds[1]}: "
                "convert one of them"
            ) from None
    return pa.unify_schemas([schema, other], promote_options="permissive")
