r"""The crowd over time: whether annotators get better or worse as they go on.

In bin b of positions or times, annotator s has the reliability
:math:`\sigma(\operatorname{logit} \epsilon_s + \delta_b)`. :math:`\delta_b`, with a standard normal prior,
is found by Newton's method with the sums of squares of the labels' scores as information.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr

from annotruth.analyses.over_time.sample import Sample
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Z_95

N_BINS = 10
"""The number of bins that the crowd's labels are divided into."""

_N_STEPS, _TOL = 20, 1e-3
_LEAST = 0.01  # distance of reliabilities from 0 and 1


class CrowdBins(NamedTuple):
    """The crowd's reliability in bins of labels, one entry per bin."""

    reliability: Floats
    low: Floats
    high: Floats


class Trend(NamedTuple):
    """Whether reliability rises or falls from an annotator's first to their last label."""

    slope: float  # the change of the logit of the reliability from the first to the last label
    # the share of orders of annotators' labels in which a trend as steep would be found
    p_value: float


class EqualBins(NamedTuple):
    """Bins of about equally many labels; equal numbers are in one bin."""

    # the smallest and the largest number in each bin
    first: Floats
    last: Floats
    n_labels: Codes  # the number of labels in each

    @classmethod
    def of(cls, numbers: Floats, *, sample: Floats, n_labels: Codes | None = None) -> EqualBins:
        """Return bins of numbers, each of which holds a tenth of a sample of the labels.

        There are ``n_labels`` labels of each number, or one. Numbers below all of the sample are in
        the first bin, so that no bin is without labels of the sample.
        """
        edges = np.arange(1, N_BINS) * (len(sample) - 1) // N_BINS
        first = np.unique(np.append(np.partition(sample, edges)[edges], sample.min()))
        first[0] = min(first[0], numbers.min())
        codes = _bin_codes(first, numbers)
        last = np.full(len(first), -np.inf)
        np.maximum.at(last, codes, numbers)
        return cls(first, last, np.bincount(codes, n_labels).astype(np.int64))

    def codes(self, numbers: Floats) -> Codes:
        """Return the bin of each number."""
        return _bin_codes(self.first, numbers)


def _bin_codes(first: Floats, numbers: Floats) -> Codes:
    codes: Codes = np.searchsorted(first, numbers, side="right") - 1
    return codes


def crowd_in_bins(sample: Sample, bins: Codes) -> CrowdBins:
    """Return the crowd's reliability in bins, given the bin of each label of a sample."""
    own = logit(np.clip(sample.constant, _LEAST, 1.0 - _LEAST))
    n_labels = np.bincount(bins)
    n = len(n_labels)
    delta: Floats = np.zeros(n)
    information: Floats = np.ones(n)
    for _ in range(_N_STEPS):
        score = _scores(sample, expit(own + delta[bins]))
        information = np.asarray(np.bincount(bins, score**2, n) + 1.0, dtype=np.float64)
        step = np.clip((np.bincount(bins, score, n) - delta) / information, -1.0, 1.0)
        delta += step
        if np.abs(step).max() < _TOL:
            break
    error = Z_95 / np.sqrt(information)
    means = (
        np.bincount(bins, expit(own + shifted[bins]), n) / n_labels
        for shifted in (delta, delta - error, delta + error)
    )
    return CrowdBins(*means)


def _scores(sample: Sample, reliability: Floats) -> Floats:
    """Return the derivative of each label's log-likelihood by the logit of the reliability."""
    difference = sample.difference
    p = sample.irregular + reliability * difference
    scores: Floats = reliability * (1.0 - reliability) * difference / p
    return scores


def find_trend(sample: Sample) -> Trend | None:
    r"""Return the trend of reliability with the position; None if there is nothing to test.

    The statistic is :math:`\sum_s \sum_t u_t (x_t - \bar x_s)` with the labels' scores u and positions x
    from 0 to 1. If the order of an annotator's labels says nothing, all orders are alike; over these
    its mean is 0 and its variance
    :math:`\sum_s \sum_t (u_t - \bar u_s)^2 \sum_t (x_t - \bar x_s)^2 / (n_s - 1)`.
    """
    sequence, n = sample.sequence, np.bincount(sample.sequence)
    u = _scores(sample, np.clip(sample.constant, _LEAST, 1.0 - _LEAST))
    u = u - (np.bincount(sequence, u) / n)[sequence]
    # A single label has no position from 0 to 1, and u = 0.
    x = sample.position / np.maximum(n - 1, 1)[sequence] - 0.5
    statistic = float((u * x).sum())
    squares = np.bincount(sequence, u**2) * np.bincount(sequence, x**2) / np.maximum(n - 1, 1)
    if not squares.sum() > 0.0:
        return None
    z = statistic / np.sqrt(squares.sum())
    information = float(((u * x) ** 2).sum())
    return Trend(statistic / (information + 1.0), float(2.0 * ndtr(-abs(z))))
