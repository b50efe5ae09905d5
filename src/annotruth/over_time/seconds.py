r"""What the seconds per answer say about whether a label is serious.

Each annotator's labels are divided into fifths by the seconds they took, so that neither slow annotators
nor slow tasks matter. A label in the fifth b has the probability

.. math:: \epsilon S f_1(b) + (1 - \epsilon) I f_0(b)

with :math:`f_1` and :math:`f_0` the shares of the fifths among serious and other labels, learned by EM
with one pseudo-label per fifth. Nothing says beforehand that fast labels are not serious. Whether the
seconds are informative is decided by held-out labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.over_time.clock import is_number, sort_labels, to_floats

N_BINS = 5
"""The number of bins of an annotator's seconds: fifths."""

_N_FOLDS = 5
_MAX_LABELS = 100_000  # from which shares are learned, and as many predicted
_TOL, _MAX_ITER = 1e-6, 500
_STANDARD_ERRORS = 2.0  # by which held-out labels must be predicted better


class HeldOutGain(NamedTuple):
    """How much better held-out labels are predicted, in nats per label.

    Examples
    --------
    >>> HeldOutGain(mean=0.02, standard_error=0.004).is_clear
    True
    """

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
    """What seconds per answer say.

    Attributes
    ----------
    bins
        The fifth of each label, in the layout; -1 where seconds are missing.
    log_ratio
        The log of how much likelier serious labels are to be in each fifth than others.
    gain
        How much better held-out labels are predicted by it.
    median
        The median seconds in each fifth.

    Examples
    --------
    >>> gain = HeldOutGain(0.02, 0.004)
    >>> evidence = SecondsEvidence(np.array([0, -1]), np.array([-1.0, 1.0]), gain, np.ones(2))
    >>> evidence.update(np.array([0.5, 0.5])).round(2).tolist()
    [0.27, 0.5]
    """

    bins: Codes
    log_ratio: Floats
    gain: HeldOutGain
    median: Floats

    def update(self, p_serious: Floats) -> Floats:
        """Return the probabilities that labels are serious, given their seconds."""
        ratio = np.exp(np.append(self.log_ratio, 0.0))[self.bins]  # -1 is the last
        odds = p_serious * ratio
        updated: Floats = odds / (odds + 1.0 - p_serious)
        return updated


def bin_seconds(labels: Labels) -> tuple[Codes, Codes, Floats] | None:
    """Return the fifth of each label and its rank within the annotator, and the seconds.

    Annotators need one label per bin, and some seconds that differ. None if nobody has them.
    """
    column = labels.covariates.labels.get("seconds")
    if column is None or not is_number(column):
        return None
    seconds, has_seconds = to_floats(column)
    order = sort_labels(labels, has_seconds, seconds)
    sorted_annotator = labels.annotator[order]
    _, begin, n = np.unique(sorted_annotator, return_index=True, return_counts=True)
    if not len(order):
        return None
    last = seconds[order[begin + n - 1]]
    usable = np.repeat((n >= N_BINS) & (last > seconds[order[begin]]), n)
    if not usable.any():
        return None
    rank = np.arange(len(order)) - np.repeat(begin, n)
    bins, ranks = (np.full(labels.n_labels, -1, dtype=np.int64) for _ in range(2))
    # Equal seconds are in one bin, that of their first.
    is_new = np.append(True, (np.diff(seconds[order]) > 0) | (np.diff(sorted_annotator) != 0))
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    bins[order[usable]] = (rank[first] * N_BINS // np.repeat(n, n))[usable]
    ranks[order[usable]] = rank[usable]
    return bins, ranks, seconds


def learn_seconds(
    labels: Labels, reliability: Floats, if_serious: Floats, if_irregular: Floats
) -> SecondsEvidence | None:
    """Return what the seconds of labels say; None where there are none to compare.

    ``reliability`` of each label is without the label's own evidence.
    """
    binned = bin_seconds(labels)
    if binned is None:
        return None
    bins, ranks, seconds = binned
    used = np.flatnonzero(bins >= 0)
    used = used[:: -(-len(used) // _MAX_LABELS)]
    serious = (reliability * if_serious)[used]
    irregular = ((1.0 - reliability) * if_irregular)[used]
    epsilon, bin_of, fold = reliability[used], bins[used], ranks[used] % _N_FOLDS
    gains = np.empty(len(bin_of))
    for held in range(_N_FOLDS):
        out = fold == held
        shares = _learn_shares(serious[~out], irregular[~out], bin_of[~out])
        gains[out] = _log_gains(shares, serious[out], irregular[out], epsilon[out], bin_of[out])
    shares = _learn_shares(serious, irregular, bin_of)
    return SecondsEvidence(
        bins,
        np.log(shares[0] / shares[1]),
        HeldOutGain.of(gains),
        np.array([np.median(seconds[bins == b]) for b in range(N_BINS) if (bins == b).any()]),
    )


def _learn_shares(serious: Floats, irregular: Floats, bins: Codes) -> Floats:
    """Return the shares of the bins among serious and among other labels, 2 x bins."""
    shares = np.full((2, N_BINS), 1.0 / N_BINS)
    for _ in range(_MAX_ITER):
        joint = serious * shares[0, bins]
        p = joint / (joint + irregular * shares[1, bins])
        counts = np.stack([np.bincount(bins, w, N_BINS) for w in (p, 1.0 - p)]) + 1.0
        before, shares = shares, counts / counts.sum(axis=1, keepdims=True)
        if np.abs(shares - before).max() < _TOL:
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
