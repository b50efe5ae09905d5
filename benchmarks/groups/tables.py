"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table under its title."""
    lines = [" | ".join(header), "|".join("---" for _ in header), *map(" | ".join, rows)]
    return "\n".join([f"**{title}**", "", *(f"| {line} |" for line in lines)])
