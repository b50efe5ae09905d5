"""NumPy twins of `annotruth.kernels.pairs.crowd_bt`."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from annotruth.kernels.arrays import ComparisonBlock, Floats

_LEFT, _TIE = 0, 2


def step(
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
    agrees = np.zeros(block.annotator_ptr[-1])
    posterior(block, lo, hi, eta, agrees, strength, nu, totals)
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


def posterior(
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
