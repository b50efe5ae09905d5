"""Names and files of a source, and errors of one line that name the file."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    printable,
    shorten,
)
from annotruth.observations.columns.names import ColumnsNotFoundError

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
