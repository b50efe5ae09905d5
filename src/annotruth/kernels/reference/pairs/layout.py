"""NumPy twins of `annotruth.kernels.pairs.layout`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
    """Sort comparisons by annotator, keeping rows in order, and fill the last five arrays."""
    n_votes = np.bincount(annotator, minlength=len(annotator_ptr) - 1)
    annotator_ptr[1:] = np.cumsum(n_votes)
    row[:] = np.argsort(annotator, kind="stable")
    left_out[:], right_out[:], outcome_out[:] = left[row], right[row], outcome[row]
