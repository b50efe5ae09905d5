r"""What is learned from the crowd's labels over time: its reliability and trend, and seconds per answer.

**Bins.** In bin b of positions or times, annotator s has the reliability
:math:`\sigma(\operatorname{logit} \epsilon_s + \delta_b)`. :math:`\delta_b`, with a standard normal prior,
is found by Newton's method with the sums of squares of the labels' scores as information.

**Seconds.** Each annotator's labels are divided into fifths by the seconds they took, so that neither slow
annotators nor slow tasks matter. A label in the fifth b has the probability

.. math:: \epsilon S f_1(b) + (1 - \epsilon) I f_0(b)

with :math:`f_1` and :math:`f_0` the shares of the fifths among serious and other labels, learned by EM
with one pseudo-label per fifth. Nothing says beforehand that fast labels are not serious. Whether the
seconds are informative is decided by held-out labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from annotruth.analyses.over_time.sequences import Sample, is_number, sort_labels, to_floats
from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Z_95
from annotruth.models.latent_classes import LabelEvidence
from annotruth.observations import Labels

N_BINS = 10
"""The number of bins that the crowd's labels are divided into."""

_N_STEPS, _TOL = 20, 1e-3
_LEAST = 0.01  # distance of reliabilities from 0 and 1

N_FIFTHS = 5
"""The number of bins of an annotator's seconds: fifths."""

_N_FOLDS = 5
_SHARE_TOL, _MAX_ITER = 1e-5, 500
_STANDARD_ERRORS = 2.0  # by which held-out labels must be predicted better


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
        bins = cls(first, np.full(len(first), -np.inf), np.empty(0, np.int64))
        codes = bins.codes(numbers)
        np.maximum.at(bins.last, codes, numbers)
        return bins._replace(n_labels=np.bincount(codes, n_labels).astype(np.int64))

    def codes(self, numbers: Floats) -> Codes:
        """Return the bin of each number."""
        codes: Codes = np.searchsorted(self.first, numbers, side="right") - 1
        return codes


def crowd_in_bins(sample: Sample, bins: Codes) -> list[Floats]:
    """Return the crowd's reliability in bins and its interval, given the bin of each label."""
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
    return [
        np.bincount(bins, expit(own + shifted[bins]), n) / n_labels
        for shifted in (delta, delta - error, delta + error)
    ]


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


class HeldOutGain(NamedTuple):
    """How much better held-out labels are predicted, in nats per label."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, gains: Floats) -> HeldOutGain:
        """Return the mean of gains of labels, and its standard error."""
        return cls(float(gains.mean()), float(gains.std() / np.sqrt(len(gains))))

    @property
    def is_clear(self) -> bool:
        """Whether it is above 0 by two standard errors."""
        return self.mean > _STANDARD_ERRORS * self.standard_error


class SecondsEvidence(NamedTuple):
    """What seconds per answer say."""

    # the fifth of each label, in the layout; -1 where seconds are missing or not informative
    bins: Codes
    # the log of how much likelier serious labels are to be in each fifth than others
    log_ratio: Floats
    gain: HeldOutGain  # how much better held-out labels are predicted by it
    median: Floats  # the median seconds in each fifth; NaN where it has no labels

    def update(self, p_serious: Floats) -> Floats:
        """Return the probabilities that labels are serious, given their seconds."""
        ratio = np.exp(np.append(self.log_ratio, 0.0))[self.bins]  # -1 is the last
        odds = p_serious * ratio
        updated: Floats = odds / (odds + 1.0 - p_serious)
        return updated


def learn_seconds(
    session: Session,
    labels: Labels,
    evidence: LabelEvidence,
    reliability: Floats,
    sampled: NDArray[np.bool_],
) -> SecondsEvidence | None:
    """Return what the seconds of labels say; None where there are none to compare.

    It is learned from the labels of the annotators in a sample, whose ``reliability`` is known
    without the label's own evidence. Others are put into bins only if seconds are informative.
    """
    column = labels.covariates.labels.get("seconds")
    if column is None or not is_number(column):
        return None
    seconds, has_seconds = to_floats(column)
    is_sampled = has_seconds & sampled[labels.annotator]
    used, bin_of, ranks = bin_seconds(session, labels, seconds, is_sampled)
    if not len(used):
        return None
    epsilon, fold = reliability[used], ranks % _N_FOLDS
    serious = np.maximum(epsilon * evidence.if_serious[used], np.finfo(np.float64).tiny)
    irregular = (1.0 - epsilon) * evidence.if_irregular[used]
    shares = _learn_shares(serious, irregular, bin_of, np.full((2, N_FIFTHS), 1.0 / N_FIFTHS))
    gains = np.empty(len(bin_of))
    for held in range(_N_FOLDS):
        out = fold == held
        without = _learn_shares(serious[~out], irregular[~out], bin_of[~out], shares)
        gains[out] = _log_gains(without, serious[out], irregular[out], epsilon[out], bin_of[out])
    gain = HeldOutGain.of(gains)
    bins = np.full(labels.n_labels, -1)
    if gain.is_clear:
        places, bins_of, _ = bin_seconds(session, labels, seconds, has_seconds)
        bins[places] = bins_of
    medians = np.full(N_FIFTHS, np.nan)  # fifths are empty where many seconds are equal
    for b in np.unique(bin_of):
        medians[b] = np.median(seconds[used][bin_of == b])
    return SecondsEvidence(bins, np.log(shares[0] / shares[1]), gain, medians)


def bin_seconds(
    session: Session, labels: Labels, seconds: Floats, some: NDArray[np.bool_]
) -> tuple[Codes, Codes, Codes]:
    """Return the places of some labels, the fifth of each, and its rank within the annotator.

    Annotators need one label per bin, and some seconds that differ; labels of others are left out.
    """
    order, _, begin, end = found = sort_labels(session, labels, some, seconds)
    n = end - begin
    usable = np.repeat((n >= N_FIFTHS) & (seconds[order[end - 1]] > seconds[order[begin]]), n)
    rank = np.arange(len(order)) - np.repeat(begin, n)
    # Equal seconds are in one bin, that of their first.
    is_new = found.first()
    is_new[1:] |= np.diff(seconds[order]) > 0
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    bins = rank[first] * N_FIFTHS // np.repeat(n, n)
    return order[usable], bins[usable], rank[usable]


def _learn_shares(serious: Floats, irregular: Floats, bins: Codes, start: Floats) -> Floats:
    """Return the shares of the bins among serious and among other labels, 2 x bins.

    The likelihood is concave in the shares, so that EM ends at the same ones from any start.
    """
    odds = [(irregular / serious)[bins == b] for b in range(N_FIFTHS)]
    n_labels = np.array([len(each) for each in odds])
    shares = start
    for _ in range(_MAX_ITER):
        ratios = shares[1] / shares[0]
        n_serious = np.array(
            [(1.0 / (1.0 + ratio * o)).sum() for ratio, o in zip(ratios, odds, strict=True)]
        )
        counts = np.stack([n_serious, n_labels - n_serious]) + 1.0
        before, shares = shares, counts / counts.sum(axis=1, keepdims=True)
        if np.abs(shares - before).max() < _SHARE_TOL:
            break
    return shares


def _log_gains(
    shares: Floats, serious: Floats, irregular: Floats, reliability: Floats, bins: Codes
) -> Floats:
    """Return how much more probable labels are given their seconds, as logs."""
    one, other = shares[0, bins], shares[1, bins]
    given = (serious * one + irregular * other) / (reliability * one + (1 - reliability) * other)
    gains: Floats = np.log(given) - np.log(serious + irregular)
    return gains
