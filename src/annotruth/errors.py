"""Exceptions and warnings, and how values are shown in their messages.

All errors that annotruth raises on purpose derive from `AnnotruthError`. Their text is one line: what
is wrong, where (file, row, column, id), and what to do. Any other exception is a bug.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, Literal, TypeAlias

__all__ = [
    "AnnotruthError",
    "AnnotruthWarning",
    "ComparisonsError",
    "ConvergenceWarning",
    "InputError",
    "LabelsError",
    "NotFittedError",
    "OutputError",
]


# Characters that control a terminal, or change the order of text on it: C0 and C1 controls, marks and
# overrides of direction, other line ends, the byte order mark, and halves of surrogate pairs.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")  # stands for a byte that is not UTF-8
_MAX_NAME = 255  # bytes of a file's name
_MAX_WORD, _MAX_MESSAGE = 300, 2_000
_LINE_END = re.compile(r"\s*[\r\n]+\s*")


def printable(text: str) -> str:
    r"""Return text with control characters written as escapes, such as \x1b."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Return text on one line, with control characters written as escapes."""
    return printable(_LINE_END.sub(" ", text.strip()))


def concise(text: str) -> str:
    """Return a message on one line, with long words, and a long whole, shortened in the middle."""
    text = re.sub(rf"\S{{{_MAX_WORD},}}", lambda found: _cut(found[0], _MAX_WORD), one_line(text))
    return _cut(text, _MAX_MESSAGE)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: 2 * length // 3]}…{text[-length // 3 :]}"


# "PASSWORD" is what messages write in examples of URLs.
_PASSWORD = re.compile(
    r"(://[^:/@\s]*:)(?!PASSWORD@)\S*@|((?:password|passwd|pwd|passphrase)=)[^&\s'\"]*[^&\s'\":]"
)
_QUERY = re.compile(r"((?:https?|s3|gs)://[^\s?#]*)[?#]\S*")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DATABASE_URL = re.compile(r"(postgresql|postgres|mysql|mariadb)(\+\w+)?://")


def hide_passwords(text: str) -> str:
    """Return text with the passwords of URLs replaced by ***."""
    if "://" not in text:
        return text
    return _PASSWORD.sub(lambda found: f"{found[1]}***@" if found[1] else f"{found[2]}***", text)


def hide_credentials(source: str) -> str:
    """Return a source, or a word of a command, without the passwords and signatures of URLs."""
    return _QUERY.sub(r"\1?***", hide_passwords(source))


def is_url(source: Any) -> bool:
    """Return whether a source is a URL: of a file elsewhere, or of a database."""
    return isinstance(source, str) and _URL.match(source) is not None


def is_database_url(source: Any) -> bool:
    """Return whether a source is the URL of a database."""
    return isinstance(source, str) and _DATABASE_URL.match(source) is not None


class AnnotruthError(Exception):
    """Base of all errors raised on purpose; raised itself for a result that a model does not have."""

    def __str__(self) -> str:
        return concise(hide_passwords(super().__str__()))


class InputError(AnnotruthError, ValueError):
    """The labels, the truth or an option cannot be used: correct what the message names."""


class ComparisonsError(InputError):
    """Pair comparisons were given where labels are read: rank the items instead."""


class LabelsError(InputError):
    """Labels were given where pair comparisons are read: fit a model of labels instead."""


class NoQuestionsError(InputError):
    """A question was named where labels are of one question."""


class NotFittedError(AnnotruthError, AttributeError):
    """An estimator is not fitted: call ``fit``. ``hasattr(estimator, "result_")`` is False before."""


class OutputError(AnnotruthError, OSError):
    """A file or folder could not be written; files that existed before are unchanged."""


class AnnotruthWarning(UserWarning):
    """Base of all warnings: the result is valid, but probably not the one you want."""

    def __str__(self) -> str:
        return concise(super().__str__())


class ConvergenceWarning(AnnotruthWarning):
    """The fit reached ``max_iter`` before it converged: raise it, or ``tol``, or take care."""


Surface: TypeAlias = Literal["python", "command line", "service"]
"""Where a message is read: in Python, in a terminal, or in the pages and the API of the service."""

_surface: Surface = "python"

# Flags that are not the name of their option.
_FLAGS = {
    "machines": "--machine",
    "n_items": "--items",
    "n_annotators": "--annotators",
    "n_categories": "--categories",
    "n_labels": "--categories",
    "answers_per_item": "--labels-per-item",
    "spammer_share": "--spammers",
    "scores": "--scale ordinal",
}


@contextmanager
def messages_for(surface: Surface) -> Iterator[None]:
    """Name options in messages of this process as they are passed there."""
    global _surface
    before, _surface = _surface, surface
    try:
        yield
    finally:
        _surface = before


