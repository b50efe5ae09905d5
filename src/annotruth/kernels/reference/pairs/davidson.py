"""NumPy twin of `annotruth.kernels.pairs.davidson`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats, PairBlock


def log_partition(
    block: PairBlock,
    lo: int,
    hi: int,
    information: Floats,
    strength: Floats,
    side: float,
    nu: float,
    slope: Floats,
    side_cross: Floats,
    tie_cross: Floats,
    totals: Floats,
) -> None:
    """Add up the logarithms of the partition function, with the sign changed, and derivatives."""
    left, right, n = block.left[lo:hi], block.right[lo:hi], block.n[lo:hi]
    ratio = side * strength[left] / strength[right]
    total = ratio + 1.0 / ratio + nu
    p_left, p_right, p_tie = ratio / total, 1.0 / ratio / total, nu / total
    mean = (p_left - p_right) / 2.0
    known = n * ((p_left + p_right) / 4.0 - mean**2)
    mixed = -n * mean * p_tie
    information[lo:hi] = known
    for values, sums in ((-n * mean, slope), (known, side_cross), (mixed, tie_cross)):
        np.add.at(sums, left, values)
        np.add.at(sums, right, -values)
    of_tie = n * p_tie * (1.0 - p_tie)
    terms = (-n * np.log(total), -n * mean, -n * p_tie, known, mixed, of_tie)
    totals += [values.sum() for values in terms]
