"""Errors of one line that name the file."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from annotruth.errors import (
    InputError,
    OutputError,
    check_path,
    describe_exhaustion,
    is_url,
    one_line,
    printable,
    shorten,
)

if TYPE_CHECKING:
    from annotruth.io.sources import LabelFile


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
        reason = "this is a folder with no saved fit in it: name a file, or a folder of `--save`"
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
