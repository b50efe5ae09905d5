"""What differs between fits of labels, of comparisons and of sets of labels: one `Kind` for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from annotruth.bindings import bound
from annotruth.models.fits.notes import Note

if TYPE_CHECKING:
    from annotruth.io.writers import LazyTable
    from annotruth.models.result import Fit


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What differs between fits of one kind of data and those of others."""

    unit: str
    """What annotators give, in words."""

    too_few: tuple[str, str]
    """The verdict on annotators of whom too little is known, and their behavior."""

    no_spammers: tuple[str, ...] = ()
    """Behaviors of annotators who are no spammers, whatever their reliability."""

    tables: Mapping[str, Callable[[Fit[Any]], pa.Table]]
    """The tables by name, beside those of further results."""

    written: Callable[[Fit[Any]], dict[str, LazyTable | pa.Table]]
    """Returns the tables that are written to files."""

    summary: Callable[[Fit[Any]], list[str]]
    """Returns the lines of the summary, before those of further results."""

    notes: Callable[[Fit[Any]], list[Note]]
    """Returns what limits the results."""

    counts: Callable[[Fit[Any]], dict[str, Any]]
    """Returns the entries of ``fit.json`` on the size of the data, after items and annotators."""

    entries: Callable[[Fit[Any]], dict[str, Any]]
    """Returns the other entries of ``fit.json`` that only this kind has."""

    describe: Callable[[Any], str] = methodcaller("describe")
    """Returns the data in one line."""

    saved_as: str | None = None
    """The entry ``kind`` of ``fit.json``; None for labels, which have no such entry."""

    names: tuple[str, ...] = ()
    """What completion offers beside the names that all fits have."""


def kind_of(name: str) -> Kind:
    """Return what is different for a kind: "labels", "distributed", "comparisons" or "sets"."""
    kind: Kind = bound(f"{name}.kind")
    return kind
