"""Several files as one source of labels: lists, folders, patterns; and names of sources."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from annotruth.errors import InputError, hide_credentials, is_url, listed
from annotruth.io.options import ReadOptions
from annotruth.io.reading.file_errors import refuse_empty_name
from annotruth.labels.build import LabelBuilder
from annotruth.labels.encode import to_text
from annotruth.labels.frames import is_list
from annotruth.labels.scale import to_plain
from annotruth.labels.table import Labels

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from annotruth.io.formats.source import ParsedLabels

LabelFile = str | os.PathLike[str]
"""One file: its path or URL, or - for standard input."""

STANDARD_INPUT = "-"
_MAX_NOTES = 3
_FOLDERS, _NO_SUFFIX = "folders", "files without a suffix"


def source_name(source: LabelFile | Sequence[LabelFile]) -> str:
    """Return the name of a source in messages and headings: of several files, that of the first."""
    if not isinstance(source, str | os.PathLike):
        first, *others = source
        more = f" and {len(others):,} more file{'s' if len(others) > 1 else ''}" if others else ""
        return f"{source_name(first)}{more}"
    name = os.fspath(source)
    return "standard input" if name == STANDARD_INPUT else hide_credentials(name)


def find_files(source: LabelFile | Sequence[LabelFile]) -> list[LabelFile]:
    """Return the files of a source, in order: those of folders and patterns by name.

    Names in a folder that start with a dot or an underscore are left out, as those of Spark's
    marks are; so are folders among what matches a pattern.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    files = [file for each in sources for file in _expand(each)]
    seen: set[str] = set()
    for file in files:
        name = os.fspath(file)
        real = name if name == STANDARD_INPUT or is_url(name) else os.path.realpath(name)
        if real in seen:
            raise InputError(f"{source_name(file)} is read twice: name it once")
        seen.add(real)
    return files


def _expand(source: LabelFile) -> Iterator[LabelFile]:
    text = os.fspath(source)
    refuse_empty_name(text)
    if is_url(text):
        yield source
    elif Path(text).is_dir():
        yield from _files_in(Path(text))
    elif text == STANDARD_INPUT or os.path.lexists(text) or not glob.has_magic(text):
        yield source
    else:
        matches = find_matches(text)
        files = [match for match in matches if not Path(match).is_dir()]
        if not files:
            what = "only folders match" if matches else "no file matches"
            raise InputError(f"{text}: {what} this pattern: check the path")
        yield from files


def find_matches(pattern: str) -> list[str]:
    """Return the files and folders that a pattern matches, by name."""
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (Path has no absolute patterns)


def _files_in(folder: Path) -> list[Path]:
    """Return the files of a folder, which must be of one kind."""
    if (folder / "fit.json").is_file():
        raise InputError(f"{folder}: this is a saved fit: name it alone, or name files of labels")
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
    if not entries:
        raise InputError(
            f"{folder}: this is a folder with no saved fit in it and no files: name a file, or a "
            "folder of `--save`"
        )
    kinds = sorted({_kind_of(entry) for entry in entries})
    if kinds == [_FOLDERS]:
        raise InputError(
            f"{folder}: this is a folder with no saved fit in it, only folders: name a file, or a "
            f"pattern, such as '{folder}/*/*.csv'"
        )
    if len(kinds) > 1:
        suffix = next((kind for kind in kinds if kind.startswith(".")), "")
        raise InputError(
            f"{folder}: this folder holds several kinds of files ({listed(kinds)}): name those to "
            f"read, such as '{folder}/*{suffix}'"
        )
    return entries


def _kind_of(entry: Path) -> str:
    return _FOLDERS if entry.is_dir() else entry.suffix.lower() or _NO_SUFFIX


def combine(
    files: Sequence[LabelFile],
    read: ReadOptions,
    parse: Callable[[LabelFile, ReadOptions], ParsedLabels],
    reported: Callable[[LabelFile | Sequence[LabelFile]], AbstractContextManager[None]],
) -> Labels:
    """Return the labels of several files of one kind, one after the other.

    ``parse`` reads one file; ``reported`` names the file in whatever goes wrong.
    """
    parts: list[ParsedLabels] = []
    for file in files:
        with reported(file):
            part = parse(file, read)
            if parts:
                _check_alike(part, parts[0], source_name(files[0]))
            parts.append(part)
    parts = _with_common_sets(parts)
    schema: pa.Schema | None = None
    for file, part in zip(files, parts, strict=True):
        with reported(file):
            schema = _common_schema(schema, part.table.schema, source_name(files[0]))
    assert schema is not None
    first = parts[0]
    builder = LabelBuilder(first.options(read), from_text=first.from_text)
    for file, part in zip(files, parts, strict=True):
        with reported(file):
            builder.add(part.table.select(schema.names).cast(schema))
            builder.check_rows()
    with reported(files):
        labels = Labels.from_built(builder.finish())
        labels = replace(labels, read_as=_describe(parts, labels.read_as))
        golds = [part.gold for part in parts if part.gold is not None]
        return labels.with_gold(pa.concat_tables(golds)) if golds else labels


def describe_files(n: int, each: str) -> str:
    """Return one line on how several files were read."""
    return f"{n:,} files" + (f", each {each}" if each else "")


def check_same_columns(names: Sequence[str], first: Sequence[str], first_name: str) -> None:
    """Refuse a file whose columns of labels are not those of the first file."""
    if set(names) != set(first):
        raise InputError(
            f"the columns are {listed(names)}, and those of {first_name} are {listed(first)}: "
            "rename them, or read the files one by one"
        )


def check_same_kind(kind: str, first: str, first_name: str) -> None:
    """Refuse a file that is not of the kind of the first file."""
    if kind != first:
        raise InputError(
            f"this is {kind}, and {first_name} is {first}: give files of one kind, or convert them"
        )


def _check_alike(part: ParsedLabels, first: ParsedLabels, first_name: str) -> None:
    check_same_kind(_kind(part), _kind(first), first_name)
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


def _kind(part: ParsedLabels) -> str:
    return part.title or ("a text table" if part.from_text else "a table with types")


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
