"""The Laplacian of weighted pairs. NumPy twins: `annotruth.kernels.reference.pairs.laplacian`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled


@compiled
def add_pairs(left: Codes, right: Codes, weight: Floats, weights: Floats, degree: Floats) -> None:
    """Add the weights of pairs to ``weights[left, right]`` and to the degrees of both items."""
    for p in range(len(left)):
        i, j, w = np.uint64(left[p]), np.uint64(right[p]), weight[p]
        weights[i, j] += w
        degree[i] += w
        degree[j] += w
