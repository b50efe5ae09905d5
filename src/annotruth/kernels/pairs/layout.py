"""Sort comparisons by annotator. NumPy twins: `annotruth.kernels.reference.pairs.layout`.

Codes must be within their ranges; they are not checked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.compiled import compiled

# Rows are first distributed to so many ranges of annotators, so that the places that a range is
# sorted into are in the caches.
_MAX_RANGES = 256


@compiled
def sort_votes(
    annotator: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    outcome: NDArray[np.int8],
    annotator_ptr: NDArray[np.int64],
    left_out: NDArray[np.int32],
    right_out: NDArray[np.int32],
    outcome_out: NDArray[np.int8],
    row: NDArray[np.int64],
) -> None:
    """Sort comparisons by annotator, keeping rows in order, and fill the last five arrays.

    ``annotator_ptr`` has zeros at first, and one entry more than there are annotators.
    """
    n_annotators = len(annotator_ptr) - 1
    for r in range(len(annotator)):
        annotator_ptr[annotator[r] + 1] += 1
    for s in range(n_annotators):
        annotator_ptr[s + 1] += annotator_ptr[s]
    next_free = annotator_ptr[:-1].copy()
    if _is_sorted(annotator):
        left_out[:], right_out[:], outcome_out[:] = left, right, outcome
        row[:] = np.arange(len(annotator))
        return
    shift = 0
    while (n_annotators - 1) >> shift >= _MAX_RANGES:
        shift += 1
    if shift == 0:
        for r in range(len(annotator)):
            j = next_free[annotator[r]]
            next_free[annotator[r]] = j + 1
            left_out[j], right_out[j], outcome_out[j], row[j] = left[r], right[r], outcome[r], r
        return

    range_free = annotator_ptr[:-1][:: 1 << shift].copy()
    # One record per row, so that a range is written to in one place.
    by_range = np.empty((len(annotator), 4), dtype=np.int32)
    for r in range(len(annotator)):
        s = annotator[r]
        i = range_free[s >> shift]
        range_free[s >> shift] = i + 1
        by_range[i, 0], by_range[i, 1], by_range[i, 2] = s, left[r], right[r]
        by_range[i, 3] = r  # there is no room in memory for more rows than 32 bits count
    for i in range(len(annotator)):
        s = by_range[i, 0]
        j = next_free[s]
        next_free[s] = j + 1
        row[j] = by_range[i, 3]
        left_out[j], right_out[j], outcome_out[j] = by_range[i, 1], by_range[i, 2], outcome[row[j]]


@compiled
def _is_sorted(codes: NDArray[np.int32]) -> bool:
    """Whether codes never decrease."""
    is_sorted = True
    for r in range(1, len(codes)):
        is_sorted &= codes[r - 1] <= codes[r]
    return is_sorted
