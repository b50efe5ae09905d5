"""Codes of labels on disk, and sorting them there."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annotruth.kernels.arrays import slices
from annotruth.labels.build import MAX_NAMED_REPEATS, ArrangedCodes
from annotruth.labels.layout import Layout, RowCodes, TableSize, arrange_with_policy
from annotruth.labels.on_disk.disk import Disk
from annotruth.labels.options import DuplicatePolicy

_BYTES_PER_LABEL = 200  # what sorting a label takes at most, with room for everything else
_COUNTED_AT_ONCE = 1 << 22


class DiskStore:
    """Keeps the codes of labels on disk.

    Attributes
    ----------
    disk
        Where they are.
    rows
        The codes in row order, once the labels are sorted.

    Examples
    --------
    >>> store = DiskStore(Disk(1_000_000))
    >>> store.append(RowCodes(np.array([1, 0]), np.array([0, 0]), np.array([0, 0])))
    >>> arranged = store.arrange(np.zeros(1, dtype=np.int32), TableSize(2, 1, 1), "refuse")
    >>> arranged.layout.row.tolist()
    [1, 0]
    """

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._columns = [disk.column(np.int32) for _ in RowCodes._fields]
        self.rows: RowCodes | None = None

    def append(self, codes: RowCodes) -> None:
        """Add the codes of some rows."""
        for column, values in zip(self._columns, codes, strict=True):
            column.append(values)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and exceeds the memory that may be used."""
        self.disk.check_room(n_bytes, what)

    def arrange(
        self, category: NDArray[np.int32], size: TableSize, duplicates: DuplicatePolicy
    ) -> ArrangedCodes:
        """Sort all labels as `annotruth.labels.layout.arrange` does.

        They are distributed by ranges of items, each small enough to be sorted in memory.
        """
        rows = RowCodes(*(column.to_array() for column in self._columns))
        for at in slices(len(rows.label)):
            rows.label[at] = category[rows.label[at]]
        arranged = _RangeSort(self.disk, rows, size).run(duplicates)
        self.rows = rows
        if len(arranged.left_out):
            self.rows = _renumber(self.disk, rows, arranged.layout.row, arranged.left_out)
        return arranged


class _RangeSort:
    """Sorts labels on disk, one range of items at a time."""

    def __init__(self, disk: Disk, rows: RowCodes, size: TableSize) -> None:
        self._disk = disk
        self._rows = rows
        self._size = size
        n = len(rows.item)
        self._row_type = np.dtype(np.int32 if n <= np.iinfo(np.int32).max else np.int64)

    def run(self, duplicates: DuplicatePolicy) -> ArrangedCodes:
        """Sort every range, and join them."""
        kinds: tuple[DTypeLike, ...] = (np.int64, np.int32, np.int64, np.int32, self._row_type)
        columns = {
            name: self._disk.column(kind) for name, kind in zip(Layout._fields, kinds, strict=True)
        }
        bounds, starts = self._ranges()
        distributed = self._distribute(bounds, starts)
        changed: list[tuple[int, int, int, int]] = []
        left_out = [np.empty(0, dtype=np.int64)]
        n_cells = n_labels = n_changed = 0
        for number, (first, last) in enumerate(pairwise(bounds.tolist())):
            *columns_here, row = (
                np.array(values[starts[number] : starts[number + 1]]) for values in distributed
            )
            codes = RowCodes(*columns_here)
            codes.item[...] -= first
            size = self._size._replace(n_items=last - first)
            layout, left_out_here, changed_here = arrange_with_policy(codes, size, duplicates)
            n_changed += len(changed_here)
            some = changed_here[:MAX_NAMED_REPEATS]
            item, annotator, label = codes.take(some)
            changed += zip(
                row[some].tolist(),
                (item + first).tolist(),
                annotator.tolist(),
                label.tolist(),
                strict=True,
            )
            left_out.append(row[left_out_here])
            row = np.delete(row, left_out_here)
            columns["item_ptr"].append(layout.item_ptr[:-1] + n_cells)
            columns["cell_category"].append(layout.cell_category)
            columns["cell_ptr"].append(layout.cell_ptr[:-1] + n_labels)
            columns["annotator"].append(layout.annotator)
            columns["row"].append(row[layout.row])
            n_cells += len(layout.cell_category)
            n_labels += len(layout.row)
        columns["item_ptr"].append(np.array([n_cells]))
        columns["cell_ptr"].append(np.array([n_labels]))
        first_changed = np.array(sorted(changed)[:MAX_NAMED_REPEATS], dtype=np.int64)
        return ArrangedCodes(
            Layout(**{name: column.to_array() for name, column in columns.items()}),
            n_changed,
            RowCodes(*first_changed.reshape(-1, 4).T[1:]),
            np.sort(np.concatenate(left_out)),
        )

    def _ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return bounds of ranges of items whose labels can be sorted in memory.

        The second array is the number of labels before each bound.
        """
        n_items = self._size.n_items
        starts = np.zeros(n_items + 1, dtype=np.int64)
        for at in slices(len(self._rows.item), _COUNTED_AT_ONCE):
            starts[1:] += np.bincount(self._rows.item[at], minlength=n_items)
        np.cumsum(starts, out=starts)
        max_labels = max(1, self._disk.memory // _BYTES_PER_LABEL)
        cuts = np.searchsorted(starts, np.arange(0, starts[-1], max_labels))
        bounds = np.unique(np.append(cuts, n_items))
        return bounds, starts[bounds]

    def _distribute(
        self, bounds: NDArray[np.int64], starts: NDArray[np.int64]
    ) -> tuple[NDArray[np.signedinteger[Any]], ...]:
        """Return item, annotator, label and row, grouped by range; rows stay in order."""
        n = len(self._rows.item)
        kinds = (*(codes.dtype for codes in self._rows), self._row_type)
        distributed = tuple(self._disk.zeros(n, kind) for kind in kinds)
        filled = starts[:-1].copy()
        for at in slices(n):
            columns = [codes[at] for codes in self._rows]
            row = np.arange(at.start, at.stop, dtype=self._row_type)
            range_of = np.searchsorted(bounds[1:-1], columns[0], side="right")
            # 16-bit integers are sorted by radix, which is much faster.
            range_of = range_of.astype(np.uint16 if len(filled) < 1 << 16 else np.int64)
            order = np.argsort(range_of, kind="stable")
            counts = np.bincount(range_of, minlength=len(filled))
            ends = np.cumsum(counts)
            ordered = [values[order] for values in (*columns, row)]
            for number in np.flatnonzero(counts):
                to = slice(filled[number], filled[number] + counts[number])
                taken = slice(ends[number] - counts[number], ends[number])
                for values, out in zip(ordered, distributed, strict=True):
                    out[to] = values[taken]
            filled += counts
        return distributed


def _renumber(
    disk: Disk,
    rows: RowCodes,
    row: NDArray[np.signedinteger[Any]],
    left_out: NDArray[np.int64],
) -> RowCodes:
    """Renumber ``row`` without the rows left out, in place; return the codes of the others."""
    for at in slices(len(row)):
        row[at] -= np.searchsorted(left_out, row[at]).astype(row.dtype)
    columns = [disk.column(codes.dtype) for codes in rows]
    for at in slices(len(rows.item)):
        first, last = np.searchsorted(left_out, [at.start, at.stop])
        for column, codes in zip(columns, rows, strict=True):
            column.append(np.delete(codes[at], left_out[first:last] - at.start))
    return RowCodes(*(column.to_array() for column in columns))
