"""Annotators' deviations from what is expected, by item, and the directions that they share."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from annotruth.comparisons.table import Comparisons
from annotruth.kernels.arrays import Floats

_POWER_STEPS = 12  # enough for directions that stand out, and no others matter


def deviations_by_item(data: Comparisons, deviation: Floats) -> csr_array[np.float64]:
    """Return the sums of one number per comparison: annotators x items.

    It counts for the left item, and with the opposite sign for the right one.
    """
    annotator = data.annotator_of_comparison()
    rows, columns = np.tile(annotator, 2), np.concatenate([data.left, data.right])
    values = np.concatenate([deviation, -deviation])
    shape = (data.n_annotators, data.n_items)
    return coo_array((values, (rows, columns)), shape=shape).tocsr()


def leading_directions(
    matrix: csr_array[np.float64], n_directions: int, rng: np.random.Generator
) -> Floats:
    """Return the leading right singular vectors, columns x directions.

    By power iteration, which needs nothing but products with the sparse matrix.
    """
    n_columns = matrix.shape[1]
    start = rng.standard_normal((n_columns, min(n_directions, n_columns)))
    directions: Floats = np.linalg.qr(start)[0]
    for _ in range(_POWER_STEPS):
        directions = np.linalg.qr(np.asarray(matrix.T @ (matrix @ directions)))[0]
    return directions
