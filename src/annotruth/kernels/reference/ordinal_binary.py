"""NumPy twins of the kernels ``ordinal_binary``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit

from annotruth.kernels.arrays import Arrays, Block, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows

Flags = NDArray[np.bool_]


def start(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up what `step` does, with the share of labels above t as mu[e, t]."""
    rows = label_rows(block, lo, hi)
    is_above = _above_thresholds(rows, len(a.prevalence))
    n_labels = np.bincount(rows.item - lo)[:, np.newaxis]
    share = _sum_by_item(is_above.astype(float), rows, lo, hi) / n_labels
    above, below = _apply_known_truth(block, lo, hi, share, 1.0 - share)
    _add_to_sums(rows, lo, is_above, above, below, a)


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Take one E-step and add up what the M-step needs."""
    above, below = _posterior(block, lo, hi, a)
    rows = label_rows(block, lo, hi)
    is_above = _above_thresholds(rows, len(a.prevalence))
    _add_to_sums(rows, lo, is_above, above, below, a)


def distribution(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write every item's distribution: the differences of mu, made non-increasing."""
    above, _ = _posterior(block, lo, hi, a)
    if above.shape[1]:
        above = np.array([isotonic_regression(row, increasing=False).x for row in above])
    certain, impossible = np.ones((hi - lo, 1)), np.zeros((hi - lo, 1))
    a.theta[lo:hi] = -np.diff(np.hstack([certain, above, impossible]), axis=1)


def _above_thresholds(rows: LabelRows, n_thresholds: int) -> Flags:
    """Return whether each label is above each threshold, labels x thresholds."""
    return rows.category[:, np.newaxis] > np.arange(n_thresholds)


def _sum_by_item(values: Floats, rows: LabelRows, lo: int, hi: int) -> Floats:
    total = np.zeros((hi - lo, values.shape[1]))
    np.add.at(total, rows.item - lo, values)
    return total


def _apply_known_truth(
    block: Block, lo: int, hi: int, above: Floats, below: Floats
) -> tuple[Floats, Floats]:
    known = block.known[lo:hi, np.newaxis]
    truth = known > np.arange(above.shape[1])
    return np.where(known >= 0, truth, above), np.where(known >= 0, ~truth, below)


def _posterior(block: Block, lo: int, hi: int, a: Arrays) -> tuple[Floats, Floats]:
    """Return mu and 1 - mu, items x thresholds; add up the log-likelihood."""
    rows = label_rows(block, lo, hi)
    is_above, s = _above_thresholds(rows, len(a.log_likelihood)), rows.annotator
    if_above = np.where(is_above, a.log_hit[s], a.log_miss[s])
    if_below = np.where(is_above, a.log_false_alarm[s], a.log_rejection[s])
    above = a.log_prevalence + _sum_by_item(if_above, rows, lo, hi)
    below = a.log_absence + _sum_by_item(if_below, rows, lo, hi)

    known = block.known[lo:hi, np.newaxis]
    truth = np.where(known > np.arange(above.shape[1]), above, below)
    a.log_likelihood += np.where(known >= 0, truth, np.logaddexp(above, below)).sum(axis=0)
    with np.errstate(invalid="ignore"):  # both sides of a known item may be impossible
        odds = above - below
    return _apply_known_truth(block, lo, hi, expit(odds), expit(-odds))


def _add_to_sums(
    rows: LabelRows, lo: int, is_above: Flags, above: Floats, below: Floats, a: Arrays
) -> None:
    mu, rest = above[rows.item - lo], below[rows.item - lo]
    np.add.at(a.hit, rows.annotator, np.where(is_above, mu, 0.0))
    np.add.at(a.miss, rows.annotator, np.where(is_above, 0.0, mu))
    np.add.at(a.false_alarm, rows.annotator, np.where(is_above, rest, 0.0))
    np.add.at(a.rejection, rows.annotator, np.where(is_above, 0.0, rest))
    a.prevalence += above.sum(axis=0)
