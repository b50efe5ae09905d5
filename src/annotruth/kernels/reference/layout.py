"""NumPy twins of `annotruth.kernels.layout`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sort_labels(
    item: NDArray[np.int32],
    annotator: NDArray[np.int32],
    label: NDArray[np.int32],
    n_items: int,
    n_categories: int,
    annotator_out: NDArray[np.int32],
    row: NDArray[np.signedinteger[Any]],
    key: NDArray[np.signedinteger[Any]],
) -> int:
    """Sort labels by item, then by category, keeping rows in order within both.

    Fills ``annotator_out``, ``row``, and ``key`` with item x n_categories + category; returns how
    many cells there are.
    """
    pair = item.astype(np.int64) * n_categories + label
    row[:] = np.argsort(pair, kind="stable")
    annotator_out[:] = annotator[row]
    key[:] = pair[row]
    return len(np.unique(pair))


def find_cells(
    key: NDArray[np.signedinteger[Any]],
    n_categories: int,
    item_ptr: NDArray[np.int64],
    cell_category: NDArray[np.int32],
    cell_ptr: NDArray[np.int64],
) -> None:
    """Write where items and cells begin, which is where the sorted keys change."""
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    cell_item, cell_category[:] = np.divmod(key[starts], n_categories)
    item_ptr[:] = np.searchsorted(cell_item, np.arange(len(item_ptr)))
    cell_ptr[:] = np.append(starts, len(key))


def has_duplicates(
    item_ptr: NDArray[np.int64],
    cell_ptr: NDArray[np.int64],
    annotator: NDArray[np.int32],
    n_annotators: int,
) -> bool:
    """Whether some annotator labelled an item more than once."""
    item = np.repeat(np.arange(len(item_ptr) - 1), np.diff(cell_ptr[item_ptr]))
    pair = item * n_annotators + annotator
    return len(np.unique(pair)) < len(pair)


def count_labels(
    cell_ptr: NDArray[np.int64],
    cell_category: NDArray[np.int32],
    first: int,
    last: int,
    annotator: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Count the labels of cells ``first:last``; ``counts`` are annotators x categories."""
    ends = cell_ptr[first : last + 1]
    category = np.repeat(cell_category[first:last], np.diff(ends))
    np.add.at(counts, (annotator[ends[0] : ends[-1]], category), 1)


def renumber(codes: NDArray[np.int32], number: NDArray[np.int32]) -> int:
    """Renumber codes in order of first appearance, in place, and return how many there are.

    Fills ``number``, the new number of each code, which remains -1 for codes that do not occur.
    """
    distinct, first = np.unique(codes, return_index=True)
    number[distinct[np.argsort(first)]] = np.arange(len(distinct))
    codes[:] = number[codes]
    return len(distinct)
