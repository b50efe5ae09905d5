"""From codes in row order to the layout of `Labels`: sorted by item, then by category."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from annotruth.labels.options import DuplicatePolicy

MANY_ROWS = 100_000
"""From so many rows on, threads and compiled kernels save more time than they take to start."""


class RowCodes(NamedTuple):
    """The codes of labels in row order, one entry per label.

    Examples
    --------
    >>> codes = RowCodes(np.array([1, 0]), np.array([0, 0]), np.array([2, 1]))
    >>> codes.append(codes.take(codes.label == 2)).label.tolist()
    [2, 1, 2]
    """

    item: NDArray[np.integer[Any]]
    annotator: NDArray[np.integer[Any]]
    label: NDArray[np.integer[Any]]

    def take(self, which: NDArray[Any] | slice) -> RowCodes:
        """Return some rows, by position or by a mask."""
        return RowCodes(*(codes[which] for codes in self))

    def delete(self, rows: NDArray[np.int64]) -> RowCodes:
        """Return the other rows."""
        return RowCodes(*(np.delete(codes, rows) for codes in self))

    def append(self, others: RowCodes) -> RowCodes:
        """Return these rows followed by others."""
        return RowCodes(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))


class TableSize(NamedTuple):
    """The numbers of items, annotators and categories.

    Examples
    --------
    >>> TableSize(n_items=100, n_annotators=20, n_categories=5).n_items
    100
    """

    n_items: int
    n_annotators: int
    n_categories: int


class Layout(NamedTuple):
    """Labels sorted by item and category: the arrays of `Labels` of the same names.

    Examples
    --------
    >>> codes = RowCodes(np.array([1, 0, 1]), np.array([0, 0, 1]), np.array([0, 1, 0]))
    >>> layout = arrange(codes, n_items=2, n_categories=2)
    >>> layout.item_ptr.tolist(), layout.cell_category.tolist(), layout.cell_ptr.tolist()
    ([0, 1, 2], [1, 0], [0, 1, 3])
    """

    item_ptr: NDArray[np.int64]
    cell_category: NDArray[np.int32]
    cell_ptr: NDArray[np.int64]
    annotator: NDArray[np.int32]
    row: NDArray[np.signedinteger[Any]]


class Repeats(NamedTuple):
    """Rows in which an annotator labels the same item again.

    Attributes
    ----------
    later
        The rows that repeat an earlier one, in order.
    superseded
        The rows that a later one repeats, in order.

    Examples
    --------
    >>> codes = RowCodes(np.array([0, 0, 0]), np.array([0, 1, 0]), np.array([1, 1, 2]))
    >>> repeats = find_repeats(codes, n_annotators=2)
    >>> repeats.later.tolist(), repeats.superseded.tolist()
    ([2], [0])
    """

    later: NDArray[np.int64]
    superseded: NDArray[np.int64]


def arrange(codes: RowCodes, n_items: int, n_categories: int) -> Layout:
    """Sort labels by item, then by category, keeping rows in order within both."""
    columns = [np.ascontiguousarray(column, dtype=np.int32) for column in codes]
    n = len(codes.item)
    annotator = np.empty(n, dtype=np.int32)
    row, key = _empty_below(n, n), _empty_below(n, n_items * n_categories)
    item_ptr, cell_category, cell_ptr = kernels_for(n).sort_labels(
        *columns, n_items, n_categories, annotator, row, key
    )
    return Layout(item_ptr, cell_category, cell_ptr, annotator, row)


def arrange_with_policy(
    codes: RowCodes, size: TableSize, duplicates: DuplicatePolicy
) -> tuple[Layout, Repeats]:
    """Sort labels, and find repeats unless they are kept.

    With "last" the superseded rows are left out, and the rows of the layout count the others.
    With "refuse" it is for the caller to refuse.
    """
    layout = arrange(codes, size.n_items, size.n_categories)
    if duplicates == "keep" or not has_repeats(layout, size.n_annotators):
        return layout, Repeats(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    repeats = find_repeats(codes, size.n_annotators)
    if duplicates == "last":
        layout = arrange(codes.delete(repeats.superseded), size.n_items, size.n_categories)
    return layout, repeats


def has_repeats(layout: Layout, n_annotators: int) -> bool:
    """Return whether some annotator labelled an item more than once."""
    kernels = kernels_for(len(layout.row))
    return bool(
        kernels.has_duplicates(layout.item_ptr, layout.cell_ptr, layout.annotator, n_annotators)
    )


def find_repeats(codes: RowCodes, n_annotators: int) -> Repeats:
    """Return the rows in which an annotator labels the same item again."""
    pair = codes.item.astype(np.int64) * n_annotators + codes.annotator
    order = np.argsort(pair, kind="stable")
    same = pair[order[1:]] == pair[order[:-1]]
    return Repeats(np.sort(order[1:][same]), np.sort(order[:-1][same]))


def to_row_order(values: NDArray[Any], row: NDArray[np.signedinteger[Any]]) -> NDArray[Any]:
    """Return one value per label, given in the order of the layout, in row order."""
    in_order = np.empty_like(values)
    kernels_for(len(row)).restore_order(values, row, in_order)
    return in_order


def kernels_for(n_rows: int) -> ModuleType:
    """Return the compiled kernels, or for few rows their NumPy twins, which load faster."""
    package = "annotruth.kernels" if n_rows >= MANY_ROWS else "annotruth.kernels.reference"
    return importlib.import_module(f"{package}.layout")


def _empty_below(n: int, bound: int) -> NDArray[np.signedinteger[Any]]:
    """Return an empty array for n integers below a bound, of 32 bits where they suffice."""
    return np.empty(n, dtype=np.int32 if bound <= np.iinfo(np.int32).max else np.int64)
