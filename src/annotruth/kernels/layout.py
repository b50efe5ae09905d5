"""From rows to the layout of `Labels` and back; plain twins in `annotruth.kernels.reference`.

Codes are trusted to lie within their ranges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.compiled import compiled

Rows = NDArray[np.signedinteger[Any]]  # row numbers: 32 bits where they suffice

# Rows are first dealt out by ranges of items, so that sorting a range stays in the cache.
_MOST_RANGES = 256
_LABELS_PER_RANGE = 4096


@compiled
def arrange(
    item: NDArray[np.int32],
    annotator: NDArray[np.int32],
    label: NDArray[np.int32],
    n_items: int,
    n_categories: int,
    annotator_out: NDArray[np.int32],
    row: Rows,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Sort labels by item, then by category, keeping rows in order within both.

    Fills ``annotator_out`` and ``row``; returns ``item_ptr, cell_category, cell_ptr``.
    """
    n = len(item)
    # A range costs a look at every category, so it should hold more labels than there are.
    n_ranges = min(_MOST_RANGES, n // max(_LABELS_PER_RANGE, n_categories) + 1)
    shift = 0
    while (n_items - 1) >> shift >= n_ranges:
        shift += 1
    n_ranges = ((n_items - 1) >> shift) + 1

    start = np.zeros(n_ranges + 1, dtype=np.int64)
    for r in range(n):
        start[(item[r] >> shift) + 1] += 1
    largest = start.max()
    for b in range(n_ranges):
        start[b + 1] += start[b]
    items, labels = np.empty_like(item), np.empty_like(label)
    at = start.copy()
    for r in range(n):
        b = item[r] >> shift
        j = at[b]
        at[b] = j + 1
        items[j] = item[r]
        labels[j] = label[r]
        annotator_out[j] = annotator[r]
        row[j] = r

    # Within a range two counting sorts: by category, then by item.
    end = np.empty(n_categories + 1, dtype=np.int64)
    place = np.empty((1 << shift) + 1, dtype=np.int64)
    order = np.empty(largest, dtype=np.int64)
    old = np.empty((2, largest), dtype=np.int32)
    old_row = np.empty(largest, dtype=row.dtype)
    item_ptr = np.zeros(n_items + 1, dtype=np.int64)
    for b in range(n_ranges):
        first, m, base = start[b], start[b + 1] - start[b], b << shift
        end[:] = 0
        place[:] = 0
        for i in range(m):
            end[labels[first + i] + 1] += 1
            place[items[first + i] - base + 1] += 1
            old[0, i] = annotator_out[first + i]
            old[1, i] = labels[first + i]
            old_row[i] = row[first + i]
        for c in range(n_categories):
            end[c + 1] += end[c]
        for e in range(1 << shift):
            place[e + 1] += place[e]
        for i in range(m):
            c = old[1, i]
            order[end[c]] = i
            end[c] += 1
        for k in range(m):
            i = order[k]
            e = items[first + i] - base
            j = first + place[e]
            place[e] += 1
            annotator_out[j] = old[0, i]
            labels[j] = old[1, i]
            row[j] = old_row[i]
        # place[e] is now the end of item e; a cell's first label is marked by its sign.
        j = 0
        for e in range(min(1 << shift, n_items - base)):
            latest = -1
            n_cells = 0
            while j < place[e]:
                c = labels[first + j]
                if c != latest:
                    latest = c
                    labels[first + j] = -1 - c
                    n_cells += 1
                j += 1
            item_ptr[base + e + 1] = item_ptr[base + e] + n_cells

    cell_category = np.empty(item_ptr[n_items], dtype=np.int32)
    cell_ptr = np.empty(item_ptr[n_items] + 1, dtype=np.int64)
    k = 0
    for j in range(n):
        if labels[j] < 0:
            cell_category[k] = -1 - labels[j]
            cell_ptr[k] = j
            k += 1
    cell_ptr[k] = n
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
