r"""A pass over counted pairs. NumPy twin: `annotruth.kernels.reference.pairs.davidson`.

With :math:`u_i = e^{\theta_i / 2}` and :math:`g = e^{\gamma / 2}`, the outcomes left, right and tie of a
pair have probabilities proportional to :math:`\rho = g u_l / u_r`, :math:`1 / \rho` and :math:`\nu`.
"""

from __future__ import annotations

import math

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
    for p in range(lo, hi):
        i, j, n = block.left[p], block.right[p], block.n[p]
        ratio = side * strength[i] / strength[j]
        inverse = 1.0 / ratio
        total = ratio + inverse + nu
        scale = 1.0 / total
        mean = 0.5 * (ratio - inverse) * scale
        expected = n * mean
        p_tie = nu * scale
        known = n * (0.25 * (ratio + inverse) * scale - mean * mean)
        mixed = -expected * p_tie
        information[p] = known
        slope[i] -= expected
        slope[j] += expected
        side_cross[i] += known
        side_cross[j] -= known
        tie_cross[i] += mixed
        tie_cross[j] -= mixed
        log_total -= n * math.log(total)
        side_slope -= expected
        tie_slope -= n * p_tie
        sum_side += known
        sum_mixed += mixed
        sum_tied += n * p_tie * (1.0 - p_tie)
    totals[0] += log_total
    totals[1] += side_slope
    totals[2] += tie_slope
    totals[3] += sum_side
    totals[4] += sum_mixed
    totals[5] += sum_tied
