"""Values, names and numbers in messages: on one line, and not too long."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any


def shown(value: Any, max_length: int = 60) -> str:
    """Return a value for a message, on one line and not too long."""
    text = repr(value)
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
    """Return a name, shortened if it is too long for a list of names."""
    return name if len(name) <= max_length else f"{name[: max_length - 1]}…"
