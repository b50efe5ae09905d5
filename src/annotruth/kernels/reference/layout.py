"""What the kernels of the layout compute, by sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def arrange(
    item: NDArray[np.int32],
    annotator: NDArray[np.int32],
    label: NDArray[np.int32],
    n_items: int,
    n_categories: int,
    annotator_out: NDArray[np.int32],
    row: NDArray[np.signedinteger[Any]],
    key: NDArray[np.signedinteger[Any]],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Sort labels by item, then by category, keeping rows in order within both.

    Fills ``annotator_out``, ``row``, and ``key`` with item x n_categories + category; returns
    ``item_ptr, cell_category, cell_ptr``.
    """
    pair = item.astype(np.int64) * n_categories + label
    row[:] = np.argsort(pair, kind="stable")
    annotator_out[:] = annotator[row]
    pair = key[:] = pair[row]
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    cell_item, cell_category = np.divmod(pair[starts], n_categories)
    item_ptr = np.searchsorted(cell_item, np.arange(n_items + 1))
    cell_ptr = np.append(starts, len(pair))
    return item_ptr.astype(np.int64), cell_category.astype(np.int32), cell_ptr.astype(np.int64)


def has_repeats(
    item_ptr: NDArray[np.int64],
    cell_ptr: NDArray[np.int64],
    annotator: NDArray[np.int32],
    n_annotators: int,
) -> bool:
    """Whether some annotator labelled an item more than once."""
    item = np.repeat(np.arange(len(item_ptr) - 1), np.diff(cell_ptr[item_ptr]))
    pair = item * n_annotators + annotator
    return len(np.unique(pair)) < len(pair)


def put_back(values: NDArray[Any], row: NDArray[np.signedinteger[Any]], out: NDArray[Any]) -> None:
    """Put the value of each label where its row is."""
    out[row] = values


def renumber(codes: NDArray[np.int32], number: NDArray[np.int32]) -> int:
    """Renumber codes in order of first appearance, in place, and return how many there are.

    Fills ``number``, the new number of each code; of codes that do not appear it stays -1.
    """
    found, first = np.unique(codes, return_index=True)
    number[found[np.argsort(first)]] = np.arange(len(found))
    codes[:] = number[codes]
    return len(found)
