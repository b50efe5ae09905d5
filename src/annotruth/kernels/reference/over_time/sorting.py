"""NumPy twin of `annotruth.kernels.over_time.sorting`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats


def sort_within(lo: int, hi: int, begin: Codes, end: Codes, key: Floats, order: Codes) -> None:
    """Sort the places ``order[begin[s]:end[s]]`` of each annotator by their keys; ties stay."""
    annotator = np.repeat(np.arange(lo, hi), (end - begin)[lo:hi])
    some = slice(begin[lo], end[hi - 1])
    order[some] = order[some][np.lexsort((key[order[some]], annotator))]
