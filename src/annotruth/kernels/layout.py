"""From rows to the layout of `Labels` and back; plain twins in `annotruth.kernels.reference`.

Codes are trusted to lie within their ranges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.compiled import compiled

Rows = NDArray[np.signedinteger[Any]]  # row numbers: 32 bits where they suffice
Keys = NDArray[np.signedinteger[Any]]  # item x n_categories + category, likewise

# Rows are first dealt out by ranges of items, so that sorting a range stays in the cache.
_MOST_RANGES = 128
_LABELS_PER_RANGE = 4096
# Up to so many pairs of item and category in a range are counted at once.
_MOST_PAIRS = 1 << 19


@compiled
def arrange(
    item: NDArray[np.int32],
    annotator: NDArray[np.int32],
    label: NDArray[np.int32],
    n_items: int,
    n_categories: int,
    annotator_out: NDArray[np.int32],
    row: Rows,
    key: Keys,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Sort labels by item, then by category, keeping rows in order within both.

    Fills ``annotator_out``, ``row``, and ``key`` with item x n_categories + category; returns
    ``item_ptr, cell_category, cell_ptr``.
    """
    # A range costs a look at every category, so it should hold more labels than there are.
    n_ranges = min(_MOST_RANGES, len(item) // max(_LABELS_PER_RANGE, n_categories) + 1)
    shift = 0
    while (n_items - 1) >> shift >= n_ranges:
        shift += 1
    start = np.zeros(((n_items - 1) >> shift) + 2, dtype=np.int64)
    for r in range(len(item)):
        start[(item[r] >> shift) + 1] += 1
    largest = start.max()
    for b in range(len(start) - 1):
        start[b + 1] += start[b]
    at = start.copy()
    for r in range(len(item)):
        b = item[r] >> shift
        j = at[b]
        at[b] = j + 1
        key[j] = np.int64(item[r]) * n_categories + label[r]
        annotator_out[j] = annotator[r]
        row[j] = r

    n_pairs = n_categories << shift
    n_digits = n_pairs if n_pairs <= _MOST_PAIRS else max(n_categories, 1 << shift)
    place = np.empty(n_digits + 1, dtype=np.int64)
    digit, old = np.empty(largest, dtype=np.int64), np.empty(largest, dtype=np.int32)
    old_key, old_row = np.empty(largest, dtype=key.dtype), np.empty(largest, dtype=row.dtype)
    for b in range(len(start) - 1):
        part = slice(start[b], start[b + 1])
        who, rows, keys = annotator_out[part], row[part], key[part]
        digits = digit[: len(keys)]
        if n_pairs <= _MOST_PAIRS:
            for i in range(len(keys)):
                digits[i] = keys[i] - b * n_pairs
            _sort(digits, place, who, rows, keys, old, old_row, old_key)
        else:
            for i in range(len(keys)):
                digits[i] = keys[i] % n_categories
            _sort(digits, place, who, rows, keys, old, old_row, old_key)
            for i in range(len(keys)):
                digits[i] = keys[i] // n_categories - (b << shift)
            _sort(digits, place, who, rows, keys, old, old_row, old_key)
    return _cells(key, n_items, n_categories)


@compiled
def _sort(
    digit: NDArray[np.int64],
    place: NDArray[np.int64],
    annotator: NDArray[np.int32],
    row: Rows,
    key: Keys,
    old: NDArray[np.int32],
    old_row: Rows,
    old_key: Keys,
) -> None:
    """Sort labels by a digit each, all below ``len(place) - 1``, by counting how many have it."""
    place[:] = 0
    for i in range(len(digit)):
        place[digit[i] + 1] += 1
        old[i], old_row[i], old_key[i] = annotator[i], row[i], key[i]
    for d in range(len(place) - 1):
        place[d + 1] += place[d]
    for i in range(len(digit)):
        j = place[digit[i]]
        place[digit[i]] = j + 1
        annotator[j], row[j], key[j] = old[i], old_row[i], old_key[i]


@compiled
def _cells(
    key: Keys, n_items: int, n_categories: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Find where cells begin: where the keys, which are sorted, change."""
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
def has_repeats(
    item_ptr: NDArray[np.int64],
    cell_ptr: NDArray[np.int64],
    annotator: NDArray[np.int32],
    n_annotators: int,
) -> bool:
    """Whether some annotator labelled an item more than once."""
    seen = np.full(n_annotators, -1, dtype=np.int64)  # the last item seen of each annotator
    for e in range(len(item_ptr) - 1):
        for j in range(cell_ptr[item_ptr[e]], cell_ptr[item_ptr[e + 1]]):
            if seen[annotator[j]] == e:
                return True
            seen[annotator[j]] = e
    return False


@compiled
def put_back(values: NDArray[Any], row: Rows, out: NDArray[Any]) -> None:
    """Put the value of each label where its row is."""
    for j in range(len(row)):
        out[row[j]] = values[j]


@compiled
def renumber(codes: NDArray[np.int32], number: NDArray[np.int32]) -> int:
    """Renumber codes in order of first appearance, in place, and return how many there are.

    Fills ``number``, the new number of each code, which must be -1 throughout; of codes that do
    not appear it stays so.
    """
    n = 0
    for r in range(len(codes)):
        code = codes[r]
        if number[code] < 0:
            number[code] = n
            n += 1
        codes[r] = number[code]
    return n
