"""From codes in row order to the layout of `Labels`: sorted by item, then by category."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, mix_bits

DuplicatePolicy = Literal["refuse", "keep", "last"]
"""What to do with rows in which an annotator labels the same item again."""

MANY_ROWS = 100_000
"""From so many rows on, threads and compiled kernels save more time than they take to start."""


class RowCodes(NamedTuple):
    """The codes of labels in row order, one entry per label."""

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
    """The numbers of items, annotators and categories."""

    n_items: int
    n_annotators: int
    n_categories: int


class Layout(NamedTuple):
    """Labels sorted by item and category: the arrays of `Labels` of the same names."""

    item_ptr: NDArray[np.int64]
    cell_category: NDArray[np.int32]
    cell_ptr: NDArray[np.int64]
    annotator: NDArray[np.int32]
    row: NDArray[np.signedinteger[Any]]


class Repeats(NamedTuple):
    """Rows in which an annotator labels the same item again, each in order."""

    identical: NDArray[np.int64]
    """With the same label as the one before."""
    changed: NDArray[np.int64]
    """With another label than the one before."""
    superseded: NDArray[np.int64]
    """Those that a later one repeats."""


class ArrangedRows(NamedTuple):
    """Labels sorted by item and category after a policy on repeated rows."""

    layout: Layout
    """Its rows count only those that were not left out."""
    left_out: NDArray[np.int64]
    """The rows that were left out because of another one by the same annotator, in order."""
    changed: NDArray[np.int64]
    """The rows to refuse, as the annotator gave the item another label before, in order."""
    rows: RowCodes | None = None
    """The codes of the others in row order, where they are on disk."""


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
) -> ArrangedRows:
    """Sort labels, and find repeats unless they are kept.

    With "last" the superseded rows are left out. With "refuse" identical rows are left out but for
    the first, and it is for the caller to refuse the changed ones.
    """
    none = np.empty(0, dtype=np.int64)
    layout = arrange(codes, size.n_items, size.n_categories)
    cells = (layout.item_ptr, layout.cell_ptr, layout.annotator)
    kernels = kernels_for(len(layout.row))
    if duplicates == "keep" or not kernels.has_duplicates(*cells, size.n_annotators):
        return ArrangedRows(layout, none, none)
    repeats = find_repeats(codes, size.n_annotators)
    is_last = duplicates == "last"
    left_out = repeats.superseded if is_last else repeats.identical
    layout = arrange(codes.delete(left_out), size.n_items, size.n_categories)
    return ArrangedRows(layout, left_out, none if is_last else repeats.changed)


def check_layout(layout: Layout, known: NDArray[np.int32], size: TableSize) -> None:
    """Raise a ValueError unless kernels, which check nothing, can index with arrays from a file.

    ``known`` has a category, or -1, for each item.
    """
    n_cells, n_labels = len(layout.cell_category), len(layout.annotator)
    lengths = {
        "item_ptr": (layout.item_ptr, size.n_items + 1),
        "cell_ptr": (layout.cell_ptr, n_cells + 1),
        "row": (layout.row, n_labels),
        "known": (known, size.n_items),
    }
    for name, (array, length) in lengths.items():
        if len(array) != length:
            raise ValueError(f"{name} has {len(array)} entries, not {length}")
    if layout.item_ptr.dtype != np.int64 or layout.cell_ptr.dtype != np.int64:
        raise ValueError("item_ptr and cell_ptr are not of 64 bits")
    check_pointers("item_ptr", layout.item_ptr, n_cells)
    check_pointers("cell_ptr", layout.cell_ptr, n_labels)
    check_index("cell_category", layout.cell_category, size.n_categories)
    check_index("annotator", layout.annotator, size.n_annotators)
    check_index("row", layout.row, n_labels)
    check_index("known", known, size.n_categories, least=-1)


def check_pointers(name: str, pointers: NDArray[np.int64], end: int) -> None:
    """Raise a ValueError unless pointers ascend from 0 to the end."""
    if not (pointers[0] == 0 and (np.diff(pointers) > 0).all() and pointers[-1] == end):
        raise ValueError(f"{name} does not ascend from 0 to {end}")


def check_index(name: str, codes: NDArray[np.signedinteger[Any]], n: int, least: int = 0) -> None:
    """Raise a ValueError unless the codes are whole numbers from ``least`` to below n."""
    whole = np.issubdtype(codes.dtype, np.signedinteger)
    inside = not len(codes) or (codes.min() >= least and codes.max() < n)
    if not (whole and inside):
        raise ValueError(f"{name} has a code outside {least}..{n - 1}")


def find_repeats(codes: RowCodes, n_annotators: int) -> Repeats:
    """Return the rows in which an annotator labels the same item again."""
    pair = codes.item.astype(np.int64) * n_annotators + codes.annotator
    order = np.argsort(pair, kind="stable")
    same = pair[order[1:]] == pair[order[:-1]]
    before, after = order[:-1][same], order[1:][same]
    is_changed = codes.label[before] != codes.label[after]
    return Repeats(np.sort(after[~is_changed]), np.sort(after[is_changed]), np.sort(before))


def to_row_order(values: NDArray[Any], row: NDArray[np.signedinteger[Any]]) -> NDArray[Any]:
    """Return one value per label, given in the order of the layout, in row order."""
    in_order = np.empty_like(values)
    kernels_for(len(row)).restore_order(values, row, in_order)
    return in_order


def kernels_for(n_rows: int, family: str = "layout") -> ModuleType:
    """Return the compiled kernels, or for few rows their NumPy twins, which load faster."""
    package = "annotruth.kernels" if n_rows >= MANY_ROWS else "annotruth.kernels.reference"
    return importlib.import_module(f"{package}.{family}")


def _empty_below(n: int, bound: int) -> NDArray[np.signedinteger[Any]]:
    """Return an empty array for n integers below a bound, of 32 bits where they suffice."""
    return np.empty(n, dtype=np.int32 if bound <= np.iinfo(np.int32).max else np.int64)


_MAX_ROUNDS = 10
# Refinements after the first, and the labels that these go through.
_MAX_REFINEMENTS, _MAX_LABELS = 60, 40_000
_EXHAUSTED = object()

Colors = NDArray[np.uint64]
"""Hashes of items, annotators or categories that depend on no name."""


class CanonicalOrder(NamedTuple):
    """The codes of items, annotators and categories in an order that depends on no name."""

    item: Codes
    annotator: Codes
    category: Codes


def canonical_orders(codes: RowCodes, first: Sequence[Colors]) -> list[CanonicalOrder]:
    """Return the order of colors, which follow from the labels alone; several of symmetric labels.

    ``first`` are the colors of items, annotators and categories by what is known beside the labels.
    They are refined, round by round, by the colors of their labels (color refinement). Where
    some are left with the same color, each of them is singled out in turn, and colors are refined
    again. Of the orders that result, those are returned that give the same first layout. With
    many symmetries there are too many orders to go through: one of them is returned.
    """
    refinements = itertools.repeat(None, min(_MAX_REFINEMENTS, _MAX_LABELS // len(codes.item)))
    colors = _refined(codes, list(first))
    orders = [_order_of(codes, leaf) for leaf in _singled_out(codes, colors, refinements)]
    if next(refinements, _EXHAUSTED) is _EXHAUSTED:
        return orders[:1]
    contents = [_content(codes, order, first) for order in orders] if len(orders) > 1 else [b""]
    least = min(contents)
    return [order for order, each in zip(orders, contents, strict=True) if each == least]


def _singled_out(
    codes: RowCodes, colors: list[Colors], refinements: Iterator[None]
) -> Iterator[list[Colors]]:
    """Yield colors that no symmetric ones share, as long as there are refinements left."""
    role, members = _find_tie(codes, colors)
    for member in members:
        if next(refinements, _EXHAUSTED) is _EXHAUSTED:
            break
        singled = colors[role].copy()
        singled[member] = mix_bits(singled[member : member + 1] + np.uint64(1))[0]
        others = [singled if n == role else color for n, color in enumerate(colors)]
        yield from _singled_out(codes, _refined(codes, others), refinements)
    else:
        if members:
            return
    yield colors


def _order_of(codes: RowCodes, colors: list[Colors]) -> CanonicalOrder:
    """Return the order of colors; of equal ones, of the first item that has them."""
    item = np.argsort(colors[0], kind="stable")
    place = np.argsort(item)[codes.item]
    return CanonicalOrder(
        item,
        np.lexsort((_least(place, codes.annotator, len(colors[1])), colors[1])),
        np.lexsort((_least(place, codes.label, len(colors[2])), colors[2])),
    )


def _content(codes: RowCodes, order: CanonicalOrder, first: Sequence[Colors]) -> bytes:
    """Return all labels and the first colors in an order, to be compared."""
    item, annotator, label = (
        np.argsort(places)[code] for places, code in zip(order, codes, strict=True)
    )
    rows = np.lexsort((annotator, label, item))
    colors = [color[places] for color, places in zip(first, order, strict=True)]
    return b"".join(map(np.ndarray.tobytes, (item[rows], label[rows], annotator[rows], *colors)))


def _refined(codes: RowCodes, colors: list[Colors]) -> list[Colors]:
    """Return colors refined by those of the labels until no more of them differ."""
    n_before = 0
    for _ in range(_MAX_ROUNDS):
        n_distinct = sum(len(np.unique(color)) for color in colors)
        if n_distinct == n_before:
            break
        n_before = n_distinct
        item, annotator, category = (color[code] for color, code in zip(colors, codes, strict=True))
        label = mix_bits(item + mix_bits(annotator + mix_bits(category)))
        colors = [
            mix_bits(color + _sum_hashes(label, code, len(color)))
            for color, code in zip(colors, codes, strict=True)
        ]
    return colors


def _find_tie(codes: RowCodes, colors: list[Colors]) -> tuple[int, list[int]]:
    """Return which categories, annotators or items of one color to single out; none if all differ."""
    for role in (2, 1, 0):
        color = colors[role]
        if len(np.unique(color)) == len(color):
            continue
        # The order of those that have the same labels is irrelevant: the first stands for all.
        one, other = (code.astype(np.uint64) for n, code in enumerate(codes) if n != role)
        same = _sum_hashes(mix_bits(mix_bits(one) + other), codes[role], len(color))
        order = np.lexsort((same, color))
        before, after = order[:-1], order[1:]
        differ = (color[before] == color[after]) & (same[before] != same[after])
        if differ.any():
            tied = np.flatnonzero(color == color[before[differ][0]])
            return role, tied[np.unique(same[tied], return_index=True)[1]].tolist()
    return 0, []


def _sum_hashes(label: Colors, code: NDArray[np.integer[Any]], n: int) -> Colors:
    """Return the sums of the labels' hashes, modulo 2**64, which depend on no order."""
    low = np.bincount(code, (label & np.uint64(0xFFFFFFFF)).astype(np.float64), n)
    high = np.bincount(code, (label >> np.uint64(32)).astype(np.float64), n)
    return low.astype(np.uint64) + (high.astype(np.uint64) << np.uint64(32))


def _least(place: Codes, code: NDArray[np.integer[Any]], n: int) -> Codes:
    """Return the least place of the labels of each code."""
    least = np.full(n, len(place))
    np.minimum.at(least, code, place)
    return least


def hash_counts(
    labels_per_category: NDArray[np.int64],
) -> tuple[Colors, Colors]:
    """Return hashes of annotators and of categories, given how often each gave or got which label.

    ``labels_per_category`` is annotators x categories.
    """
    category = mix_bits(labels_per_category.sum(axis=0).astype(np.uint64))
    by_category = labels_per_category.astype(np.uint64) * category
    return mix_bits(by_category.sum(axis=1, dtype=np.uint64)), category
