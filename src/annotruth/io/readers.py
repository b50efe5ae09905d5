"""Labels from files in any common format, and from what callers have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError, hide_credentials, is_url
from annotruth.io.drop_list import leave_out
from annotruth.io.formats.source import ParsedLabels
from annotruth.io.parse import (
    asks_question,
    load_table,
    local_copy,
    open_content,
    parse_file,
    parse_frame,
    parse_opened,
    parse_other_format,
    parse_several,
    read_long_table,
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
from annotruth.observations.encode import to_text
from annotruth.observations.frames import is_list
from annotruth.observations.options import ALL_QUESTIONS, ReadOptions
from annotruth.observations.scale import to_plain
from annotruth.observations.table import Labels
from annotruth.observations.validate import describe_codes

_MAX_NOTES = 3


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
    files = find_files(source) if single is None else [single]
    if read.memory is not None:
        from annotruth.io.parse import read_to_disk

        return read_to_disk(files, read)
    if len(files) > 1:
        return combine(files, read, parse_file)
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
            is_text = content.kind == "text"
            labels = Labels.from_arrow(table, read, from_text=is_text, na_is_empty=is_text)
            how = filter(None, (content.sheet, labels.read_as))
            return replace(labels, read_as=", ".join(how)) if content.sheet else labels
        return labels_of(parse_other_format(file, content, read), read)


def combine(
    files: Sequence[LabelFile],
    read: ReadOptions,
    parse: Callable[[LabelFile, ReadOptions], ParsedLabels],
) -> Labels:
    """Return the labels of several files of one kind, one after the other; ``parse`` reads one."""
    parts: list[ParsedLabels] = []
    for file in files:
        with file_errors_reported(file):
            part = parse(file, read)
            if parts:
                _check_alike(part, parts[0], source_name(files[0]))
            parts.append(part)
    parts = _with_common_sets(parts)
    schema: pa.Schema | None = None
    for file, part in zip(files, parts, strict=True):
        with file_errors_reported(file):
            schema = _common_schema(schema, part.table.schema, source_name(files[0]))
    assert schema is not None
    first = parts[0]
    builder = LabelBuilder(
        first.options(read), from_text=first.from_text, na_is_empty=first.na_is_empty
    )
    for file, part in zip(files, parts, strict=True):
        with file_errors_reported(file):
            builder.add(part.table.select(schema.names).cast(schema))
            builder.check_rows()
    with file_errors_reported(files):
        built = builder.finish()
        labels = Labels.from_built(built.described(_describe(parts, built.read_as)))
        golds = [part.gold for part in parts if part.gold is not None]
        return labels.with_gold(pa.concat_tables(golds)) if golds else labels


def _check_alike(part: ParsedLabels, first: ParsedLabels, first_name: str) -> None:
    check_same_kind(part.kind, first.kind, first_name)
    check_same_columns(part.table.column_names, first.table.column_names, first_name)
    if list(part.categories or ()) != list(first.categories or ()):
        raise InputError(
            f"its categories are not those of {first_name}: pass all of them (`--categories A,B,C`)"
        )


def _with_common_sets(parts: list[ParsedLabels]) -> list[ParsedLabels]:
    """Return the files with sets of labels in all of them, if one has sets.

    A file in which every answer has one label does not say whether several may be chosen.
    """

    def lists(part: ParsedLabels) -> set[str]:
        return {field.name for field in part.table.schema if is_list(field.type)}

    some = set().union(*map(lists, parts))
    return [_with_sets(part, some) if some - lists(part) else part for part in parts]


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
            pa.unify_schemas(
                [pa.schema([(field.name, before)]), pa.schema([(field.name, field.type)])],
                promote_options="permissive",
            )
        except pa.ArrowException:
            kinds = [getattr(kind, "value_type", kind) for kind in (field.type, before)]
            raise InputError(
                f"column {field.name!r} is {kinds[0]}, and that of {first_name} is {kinds[1]}: "
                "convert one of them"
            ) from None
    return pa.unify_schemas([schema, other], promote_options="permissive")


def _describe(parts: Sequence[ParsedLabels], columns: str) -> str:
    """Return one line on how files were read: their number, format, and the first notes."""
    notes = list(dict.fromkeys(note for part in parts for note in part.notes if note))
    shown = notes[:_MAX_NOTES] + ["..."] * (len(notes) > _MAX_NOTES)
    title = parts[0].title
    if title:
        columns = f"{title} ({', '.join(shown)})" if shown else title
    return describe_files(len(parts), columns)


def labels_of(parsed: ParsedLabels, read: ReadOptions) -> Labels:
    """Return the labels that a format found."""
    labels = Labels.from_arrow(
        parsed.table,
        parsed.options(read),
        from_text=parsed.from_text,
        na_is_empty=parsed.na_is_empty,
    )
    also = describe_codes(labels.scale) if parsed.title else labels.read_as
    labels = replace(labels, read_as=", ".join(filter(None, (parsed.read_as, also))))
    return labels if parsed.gold is None else labels.with_gold(parsed.gold)
