"""Comparisons whose arrays are on disk, so that memory holds a small part of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.comparisons.build import ids_of
from annotruth.comparisons.outcomes import WinnerReadings
from annotruth.comparisons.rows import ParsedComparisons, check_any, find_rows
from annotruth.comparisons.table import Comparisons
from annotruth.comparisons.votes import UnsortedVotes, in_order_of_codes
from annotruth.kernels.arrays import Floats, slices
from annotruth.labels.encode import BatchEncoder
from annotruth.labels.frames import default_frame
from annotruth.labels.on_disk.disk import Disk

_CODES = ("left", "right", "annotator", "context")
_BYTES_PER_VOTE = 100  # what sorting a vote takes at most, with room for everything else


class RowVotes(NamedTuple):
    """The codes of comparisons in the order of the input.

    Examples
    --------
    >>> one = np.zeros(1, np.int32)
    >>> RowVotes(one, one, one, one.astype(np.int8)).at(slice(0, 0)).left.tolist()
    []
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    annotator: NDArray[np.int32]
    outcome: NDArray[np.int8]
    context: NDArray[np.int32] | None = None

    def at(self, rows: Any) -> RowVotes:
        """Return some of the rows, in memory."""
        left, right, annotator, outcome = (np.array(each[rows]) for each in self[:4])
        context = None if self.context is None else np.array(self.context[rows])
        return RowVotes(left, right, annotator, outcome, context)


@dataclass(frozen=True, eq=False, repr=False)
class MappedComparisons(Comparisons):
    """Comparisons whose arrays, and whatever models put beside them, are on disk.

    What has one entry per item or annotator is in memory.

    Attributes
    ----------
    disk
        Where the arrays are.
    rows
        The codes of the comparisons in the order of the input.

    Examples
    --------
    >>> import tempfile
    >>> from pyarrow import parquet
    >>> from annotruth import read_comparisons
    >>> columns = {"left": ["a"], "right": ["b"], "annotator": ["ann"], "winner": ["tie"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parquet.write_table(pa.table(columns), f"{folder}/votes.parquet")
    ...     votes = read_comparisons(f"{folder}/votes.parquet", memory="1GB")
    >>> type(votes).__name__, votes.on_disk
    ('MappedComparisons', True)
    """

    on_disk: ClassVar[bool] = True

    disk: Disk = field(kw_only=True)
    rows: RowVotes = field(kw_only=True)

    @property
    def votes(self) -> UnsortedVotes:
        """The comparisons in the order of the input."""
        rows = self.rows
        return UnsortedVotes(self.n_items, rows.left, rows.right, rows.outcome, self.disk)

    def subset(self, keep: NDArray[np.bool_]) -> Comparisons:
        """Return the comparisons where ``keep`` is true, in memory."""
        in_order = {each.name: getattr(self, each.name) for each in fields(Comparisons)}
        return Comparisons(**in_order).subset(keep)

    def zeros(self, shape: int | tuple[int, ...]) -> Floats:
        """Return an array of zeros, on disk."""
        return self.disk.zeros(shape)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and exceeds the memory that may be used."""
        self.disk.check_room(n_bytes, what)

    def to_arrow(self, rows: slice = slice(None)) -> pa.Table:
        """Return some comparisons in the order of the input, as `Comparisons.to_arrow` does."""
        return self._decoded(*self.rows.at(rows))

    def in_row_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return one value per comparison in the order of the input, on disk."""
        return self.disk.in_row_order(values, self.row)


