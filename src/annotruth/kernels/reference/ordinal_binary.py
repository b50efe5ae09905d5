"""Plain twins of Ord-bin's kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.reference.rows import LabelRows, label_rows

Flags = NDArray[np.bool_]


def start(
    block: Block,
    lo: int,
    hi: int,
    hit: Floats,
    miss: Floats,
    false_alarm: Floats,
    rejection: Floats,
    prevalence: Floats,
) -> None:
    """Add up the answers with the share of labels above t in place of mu[e, t]."""
    rows = label_rows(block, lo, hi)
    yes = _answers(rows, len(prevalence))
    share = _by_item(yes.astype(float), rows, lo, hi) / _by_item(np.ones(yes.shape), rows, lo, hi)
    above, below = _or_known(block, lo, hi, share, 1.0 - share)
    _count(rows, lo, yes, above, below, hit, miss, false_alarm, rejection)
    prevalence += above.sum(axis=0)


def step(
    block: Block,
    lo: int,
    hi: int,
    log_hit: Floats,
    log_miss: Floats,
    log_false_alarm: Floats,
    log_rejection: Floats,
    log_prevalence: Floats,
    log_absence: Floats,
    hit: Floats,
    miss: Floats,
    false_alarm: Floats,
    rejection: Floats,
    prevalence: Floats,
    log_likelihood: Floats,
) -> None:
    """E-step and the sums of the M-step."""
    rates = (log_hit, log_miss, log_false_alarm, log_rejection, log_prevalence, log_absence)
    above, below = _posterior(block, lo, hi, *rates, log_likelihood)
    rows = label_rows(block, lo, hi)
    yes = _answers(rows, len(prevalence))
    _count(rows, lo, yes, above, below, hit, miss, false_alarm, rejection)
    prevalence += above.sum(axis=0)


def distribution(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    log_hit: Floats,
    log_miss: Floats,
    log_false_alarm: Floats,
    log_rejection: Floats,
    log_prevalence: Floats,
    log_absence: Floats,
    log_likelihood: Floats,
) -> None:
    """Differences of mu made falling."""
    rates = (log_hit, log_miss, log_false_alarm, log_rejection, log_prevalence, log_absence)
    above, _ = _posterior(block, lo, hi, *rates, log_likelihood)
    if above.shape[1]:
        above = np.array([isotonic_regression(row, increasing=False).x for row in above])
    certain, impossible = np.ones((hi - lo, 1)), np.zeros((hi - lo, 1))
    theta[lo:hi] = -np.diff(np.hstack([certain, above, impossible]), axis=1)


def _answers(rows: LabelRows, n_thresholds: int) -> Flags:
    """Whether each label lies above each threshold, labels x thresholds."""
    return rows.category[:, np.newaxis] > np.arange(n_thresholds)


def _by_item(values: Floats, rows: LabelRows, lo: int, hi: int) -> Floats:
    total = np.zeros((hi - lo, values.shape[1]))
    np.add.at(total, rows.item - lo, values)
    return total


def _or_known(
    block: Block, lo: int, hi: int, above: Floats, below: Floats
) -> tuple[Floats, Floats]:
    known = block.known[lo:hi, np.newaxis]
    truth = known > np.arange(above.shape[1])
    return np.where(known >= 0, truth, above), np.where(known >= 0, ~truth, below)


def _posterior(
    block: Block,
    lo: int,
    hi: int,
    log_hit: Floats,
    log_miss: Floats,
    log_false_alarm: Floats,
    log_rejection: Floats,
    log_prevalence: Floats,
    log_absence: Floats,
    log_likelihood: Floats,
) -> tuple[Floats, Floats]:
    """Return mu and 1 - mu, items x thresholds; add up the log-likelihood."""
    rows = label_rows(block, lo, hi)
    yes, s = _answers(rows, len(log_likelihood)), rows.annotator
    if_above = np.where(yes, log_hit[s], log_miss[s])
    if_below = np.where(yes, log_false_alarm[s], log_rejection[s])
    above = log_prevalence + _by_item(if_above, rows, lo, hi)
    below = log_absence + _by_item(if_below, rows, lo, hi)

    known = block.known[lo:hi, np.newaxis]
    truth = np.where(known > np.arange(above.shape[1]), above, below)
    log_likelihood += np.where(known >= 0, truth, np.logaddexp(above, below)).sum(axis=0)
    with np.errstate(invalid="ignore"):  # both sides of a known item may be impossible
        odds = above - below
    return _or_known(block, lo, hi, expit(odds), expit(-odds))


def _count(
    rows: LabelRows,
    lo: int,
    yes: Flags,
    above: Floats,
    below: Floats,
    hit: Floats,
    miss: Floats,
    false_alarm: Floats,
    rejection: Floats,
) -> None:
    mu, rest = above[rows.item - lo], below[rows.item - lo]
    np.add.at(hit, rows.annotator, np.where(yes, mu, 0.0))
    np.add.at(miss, rows.annotator, np.where(yes, 0.0, mu))
    np.add.at(false_alarm, rows.annotator, np.where(yes, rest, 0.0))
    np.add.at(rejection, rows.annotator, np.where(yes, 0.0, rest))
