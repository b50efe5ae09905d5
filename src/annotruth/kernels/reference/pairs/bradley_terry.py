"""NumPy twins of ``native/pairs_bradley_terry.cpp``, which documents them."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from annotruth.kernels.arrays import Arrays, ComparisonBlock, PairBlock

_LEFT, _TIE = 0, 2


def log_partition(block: PairBlock, lo: int, hi: int, a: Arrays) -> None:
    """Add up the logarithms of the partition function, with the sign changed, and derivatives."""
    left, right, n = block.left[lo:hi], block.right[lo:hi], block.n[lo:hi]
    ratio = a.side * a.strength[left] / a.strength[right]
    total = ratio + 1.0 / ratio + a.nu
    p_left, p_right, p_tie = ratio / total, 1.0 / ratio / total, a.nu / total
    mean = (p_left - p_right) / 2.0
    known = n * ((p_left + p_right) / 4.0 - mean**2)
    mixed = -n * mean * p_tie
    a.information[lo:hi] = known
    for values, sums in ((-n * mean, a.slope), (known, a.side_cross), (mixed, a.tie_cross)):
        np.add.at(sums, left, values)
        np.add.at(sums, right, -values)
    of_tie = n * p_tie * (1.0 - p_tie)
    terms = (-n * np.log(total), -n * mean, -n * p_tie, known, mixed, of_tie)
    a.totals += [values.sum() for values in terms]


def crowd_step(block: ComparisonBlock, lo: int, hi: int, a: Arrays) -> None:
    """Take one E-step, update eta, and add up what the update of the scores needs."""
    a.agrees = np.zeros(block.annotator_ptr[-1])
    crowd_posterior(block, lo, hi, a)
    rows = slice(block.annotator_ptr[lo], block.annotator_ptr[hi])
    annotator = np.repeat(np.arange(hi - lo), np.diff(block.annotator_ptr[lo : hi + 1]))
    outcome = block.outcome[rows]
    net = np.where(outcome == _TIE, 0.0, a.agrees[rows] - 0.5)
    net = np.where(outcome == _LEFT, net, -net)
    np.add.at(a.net_wins, block.left[rows], net)
    np.add.at(a.net_wins, block.right[rows], -net)

    old = a.eta[lo:hi]
    a.totals[1] += (xlogy(a.prior[0] - 1.0, old) + xlogy(a.prior[1] - 1.0, 1.0 - old)).sum()
    agreed = np.bincount(annotator, a.agrees[rows], hi - lo)
    n = np.bincount(annotator, minlength=hi - lo)
    a.eta[lo:hi] = (a.prior[0] - 1.0 + agreed) / (a.prior.sum() - 2.0 + n)


def crowd_posterior(block: ComparisonBlock, lo: int, hi: int, a: Arrays) -> None:
    """Write the probability that each vote agrees, and add up the log-likelihood."""
    rows = slice(block.annotator_ptr[lo], block.annotator_ptr[hi])
    reliability = np.repeat(a.eta[lo:hi], np.diff(block.annotator_ptr[lo : hi + 1]))
    outcome = block.outcome[rows]
    ratio = a.strength[block.left[rows]] / a.strength[block.right[rows]]
    won = np.where(outcome == _LEFT, ratio, 1.0 / ratio)
    joint = np.stack([reliability * won, (1.0 - reliability) / won])
    is_tie = outcome == _TIE
    a.agrees[rows] = np.where(is_tie, reliability, joint[0] / joint.sum(axis=0))
    probability = np.where(is_tie, a.nu, joint.sum(axis=0)) / (ratio + 1.0 / ratio + a.nu)
    a.totals[0] += np.log(probability).sum()
