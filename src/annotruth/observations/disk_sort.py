"""Sort codes that are on disk, one range at a time in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annotruth.kernels.arrays import slices
from annotruth.observations.disk import Disk
from annotruth.observations.layout import Layout, RowCodes, TableSize, arrange_with_policy
from annotruth.observations.options import DuplicatePolicy

MAX_NAMED_REPEATS = 3
"""How many repeated labels a message names."""

_BYTES_PER_LABEL = 200  # what sorting a label takes at most, with room for everything else
_COUNTED_AT_ONCE = 1 << 22


class ArrangedCodes(NamedTuple):
    """All labels, sorted."""

    layout: Layout
    n_changed: int
    """How many labels to refuse, as the annotator gave the item another label before."""
    changed: RowCodes
    """The first of them."""
    left_out: NDArray[np.int64]
    """The rows that were left out because of another one by the same annotator."""
    rows: RowCodes | None = None
    """The codes of the others in row order, where they are on disk."""


def sort_on_disk(
    disk: Disk, rows: RowCodes, size: TableSize, duplicates: DuplicatePolicy
) -> ArrangedCodes:
    """Sort labels as `annotruth.observations.layout.arrange` does, in ranges of items that fit in memory."""
    kinds: tuple[DTypeLike, ...] = (
        np.int64,
        np.int32,
        np.int64,
        np.int32,
        row_type(len(rows.item)),
    )
    columns = {name: disk.column(kind) for name, kind in zip(Layout._fields, kinds, strict=True)}
    changed: list[tuple[int, int, int, int]] = []
    left_out = [np.empty(0, dtype=np.int64)]
    n_cells = n_labels = n_changed = 0
    starts = count_before(rows.item, size.n_items)
    for part in in_ranges(disk, rows, starts, _BYTES_PER_LABEL):
        codes, row = RowCodes(*part.columns), part.row
        codes.item[...] -= part.first
        of_part = size._replace(n_items=part.last - part.first)
        layout, left_out_here, changed_here = arrange_with_policy(codes, of_part, duplicates)
        n_changed += len(changed_here)
        some = changed_here[:MAX_NAMED_REPEATS]
        item, annotator, label = codes.take(some)
        item = item + part.first
        first_changed = (values.tolist() for values in (row[some], item, annotator, label))
        changed += zip(*first_changed, strict=True)
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
    layout = Layout(**{name: column.to_array() for name, column in columns.items()})
    first = np.array(sorted(changed)[:MAX_NAMED_REPEATS], dtype=np.int64).reshape(-1, 4)
    all_left_out = np.sort(np.concatenate(left_out))
    if len(all_left_out):
        rows = _renumber(disk, rows, layout.row, all_left_out)
    return ArrangedCodes(layout, n_changed, RowCodes(*first.T[1:]), all_left_out, rows)


class RowsOfRange(NamedTuple):
    """The rows of the keys from ``first`` to before ``last``, in order: their columns and positions."""

    first: int
    last: int
    columns: list[NDArray[Any]]
    row: NDArray[np.signedinteger[Any]]


def row_type(n_rows: int) -> np.dtype[np.signedinteger[Any]]:
    """Return the type for positions of rows: of 32 bits where they suffice."""
    return np.dtype(np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64)


def count_before(key: NDArray[np.integer[Any]], n_keys: int) -> NDArray[np.int64]:
    """Return how many rows have a smaller key than each, and the number of all rows."""
    starts = np.zeros(n_keys + 1, dtype=np.int64)
    for at in slices(len(key), _COUNTED_AT_ONCE):
        starts[1:] += np.bincount(key[at], minlength=n_keys)
    return np.cumsum(starts, out=starts)


def in_ranges(
    disk: Disk, columns: Sequence[NDArray[Any]], starts: NDArray[np.int64], bytes_per_row: int
) -> Iterator[RowsOfRange]:
    """Distribute rows by ranges of their keys, the first column; each can be sorted in memory."""
    n_keys = len(starts) - 1
    cuts = np.searchsorted(starts, np.arange(0, starts[-1], max(1, disk.memory // bytes_per_row)))
    bounds = np.unique(np.append(cuts, n_keys))
    distributed = _distribute(disk, columns, bounds, starts[bounds])
    for first, last in pairwise(bounds.tolist()):
        *values, row = (np.array(each[starts[first] : starts[last]]) for each in distributed)
        yield RowsOfRange(first, last, values, row)


def _distribute(
    disk: Disk,
    columns: Sequence[NDArray[Any]],
    bounds: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> list[NDArray[Any]]:
    """Return the columns and the positions of rows, grouped by range; rows stay in order."""
    n = len(columns[0])
    kinds = (*(values.dtype for values in columns), row_type(n))
    distributed = [disk.zeros(n, kind) for kind in kinds]
    filled = starts[:-1].copy()
    for at in slices(n):
        some = [values[at] for values in columns]
        range_of = np.searchsorted(bounds[1:-1], some[0], side="right")
        # 16-bit integers are sorted by radix, which is much faster.
        range_of = range_of.astype(np.uint16 if len(filled) < 1 << 16 else np.int64)
        order = np.argsort(range_of, kind="stable")
        counts = np.bincount(range_of, minlength=len(filled))
        ends = np.cumsum(counts)
        ordered = [values[order] for values in (*some, np.arange(at.start, at.stop))]
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
