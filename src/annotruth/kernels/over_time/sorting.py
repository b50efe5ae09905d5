"""The pass that sorts the labels of each annotator.

NumPy twin: `annotruth.kernels.reference.over_time.sorting`.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled


@compiled
def sort_within(lo: int, hi: int, begin: Codes, end: Codes, key: Floats, order: Codes) -> None:
    """Sort the places ``order[begin[s]:end[s]]`` of each annotator by their keys; ties stay.

    Short sorts are faster than one of all labels.
    """
    for s in range(lo, hi):
        places = order[begin[s] : end[s]].copy()
        order[begin[s] : end[s]] = places[np.argsort(key[places], kind="mergesort")]
