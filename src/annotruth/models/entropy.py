"""Logarithms of probabilities that may be 0, where x log x is 0.

SciPy has these too, but loading it takes longer than fitting a small table.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats


def xlogy(x: Floats, y: Floats) -> Floats:
    """Return x log y, and 0 where x is 0."""
    some = x != 0.0
    with np.errstate(divide="ignore"):  # the log of 0 is minus infinity
        return np.where(some, x * np.log(np.where(some, y, 1.0)), 0.0)


def entr(x: Floats) -> Floats:
    """Return -x log x, and 0 where x is 0."""
    return 0.0 - x * np.log(np.where(x > 0.0, x, 1.0))
