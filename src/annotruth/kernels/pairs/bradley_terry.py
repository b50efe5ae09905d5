r"""Passes of Bradley and Terry's model with ties. NumPy twins: `annotruth.kernels.reference.pairs.bradley_terry`.

With :math:`u_i = e^{\theta_i / 2}` and :math:`g = e^{\gamma / 2}`, the outcomes left, right and tie of a
pair have probabilities proportional to :math:`\rho = g u_l / u_r`, :math:`1 / \rho` and :math:`\nu`. In
CrowdBT there is no gamma, and annotator s agrees with this with probability :math:`\eta_s`; one who
disagrees exchanges left and right.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import ComparisonBlock, Floats, PairBlock
from annotruth.kernels.compiled import compiled

# Outcomes, as in `annotruth.observations.pairs.table`, which kernels do not import.
_RIGHT, _TIE = 1, 2


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


@compiled
def crowd_step(
    block: ComparisonBlock,
    lo: int,
    hi: int,
    eta: Floats,
    strength: Floats,
    nu: float,
    prior: Floats,
    net_wins: Floats,
    totals: Floats,
) -> None:
    """Take one E-step, update eta, and add up what the update of the scores needs.

    ``prior`` holds the two parameters of the Beta prior of eta. ``net_wins[i]`` is the expected
    number of votes for item i less those against it, halved, when votes that disagree are turned
    around; ``totals`` the log-likelihood and the log prior of eta before the step.
    """
    more_agree, more_disagree = prior[0] - 1.0, prior[1] - 1.0
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        agreed = 0.0
        for j in range(first, last):
            ratio = strength[block.left[j]] / strength[block.right[j]]
            total = ratio + 1.0 / ratio + nu
            if block.outcome[j] == _TIE:
                agreed += eta[s]
                totals[0] += math.log(nu / total)
                continue
            won = ratio if block.outcome[j] != _RIGHT else 1.0 / ratio
            agrees, disagrees = eta[s] * won, (1.0 - eta[s]) / won
            posterior = agrees / (agrees + disagrees)
            agreed += posterior
            totals[0] += math.log((agrees + disagrees) / total)
            net = posterior - 0.5
            if block.outcome[j] == _RIGHT:
                net = -net
            net_wins[block.left[j]] += net
            net_wins[block.right[j]] -= net
        # Written without a logarithm of 0 times 0.
        totals[1] += more_agree * math.log(eta[s]) if more_agree > 0.0 else 0.0
        totals[1] += more_disagree * math.log(1.0 - eta[s]) if more_disagree > 0.0 else 0.0
        eta[s] = (more_agree + agreed) / (more_agree + more_disagree + last - first)


@compiled
def crowd_posterior(
    block: ComparisonBlock,
    lo: int,
    hi: int,
    eta: Floats,
    agrees: Floats,
    strength: Floats,
    nu: float,
    totals: Floats,
) -> None:
    """Write the probability that each vote agrees, and add up the log-likelihood."""
    for s in range(lo, hi):
        for j in range(block.annotator_ptr[s], block.annotator_ptr[s + 1]):
            ratio = strength[block.left[j]] / strength[block.right[j]]
            total = ratio + 1.0 / ratio + nu
            if block.outcome[j] == _TIE:
                agrees[j] = eta[s]
                totals[0] += math.log(nu / total)
                continue
            won = ratio if block.outcome[j] != _RIGHT else 1.0 / ratio
            joint = eta[s] * won
            both = joint + (1.0 - eta[s]) / won
            agrees[j] = joint / both
            totals[0] += math.log(both / total)