def option(name: str, value: object = None) -> str:
    """Return an option as the reader of a message passes it.

    That is ``duplicates='keep'`` in Python, `--duplicates keep` in a terminal, and ``duplicates=keep`` in
    the service; without a value, its name.
    """
    if _surface == "python":
        return name if value is None else f"{name}={value!r}"
    if _surface == "service":
        return name if value is None else f"{name}={_typed(value)}"
    return f"`{as_flag(name, value)}`"


def as_flag(name: str, value: object = None) -> str:
    """Return an option as it is typed in a terminal, such as ``--duplicates keep``."""
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is None or value is True:
        return flag
    typed = _typed(value)
    words = f"${typed!a}" if "\n" in typed else shlex.quote(typed)  # $'\n' of shells
    return f"{flag}={words}" if words.startswith("-") else f"{flag} {words}"


def setting(name: str, value: object = None) -> str:
    """Return an option of a model as the reader of a message passes it, such as `--set tol=0.001`."""
    if _surface == "command line":
        words = name if value is None else f"{name}={_typed(value)}"
        return f"`--set {shlex.quote(words)}`"
    return option(name, value)


# Functions that are not named as their command.
_FUNCTIONS = {"open": "open_labels"}


def function(name: str, *words: str) -> str:
    """Return a function or the command of its name: ``annotruth.rank`` or `annotruth rank`.

    ``words`` follow the name of the command.
    """
    if _surface == "python":
        return f"annotruth.{_FUNCTIONS.get(name, name)}"
    return f"`{' '.join(['annotruth', name, *map(shlex.quote, words)])}`"


def _typed(value: object) -> str:
    if isinstance(value, Mapping):
        return _with_commas(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return _with_commas(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _with_commas(entries: Iterable[str]) -> str:
    """Return entries between commas; one that contains a comma is quoted, as in a CSV."""
    quote = '"'
    return ",".join(
        f'"{entry.replace(quote, quote * 2)}"' if {",", quote} & {*entry} else entry
        for entry in entries
    )


def did_you_mean(name: object, names: Iterable[object]) -> str:
    """Return the name that a wrong one resembles, as the end of a message; empty if none does."""
    known = {str(each).lower(): str(each) for each in names}
    word = str(name).lower().replace("_", "-" if any("-" in each for each in known) else "_")
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.7)
    return f"; did you mean {shorten(known[found[0]])}?" if found else ""


def check_path(path: object, what: str) -> None:
    """Refuse what is no path: of another type, empty, with a NUL character, not UTF-8, or too long."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputError(f"{what} is {shown(path)}: give a path")
    if _SURROGATE.search(text):
        raise InputError(f"{what} is {shown(text)}, which is not UTF-8: give another name")
    if max(map(len, text.encode().split(b"/"))) > _MAX_NAME:
        raise InputError(f"{shorten(text)}: the name is too long: choose a shorter one")


def shown(value: Any, max_length: int = 60) -> str:
    """Return a value for a message, on one line and not too long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        return "a number of very many digits"
    return text if len(text) <= max_length else f"{text[: max_length - 4]}...{text[-1]}"


def listed(names: Iterable[object], max_names: int = 10) -> str:
    """Return names as a list, the first of many, or "none"."""
    rest = iter(names)
    first = [shorten(str(name)) for name in islice(rest, max_names)]
    more = sum(1 for _ in rest)
    return (", ".join(first) or "none") + (f" and {more:,} more" if more else "")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: 1 label, 3,000 labels."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def shorten(name: str, max_length: int = 60) -> str:
    """Return a name, printable, and cut in the middle if it is too long for a list of names."""
    name = printable(name)
    return name if len(name) <= max_length else _cut(name, max_length - 1)


_NEXT_STEPS = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space or write to another disk"
    ),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS), "choose a place that you may write to"
    ),
    **dict.fromkeys(
        (errno.ENOTDIR, errno.EEXIST),
        "a file is in the place of a folder, so choose another path",
    ),
    **dict.fromkeys((errno.EBUSY, errno.ETIMEDOUT), "try again when that has ended"),
    errno.EISDIR: "a folder of that name exists, so choose another name",
    errno.ELOOP: "the link leads to itself, so choose another path",
    errno.ENAMETOOLONG: "choose a shorter path",
}


@contextmanager
def system_errors_reported(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the system's errors in writing a path into an `OutputError` with the next step."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        step = _NEXT_STEPS.get(error.errno or 0, "choose another path")
        raise OutputError(f"cannot write {os.fspath(path)}: {reason}; {step}") from error


def describe_exhaustion(error: MemoryError | RecursionError) -> str:
    """Return what to do where memory, or the depth of calls, was not enough."""
    if isinstance(error, RecursionError):
        return "the input is nested too deeply: simplify or export it again"
    # Only the texts of NumPy's and Arrow's errors say how much was asked for.
    found = re.search(r"allocate ([\d.]+ \w+)|size (\d+)", str(error))
    needed = "" if found is None else f" (the last {found[1] or f'{int(found[2]):,} bytes'} failed)"
    return (
        f"there is not enough memory{needed}: pass {option('memory', '1GB')}, which keeps labels on "
        "disk, or use a machine with more"
    )
