"""Values, names and numbers as messages write them: on one line, and never too long."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any


def shown(value: Any, most: int = 60) -> str:
    """Write a value for a message, on one line and not too long."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 4]}...{text[-1]}"


def listed(names: Iterable[object], most: int = 10) -> str:
    """Name them, or the first of many; none for nobody."""
    rest = iter(names)
    first = [cut(str(name)) for name in islice(rest, most)]
    more = sum(1 for _ in rest)
    return (", ".join(first) or "none") + (f" and {more:,} more" if more else "")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Say how many there are of what."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def cut(name: str, most: int = 60) -> str:
    """Shorten a name that is too long for a list of names."""
    return name if len(name) <= most else f"{name[: most - 1]}…"
