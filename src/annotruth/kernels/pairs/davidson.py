r"""A pass over counted pairs. NumPy twin: `annotruth.kernels.reference.pairs.davidson`.

With :math:`u_i = e^{\theta_i / 2}` and :math:`g = e^{\gamma / 2}`, the outcomes left, right and tie of a
pair have probabilities proportional to :math:`\rho = g u_l / u_r`, :math:`1 / \rho` and :math:`\nu`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Floats, PairBlock
from annotruth.kernels.compiled import compiled


@compiled
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
    r"""Add up :math:`-n \log(\rho + 1/\rho + \nu)` of the pairs ``lo:hi``, and its derivatives.

    ``information`` is that of each pair about its d; ``slope``, ``side_cross`` and ``tie_cross`` are
    the slopes of the scores and their mixed information with gamma and log nu; ``totals`` are the
    sum, its slopes by gamma and log nu, and the information gamma x gamma, gamma x log nu and
    log nu x log nu.
    """
    log_total = side_slope = tie_slope = sum_side = sum_mixed = sum_tied = 0.0
    p = lo
    while p < hi:
        i = block.left[p]
        of_left = side * strength[i]
        sum_expected = sum_known = sum_mixed_of_left = 0.0
        while p < hi and block.left[p] == i:  # pairs with the same left item follow each other
            j, n = np.uint64(block.right[p]), block.n[p]
            of_right = strength[j]
            # The odds, all multiplied by the strengths of both items.
            both = of_left * of_right
            left, right, tied = of_left * of_left, of_right * of_right, nu * both
            total = left + right + tied
            scale = 1.0 / total
            p_tie = tied * scale
            mean = 0.5 * (left - right) * scale
            expected = n * mean
            known = n * (0.25 * (1.0 - p_tie) - mean * mean)
            mixed = -expected * p_tie
            information[p] = known
            slope[j] += expected
            side_cross[j] -= known
            tie_cross[j] -= mixed
            sum_expected += expected
            sum_known += known
            sum_mixed_of_left += mixed
            log_total -= n * math.log(total / both)
            tie_slope -= n * p_tie
            sum_tied += n * p_tie * (1.0 - p_tie)
            p += 1
        slope[i] -= sum_expected
        side_cross[i] += sum_known
        tie_cross[i] += sum_mixed_of_left
        side_slope -= sum_expected
        sum_side += sum_known
        sum_mixed += sum_mixed_of_left
    totals[0] += log_total
    totals[1] += side_slope
    totals[2] += tie_slope
    totals[3] += sum_side
    totals[4] += sum_mixed
    totals[5] += sum_tied
