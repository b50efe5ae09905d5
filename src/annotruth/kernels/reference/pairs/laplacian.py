"""NumPy twins of `annotruth.kernels.pairs.laplacian`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats


def add_pairs(left: Codes, right: Codes, weight: Floats, weights: Floats, degree: Floats) -> None:
    """Add the weights of pairs to ``weights[left, right]`` and to the degrees of both items."""
    np.add.at(weights, (left, right), weight)
    np.add.at(degree, left, weight)
    np.add.at(degree, right, weight)
