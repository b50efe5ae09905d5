"""Names and files of a source, several files of one kind, and errors of one line that name the file."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from annotruth.errors import (
    InputError,
    OutputError,
    check_path,
    describe_exhaustion,
    function,
    hide_credentials,
    is_url,
    listed,
    one_line,
    option,
    printable,
    shorten,
)
from annotruth.observations.columns.names import ColumnsNotFoundError
from annotruth.observations.encode import common_type, to_text
from annotruth.observations.frames import is_list
from annotruth.observations.options import ParsedLabels
from annotruth.observations.scale import to_plain

LabelFile = str | os.PathLike[str]
"""One file: its path or URL, or - for standard input."""

STANDARD_INPUT = "-"
_MAX_REPEATED = 40  # characters of a name that a message has twice
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
            f"{folder}: this is a folder with no saved fit in it and no files: name a file, or the "
            "folder of a saved fit"
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


def refuse_empty_name(source: LabelFile) -> None:
    """Refuse the empty text, which `Path` takes for the current folder, and what can be no name."""
    if not os.fspath(source):
        raise InputError("the name of a file is empty: name a file")
    if not is_url(os.fspath(source)):
        check_path(source, "the name of a file")


def refuse_other_than_paths(source: Any, function: str) -> None:
    """Refuse what is neither a path nor a list of paths; ``function`` takes data in memory."""
    several = source if isinstance(source, list | tuple) else [source]
    wrong = [each for each in several if not isinstance(each, str | os.PathLike)]
    if wrong or not several:
        what = f"of type {type(wrong[0]).__name__}" if wrong else "an empty list"
        raise InputError(
            f"the source is {what}: give the path of a file, or a list of paths; frames and lists of "
            f"rows are for {function}"
        )


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
        kind, reason, cause = type(error), str(error), error.__cause__
    except (MemoryError, RecursionError) as error:
        reason, cause = describe_exhaustion(error), error
    except (FileNotFoundError, NotADirectoryError) as error:
        reason, cause = "no such file: check the path", error
    except IsADirectoryError as error:
        reason = "this is a folder with no saved fit in it: name a file, or that of a fit"
        cause = error
    except PermissionError as error:
        reason, cause = "the file may not be read: check its permissions", error
    except UnicodeEncodeError as error:
        reason, cause = "its name is not UTF-8: rename the file", error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            reason = "this is a link that leads to itself: name the file"
        else:
            what = shorten(one_line(str(error)), 200)
            reason = f"the file cannot be read ({what}): check that it is complete"
        cause = error
    else:
        return
    if issubclass(kind, ColumnsNotFoundError):
        name = source_name(path) if isinstance(path, str | os.PathLike) else ""
        short = name if 0 < len(name) <= _MAX_REPEATED else "FILE"
        reason = f"{reason}; see {function('open', short)}"
    raise kind(f"{source_name(path)}: {reason}") from cause


@contextmanager
def file_named_in_errors(data: Any) -> Iterator[None]:
    """Put the path before messages about what a file holds, where ``data`` is a path."""
    try:
        yield
    except InputError as error:
        if not isinstance(data, str | Path):
            raise
        name = source_name(data)
        if str(error).startswith(printable(f"{name}: ")):
            raise
        raise type(error)(f"{name}: {error}") from error


def labels_made_alike(
    parts: Mapping[LabelFile, ParsedLabels],
) -> dict[LabelFile, ParsedLabels]:
    """Return labels of several files in the same columns and types; refuse others."""
    name, first = source_name(next(iter(parts))), next(iter(parts.values()))
    for file, part in parts.items():
        with file_errors_reported(file):
            check_same_columns(part.table.column_names, first.table.column_names, name)
            if list(part.categories or ()) != list(first.categories or ()):
                raise InputError(
                    f"its categories are not those of {name}: pass all of them "
                    f"({option('categories', ['A', 'B', 'C'])})"
                )
    parts, schema = _with_common_sets(parts), pa.schema([])
    for file, part in parts.items():
        with file_errors_reported(file):
            schema = _common_schema(schema, part.table.schema, name)
    return {
        file: replace(part, table=part.table.select(schema.names).cast(schema))
        for file, part in parts.items()
    }


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


def _common_schema(schema: pa.Schema, other: pa.Schema, first_name: str) -> pa.Schema:
    """Return the types that the columns of all files have, such as decimals for whole numbers."""
    other = other.remove_metadata()
    if not schema.names:
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
