r"""The crowd over time: whether annotators get better or worse as they go on.

In bin b of positions or times, annotator s has the reliability
:math:`\sigma(\operatorname{logit} \epsilon_s + \delta_b)`. :math:`\delta_b`, with a standard normal prior,
is found by Newton's method with the sums of squares of the labels' scores as information.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Z_95
from annotruth.over_time.sequences import Sequences

N_BINS = 10
"""The number of bins that the crowd's labels are divided into."""

_N_STEPS, _TOL = 20, 1e-3
_MAX_LABELS = 200_000
_LEAST = 0.01  # distance of reliabilities from 0 and 1


class CrowdBins(NamedTuple):
    """The crowd's reliability in bins of labels, one entry per bin.

    Examples
    --------
    >>> bins = CrowdBins(*(np.array([0.8, 0.7]) for _ in range(3)))
    >>> bins.reliability.tolist()
    [0.8, 0.7]
    """

    reliability: Floats
    low: Floats
    high: Floats


class Trend(NamedTuple):
    """Whether reliability rises or falls from an annotator's first to their last label.

    Attributes
    ----------
    slope
        The change of the logit of the reliability from the first to the last label.
    p_value
        The share of orders of annotators' labels in which a trend as steep would be found.

    Examples
    --------
    >>> Trend(slope=-0.6, p_value=0.002).slope
    -0.6
    """

    slope: float
    p_value: float


def equal_bins(values: Floats) -> Codes:
    """Return bins of about equally many numbers; equal ones are in one bin."""
    edges = np.unique(np.quantile(values, np.arange(1, N_BINS) / N_BINS, method="lower"))
    bins: Codes = np.searchsorted(edges, values, side="right")
    _, codes = np.unique(bins, return_inverse=True)
    return codes


def crowd_in_bins(sequences: Sequences, reliability: Floats, bins: Codes) -> CrowdBins:
    """Return the crowd's reliability in bins, given each label's reliability without itself.

    Of many labels, some are used.
    """
    some = slice(None, None, -(-len(bins) // _MAX_LABELS))
    sequences = replace(
        sequences, serious=sequences.serious[some], irregular=sequences.irregular[some]
    )
    bins = bins[some]
    own = logit(np.clip(reliability[some], _LEAST, 1.0 - _LEAST))
    n = int(bins.max()) + 1
    delta: Floats = np.zeros(n)
    information: Floats = np.ones(n)
    for _ in range(_N_STEPS):
        score = _scores(sequences, expit(own + delta[bins]))
        information = np.asarray(np.bincount(bins, score**2, n) + 1.0, dtype=np.float64)
        step = np.clip((np.bincount(bins, score, n) - delta) / information, -1.0, 1.0)
        delta += step
        if np.abs(step).max() < _TOL:
            break
    error = Z_95 / np.sqrt(information)
    n_labels = np.bincount(bins, minlength=n)
    means = (
        np.bincount(bins, expit(own + shifted[bins]), n) / n_labels
        for shifted in (delta, delta - error, delta + error)
    )
    return CrowdBins(*means)


def _scores(sequences: Sequences, reliability: Floats) -> Floats:
    """Return the derivative of each label's log-likelihood by the logit of the reliability."""
    difference = sequences.serious - sequences.irregular
    p = sequences.irregular + reliability * difference
    scores: Floats = reliability * (1.0 - reliability) * difference / p
    return scores


def find_trend(sequences: Sequences, reliability: Floats) -> Trend | None:
    r"""Return the trend of reliability with the position; None if there is nothing to test.

    The statistic is :math:`\sum_s \sum_t u_t (x_t - \bar x_s)` with the labels' scores u and positions x
    from 0 to 1. If the order of an annotator's labels says nothing, all orders are alike; over these
    its mean is 0 and its variance
    :math:`\sum_s \sum_t (u_t - \bar u_s)^2 \sum_t (x_t - \bar x_s)^2 / (n_s - 1)`.
    """
    lengths = sequences.lengths
    some = sequences.take(lengths >= 2)
    if not some.n:
        return None
    places, n = some.places(), some.lengths
    sequence = np.repeat(np.arange(some.n), n)
    u = _scores(sequences, np.clip(reliability, _LEAST, 1.0 - _LEAST))[places]
    x = some.positions() / (n - 1)[sequence] - 0.5
    u = u - (np.bincount(sequence, u) / n)[sequence]
    statistic = float((u * x).sum())
    squares = np.bincount(sequence, u**2) * np.bincount(sequence, x**2) / (n - 1)
    if not squares.sum() > 0.0:
        return None
    z = statistic / np.sqrt(squares.sum())
    information = float(((u * x) ** 2).sum())
    return Trend(statistic / (information + 1.0), float(2.0 * ndtr(-abs(z))))
