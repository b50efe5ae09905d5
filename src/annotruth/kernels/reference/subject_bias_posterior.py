"""NumPy twins of the kernels ``subject_bias_posterior``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Arrays, Block, Codes, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows


class _Votes(NamedTuple):
    """Votes less their biases at every level of ambiguity: the last axis runs over the levels."""

    rows: LabelRows
    item: Codes  # the place of each vote's item
    known: NDArray[np.bool_]  # whether each item has a known truth
    z: Floats  # votes less biases, votes x 1
    w: Floats
    precision: Floats  # of the items' scores
    r: Floats  # residuals from the scores
    log_p: Floats  # log-likelihood of the items' votes, items x levels


def _sum_by(item: Codes, n: int, values: Floats) -> Floats:
    """Return the sums of the rows of ``values`` by item."""
    total = np.zeros((n, values.shape[1]))
    np.add.at(total, item, values)
    return total


def _at_levels(block: Block, lo: int, hi: int, variance: Floats, a: Arrays) -> _Votes:
    rows = label_rows(block, lo, hi)
    item, truth = rows.item - lo, block.known[lo:hi]
    z = (a.values[rows.category] - a.b[rows.annotator])[:, np.newaxis]
    w = 1.0 / ((variance[rows.annotator] + a.offset[rows.item])[:, np.newaxis] + a.levels)
    precision = _sum_by(item, hi - lo, w)
    known = (truth >= 0)[:, np.newaxis]
    mean = _sum_by(item, hi - lo, w * z) / precision
    score = np.where(known, a.values[truth][:, np.newaxis], mean)
    r = z - score[item]
    log_p = 0.5 * (
        _sum_by(item, hi - lo, np.log(w) - w * r**2) - np.where(known, 0.0, np.log(precision))
    )
    return _Votes(rows, item, known, z, w, precision, r, log_p)


def _shares(log_weights: Floats) -> Floats:
    """Return the exponentials of the last axis, normalised."""
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up the log-likelihood of every inconsistency, given the other votes on each item."""
    votes = _at_levels(block, lo, hi, a.variance, a)
    annotator, item = votes.rows.annotator, votes.item
    a.hyper += np.logaddexp.reduce(votes.log_p[:, np.newaxis] + a.log_hyper, axis=2).sum(axis=0)
    share = _shares(votes.log_p + a.log_prior)[item]
    np.add.at(a.moments[:, 0], annotator, (share * votes.w * votes.r).sum(axis=1))
    np.add.at(a.moments[:, 1], annotator, (share * votes.w).sum(axis=1))

    is_known = votes.known[item, 0]
    if len(a.coupling):
        ambiguity = a.levels + a.offset[votes.rows.item][:, np.newaxis]
        weight = 1.0 / (a.v2[annotator][:, np.newaxis] + ambiguity)
        precision = _sum_by(item, hi - lo, weight)
        np.add.at(a.coupling, (annotator, annotator), (share * weight).sum(axis=1))
        for e in np.flatnonzero(~votes.known[:, 0]):
            mine = np.flatnonzero(item == e)
            product = (share[mine] * weight[mine] / precision[e]) @ weight[mine].T
            np.add.at(a.coupling, np.ix_(annotator[mine], annotator[mine]), -product)
    some = is_known | (np.bincount(item)[item] > 1)
    annotator, is_known = annotator[some], is_known[some, np.newaxis]
    w, r, total = votes.w[some], votes.r[some], votes.precision[item][some]
    others = np.where(is_known, 1.0, total - w)
    y = np.where(is_known, r, r * total / others)
    of_score = np.where(is_known, 0.0, 1.0 / others)
    own = 1.0 / w + of_score
    log_own = -0.5 * (np.log(own) + y**2 / own)
    share = _shares(votes.log_p[item][some] - log_own + a.log_prior)
    a2 = 1.0 / w - a.variance[annotator][:, np.newaxis] + of_score
    at_level = a.v2_levels[:, np.newaxis] + a2[:, np.newaxis]  # votes x inconsistencies x levels
    log_p = np.log(share)[:, np.newaxis] - 0.5 * (
        np.log(at_level) + y[:, np.newaxis] ** 2 / at_level
    )
    np.add.at(a.log_likelihood, annotator, np.logaddexp.reduce(log_p, axis=2))
    np.add.at(a.information, annotator, (_shares(log_p) / at_level).sum(axis=2))


def score_moments(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Set the posterior mean and variance of each score, and the variance of that variance."""
    n = hi - lo
    votes = _at_levels(block, lo, hi, a.v2**2 / (a.v2 + a.b_variance), a)
    share = _shares(votes.log_p + a.log_prior)
    votes = _at_levels(block, lo, hi, a.v2, a)
    item, s = votes.item, votes.rows.annotator
    of_bias, of_v2 = a.b_variance[s][:, np.newaxis], a.v2_moments[s]
    u = votes.w / votes.precision[item]
    m = _sum_by(item, n, u * votes.z)
    v = a.v2[s][:, np.newaxis]
    noise = 1.0 / votes.w - v + of_v2[:, :1]
    weights = (u * votes.r * v * votes.w) ** 2 * of_v2[:, 2:]
    if len(a.b_covariance):
        biases = np.zeros_like(m)
        for e in range(n):
            mine = np.flatnonzero(item == e)
            covariance = a.b_covariance[np.ix_(s[mine], s[mine])]
            biases[e] = np.maximum((u[mine] * (covariance @ u[mine])).sum(axis=0), 0.0)
    else:
        biases = _sum_by(item, n, u**2 * of_bias)
    total = _sum_by(item, n, u**2 * noise + weights) + biases
    of_total = _sum_by(item, n, u**4 * of_v2[:, 1:2])
    truth = block.known[lo:hi]
    known = truth >= 0
    average, expected = (share * m).sum(axis=1), (share * total).sum(axis=1)
    between = (share * (m - average[:, np.newaxis]) ** 2).sum(axis=1)
    difference = (total - expected[:, np.newaxis]) ** 2
    a.mean[lo:hi] = np.where(known, a.values[truth], average)
    a.variance[lo:hi] = np.where(known, 0.0, expected + between)
    a.spread[lo:hi] = np.where(known, 0.0, (share * (difference + of_total)).sum(axis=1))