class DiskBuilder:
    """Makes `MappedComparisons` of tables that come in batches, in codes as in memory.

    Rows that were written twice are not looked for.

    Parameters
    ----------
    disk
        Where the comparisons are kept.

    Examples
    --------
    >>> roles = {"left": ["a"], "right": ["b"], "annotator": ["ann"], "winner": ["b"]}
    >>> columns = {role: pa.chunked_array([values]) for role, values in roles.items()}
    >>> builder = DiskBuilder(Disk(1_000_000))
    >>> for first_row in range(2):
    ...     builder.add(ParsedComparisons(columns), first_row)
    >>> builder.finish().outcome.tolist()
    [1, 1]
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._encoders = {role: BatchEncoder() for role in ("item", "annotator", "context")}
        self._columns = {name: disk.column(np.int32) for name in _CODES}
        self._outcomes = {name: disk.column(np.int8) for name in ("by_word", "by_id")}
        self._readings = WinnerReadings()
        self._n_rows = 0
        self._parsed: list[ParsedComparisons] = []  # the first

    def add(self, parsed: ParsedComparisons, first_row: int) -> None:
        """Add a batch whose first row has this position in its file."""
        self._parsed = self._parsed or [parsed]
        found = find_rows(parsed, first_row)
        self._n_rows += found.n_rows
        if not len(found.rows):
            return
        by_word, by_id = self._readings.add(found.winner, found.pairs, found.rows + first_row + 1)
        left, right = np.split(self._encoders["item"].add(found.item), 2)
        self._columns["left"].append(left)
        self._columns["right"].append(right)
        self._columns["annotator"].append(self._encoders["annotator"].add(found.annotator))
        if found.context is not None:
            self._columns["context"].append(self._encoders["context"].add(found.context))
        self._outcomes["by_word"].append(by_word)
        self._outcomes["by_id"].append(by_id)
        self._disk.check_room(sum(each.n_bytes for each in self._encoders.values()), "ids")

    def finish(self) -> MappedComparisons:
        """Return all comparisons."""
        n = len(self._columns["left"])
        check_any(self._n_rows, n)
        first = self._parsed[0].with_notes(self._readings.note())
        ids = {
            role: ids_of(encoder, from_text=first.from_text)
            for role, encoder in self._encoders.items()
        }
        rows = self._row_votes()
        items = ids["item"].take(pa.array(_as_in_memory(rows, len(ids["item"]))))
        if not first.sides_known:
            for at in slices(n):
                rows.left[at], rows.right[at], rows.outcome[at] = in_order_of_codes(
                    rows.left[at], rows.right[at], rows.outcome[at]
                )
        has_contexts = rows.context is not None
        return MappedComparisons(
            items=items,
            annotators=ids["annotator"],
            **_sort(self._disk, rows, len(ids["annotator"])),
            sides_known=first.sides_known,
            contexts=ids["context"] if has_contexts else None,
            n_dropped=self._n_rows - n,
            frame=default_frame(),
            read_as=first.read_as,
            disk=self._disk,
            rows=rows,
        )

    def _row_votes(self) -> RowVotes:
        """Return the codes in the order of the input."""
        outcome = self._outcomes["by_id" if self._readings.are_ids() else "by_word"].to_array()
        has_context = len(self._columns["context"]) == len(outcome)
        left, right, annotator, context = (self._columns[name].to_array() for name in _CODES)
        return RowVotes(left, right, annotator, outcome, context if has_context else None)


def _as_in_memory(rows: RowVotes, n_items: int) -> NDArray[np.int64]:
    """Renumber items as in memory: those on the left first, in order of first appearance.

    Codes are replaced in place. Returns the old code of each new one.
    """
    number = np.full(n_items, -1, dtype=np.int32)
    n = 0
    for codes in (rows.left, rows.right):
        for at in slices(len(codes)):
            some = codes[at]
            unseen = some[number[some] < 0]
            if len(unseen):
                new, first = np.unique(unseen, return_index=True)
                number[new[np.argsort(first)]] = np.arange(n, n + len(new))
                n += len(new)
            codes[at] = number[some]
    return np.argsort(number)


def _sort(disk: Disk, rows: RowVotes, n_annotators: int) -> dict[str, Any]:
    """Return the fields of comparisons sorted by annotator, one range of annotators at a time."""
    n = len(rows.left)
    pointers = np.zeros(n_annotators + 1, dtype=np.int64)
    for at in slices(n):
        pointers[1:] += np.bincount(rows.annotator[at], minlength=n_annotators)
    np.cumsum(pointers, out=pointers)
    names = ["left", "right", "outcome", *(["context"] if rows.context is not None else [])]
    columns = {name: disk.column(getattr(rows, name).dtype) for name in names}
    columns["row"] = disk.column(np.int64)
    for some, row in _ranges(rows, pointers, max(1, disk.memory // _BYTES_PER_VOTE)):
        order = np.argsort(some.annotator, kind="stable")
        for name in names:
            columns[name].append(getattr(some, name)[order])
        columns["row"].append(row[order])
    return {name: column.to_array() for name, column in columns.items()} | {
        "annotator_ptr": pointers
    }


def _ranges(
    rows: RowVotes, pointers: NDArray[np.int64], max_votes: int
) -> Iterator[tuple[RowVotes, NDArray[np.int64]]]:
    """Yield the comparisons of ranges of annotators, each small enough for memory, and their rows."""
    n_annotators = len(pointers) - 1
    cuts = np.searchsorted(pointers, np.arange(0, pointers[-1], max_votes))
    for first, last in pairwise(np.unique(np.append(cuts, n_annotators)).tolist()):
        parts: list[NDArray[np.int64]] = []
        for at in slices(len(rows.annotator)):
            annotator = rows.annotator[at]
            parts.append(np.flatnonzero((annotator >= first) & (annotator < last)) + at.start)
        row = np.concatenate(parts)
        yield rows.at(row), row
