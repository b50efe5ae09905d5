"""What must hold for any input: one line for bad input, no traceback, no control characters."""

from __future__ import annotations

import contextlib
import io
import sys
import unicodedata
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import annotruth as at
from annotruth.app.cli import main

MAX_LINE = 2_100
"""The longest message, in characters."""


class Failed(Exception):  # noqa: N818
    """What was found does not hold."""


class Finished(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def run_command(*arguments: str) -> Finished:
    """Run `annotruth` with these arguments in this process, and check how it ended."""
    # As the streams of a terminal are.
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", "strict", newline="\n")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", newline="\n")
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv = ["annotruth", *arguments]
    sys.stdout, sys.stderr = out, err
    code: Any = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            main()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.argv, sys.stdout, sys.stderr = before
    written = []
    for stream in (out, err):
        stream.flush()
        written.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    done = Finished(0 if code is None else code, *written)
    check_finished(done)
    return done


def check_finished(done: Finished) -> None:
    """Raise unless a command ended as documented."""
    if done.code not in (0, 1, 2):
        raise Failed(f"exit code {done.code!r}")
    check_text(done.out)
    check_text(done.err)
    if done.code:
        check_message(done.err.rstrip("\n"))


def check_message(text: str) -> None:
    """Raise unless a message is one line of a readable length."""
    if not text.strip():
        raise Failed("no message")
    if len(text.splitlines()) > 1:
        raise Failed(f"a message of several lines: {text[:300]!r}")
    if len(text) > MAX_LINE:
        raise Failed(f"a message of {len(text)} characters: {text[:200]!r}...")


def check_text(text: str) -> None:
    """Raise if a text has a traceback, or characters that a terminal would act on."""
    if "Traceback (most recent call last)" in text:
        raise Failed(f"a traceback: {text[-300:]!r}")
    control = [c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs")]
    if control:
        place = text.index(control[0])
        raise Failed(f"a control character: {text[max(place - 60, 0) : place + 60]!r}")


def refused_or(compute: Callable[[], Any]) -> Any:
    """Return what is computed, or None if it is refused in one line."""
    with contextlib.suppress(at.AnnotruthError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compute()
        except at.AnnotruthError as error:
            check_message(str(error))
            check_text(str(error))
            raise
    return None


def expect_counts(found: dict[str, Any], expected: dict[str, int]) -> None:
    """Raise if any number is not the expected one."""
    wrong = {name: (found.get(name), n) for name, n in expected.items() if found.get(name) != n}
    if wrong:
        raise Failed(f"wrong counts (found, expected): {wrong}")
