"""Sort labels into the layout of `Labels`. NumPy twins: `annotruth.kernels.reference.layout`.

Codes must be within their ranges; they are not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.compiled import compiled

RowNumbers = NDArray[np.signedinteger[Any]]  # of 32 bits where they suffice
Keys = NDArray[np.signedinteger[Any]]  # item x n_categories + category, likewise

# Rows are first distributed to ranges of items, so that each range is sorted within the cache.
_MAX_RANGES = 128
_LABELS_PER_RANGE = 4096
# Up to so many pairs of item and category in a range are sorted by in one pass.
_MAX_PAIRS = 1 << 19


@compiled
def sort_labels(
    item: NDArray[np.int32],
    annotator: NDArray[np.int32],
    label: NDArray[np.int32],
    n_items: int,
    n_categories: int,
    annotator_out: NDArray[np.int32],
    row: RowNumbers,
    key: Keys,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Sort labels by item, then by category, keeping rows in order within both.

    Fills ``annotator_out``, ``row``, and ``key`` with item x n_categories + category; returns
    ``item_ptr, cell_category, cell_ptr``.
    """
    # Each range takes a loop over all categories, so it should have more labels than these.
    n_ranges = min(_MAX_RANGES, len(item) // max(_LABELS_PER_RANGE, n_categories) + 1)
    shift = 0
    while (n_items - 1) >> shift >= n_ranges:
        shift += 1
    start = np.zeros(((n_items - 1) >> shift) + 2, dtype=np.int64)
    for r in range(len(item)):
        start[(item[r] >> shift) + 1] += 1
    largest = start.max()
    for b in range(len(start) - 1):
        start[b + 1] += start[b]
    next_free = start.copy()
    for r in range(len(item)):
        b = item[r] >> shift
        j = next_free[b]
        next_free[b] = j + 1
        key[j] = np.int64(item[r]) * n_categories + label[r]
        annotator_out[j] = annotator[r]
        row[j] = r

    n_pairs = n_categories << shift
    n_digits = n_pairs if n_pairs <= _MAX_PAIRS else max(n_categories, 1 << shift)
    place = np.empty(n_digits + 1, dtype=np.int64)
    digit, old_annotator = np.empty(largest, dtype=np.int64), np.empty(largest, dtype=np.int32)
    old_key, old_row = np.empty(largest, dtype=key.dtype), np.empty(largest, dtype=row.dtype)
    for b in range(len(start) - 1):
        labels = slice(start[b], start[b + 1])
        annotators, rows, keys = annotator_out[labels], row[labels], key[labels]
        digits = digit[: len(keys)]
        if n_pairs <= _MAX_PAIRS:
            for i in range(len(keys)):
                digits[i] = keys[i] - b * n_pairs
            _sort(digits, place, annotators, rows, keys, old_annotator, old_row, old_key)
        else:
            for i in range(len(keys)):
                digits[i] = keys[i] % n_categories
            _sort(digits, place, annotators, rows, keys, old_annotator, old_row, old_key)
            for i in range(len(keys)):
                digits[i] = keys[i] // n_categories - (b << shift)
            _sort(digits, place, annotators, rows, keys, old_annotator, old_row, old_key)
    return _cells(key, n_items, n_categories)


@compiled
def _sort(
    digit: NDArray[np.int64],
    place: NDArray[np.int64],
    annotator: NDArray[np.int32],
    row: RowNumbers,
    key: Keys,
    old_annotator: NDArray[np.int32],
    old_row: RowNumbers,
    old_key: Keys,
) -> None:
    """Sort labels by one digit each, all below ``len(place) - 1``, with a counting sort."""
    place[:] = 0
    for i in range(len(digit)):
        place[digit[i] + 1] += 1
        old_annotator[i], old_row[i], old_key[i] = annotator[i], row[i], key[i]
    for d in range(len(place) - 1):
        place[d + 1] += place[d]
    for i in range(len(digit)):
        j = place[digit[i]]
        place[digit[i]] = j + 1
        annotator[j], row[j], key[j] = old_annotator[i], old_row[i], old_key[i]


@compiled
def _cells(
    key: Keys, n_items: int, n_categories: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return where items and cells begin, which is where the sorted keys change."""
    n_cells, latest = 0, -1
    for j in range(len(key)):
        n_cells += key[j] != latest
        latest = key[j]
    item_ptr = np.zeros(n_items + 1, dtype=np.int64)
    cell_category = np.empty(n_cells, dtype=np.int32)
    cell_ptr = np.empty(n_cells + 1, dtype=np.int64)
    c, latest = 0, -1
    for j in range(len(key)):
        if key[j] != latest:
            latest = key[j]
            item_ptr[latest // n_categories + 1] += 1
            cell_category[c] = latest % n_categories
            cell_ptr[c] = j
            c += 1
    cell_ptr[c] = len(key)
    for e in range(n_items):
        item_ptr[e + 1] += item_ptr[e]
    return item_ptr, cell_category, cell_ptr


@compiled
def has_duplicates(
    item_ptr: NDArray[np.int64],
    cell_ptr: NDArray[np.int64],
    annotator: NDArray[np.int32],
    n_annotators: int,
) -> bool:
    """Whether some annotator labelled an item more than once."""
    last_item = np.full(n_annotators, -1, dtype=np.int64)  # of each annotator
    for e in range(len(item_ptr) - 1):
        for j in range(cell_ptr[item_ptr[e]], cell_ptr[item_ptr[e + 1]]):
            if last_item[annotator[j]] == e:
                return True
            last_item[annotator[j]] = e
    return False


@compiled
def count_labels(
    cell_ptr: NDArray[np.int64],
    cell_category: NDArray[np.int32],
    first: int,
    last: int,
    annotator: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Count the labels of cells ``first:last``; ``counts`` are annotators x categories."""
    for c in range(first, last):
        for j in range(cell_ptr[c], cell_ptr[c + 1]):
            counts[annotator[j], cell_category[c]] += 1


@compiled
def restore_order(values: NDArray[Any], row: RowNumbers, out: NDArray[Any]) -> None:
    """Write the value of each label to the index of its row."""
    for j in range(len(row)):
        out[row[j]] = values[j]


@compiled
def renumber(codes: NDArray[np.int32], number: NDArray[np.int32]) -> int:
    """Renumber codes in order of first appearance, in place, and return how many there are.

    Fills ``number``, the new number of each code, which must be -1 at first and remains -1 for codes
    that do not occur.
    """
    n = 0
    for r in range(len(codes)):
        code = codes[r]
        if number[code] < 0:
            number[code] = n
            n += 1
        codes[r] = number[code]
    return n
