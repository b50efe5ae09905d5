"""What a format is, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from annotruth.io.formats.source import Source


@dataclass(frozen=True)
class ParsedLabels:
    """Labels as a long table, with what a format knows beside them.

    Attributes
    ----------
    table
        One row a label: item, annotator, label; the caller's own columns of a long table.
    from_text
        Whether the columns had no types, as in a CSV.
    notes
        What was found and left out, in words.
    gold
        Known truths: item, label.
    categories
        All categories, where the file names them.
    title
        What the file is; empty for a long table.
    """

    table: pa.Table
    from_text: bool = False
    notes: Sequence[str] = ()
    gold: pa.Table | None = None
    categories: Sequence[Any] | None = None
    title: str = ""

    @property
    def read_as(self) -> str:
        """Say in a line what the file was taken for."""
        notes = ", ".join(note for note in self.notes if note)
        return f"{self.title} ({notes})" if notes else self.title


@dataclass(frozen=True)
class Format:
    """A way of writing labels that is recognised by content.

    Attributes
    ----------
    name, title
        What it is called as an option, and in words.
    recognise
        Says of a source, looking at its names, first rows or first record, whether it is one.
    read
        Reads it.
    """

    name: str
    title: str
    recognise: Callable[[Source], bool]
    read: Callable[[Source], ParsedLabels]
