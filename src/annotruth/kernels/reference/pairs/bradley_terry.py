"""NumPy twins of ``native/pairs_bradley_terry.cpp``, which documents them."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from annotruth.kernels.arrays import ComparisonBlock, Floats, PairBlock

_LEFT, _TIE = 0, 2


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
    """Take one E-step, update eta, and add up what the update of the scores needs."""
    agrees: Floats = np.zeros(block.annotator_ptr[-1])
    crowd_posterior(block, lo, hi, eta, agrees, strength, nu, totals)
    rows = slice(block.annotator_ptr[lo], block.annotator_ptr[hi])
    annotator = np.repeat(np.arange(hi - lo), np.diff(block.annotator_ptr[lo : hi + 1]))
    outcome = block.outcome[rows]
    net = np.where(outcome == _TIE, 0.0, agrees[rows] - 0.5)
    net = np.where(outcome == _LEFT, net, -net)
    np.add.at(net_wins, block.left[rows], net)
    np.add.at(net_wins, block.right[rows], -net)

    old = eta[lo:hi]
    totals[1] += (xlogy(prior[0] - 1.0, old) + xlogy(prior[1] - 1.0, 1.0 - old)).sum()
    agreed = np.bincount(annotator, agrees[rows], hi - lo)
    n = np.bincount(annotator, minlength=hi - lo)
    eta[lo:hi] = (prior[0] - 1.0 + agreed) / (prior.sum() - 2.0 + n)


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
    rows = slice(block.annotator_ptr[lo], block.annotator_ptr[hi])
    reliability = np.repeat(eta[lo:hi], np.diff(block.annotator_ptr[lo : hi + 1]))
    outcome = block.outcome[rows]
    ratio = strength[block.left[rows]] / strength[block.right[rows]]
    won = np.where(outcome == _LEFT, ratio, 1.0 / ratio)
    joint = np.stack([reliability * won, (1.0 - reliability) / won])
    is_tie = outcome == _TIE
    agrees[rows] = np.where(is_tie, reliability, joint[0] / joint.sum(axis=0))
    probability = np.where(is_tie, nu, joint.sum(axis=0)) / (ratio + 1.0 / ratio + nu)
    totals[0] += np.log(probability).sum()
