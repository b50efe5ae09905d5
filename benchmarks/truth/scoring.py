"""Measures of the probability that a model gives to every class of every item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from benchmarks.truth.sets import TruthSet

FLOOR = 0.01
"""Weight of the uniform distribution in the negative log-likelihood, which bounds it."""

N_BINS = 15
"""Bins of confidence, of equal width."""

# Probabilities closer than this are a tie: some models compute equal shares by different sums.
_TIE = 1e-9


class Bins(NamedTuple):
    """Items by confidence: how many, their mean confidence and their accuracy."""

    n: Codes
    confidence: Floats
    accuracy: Floats


class Score(NamedTuple):
    """The measures of one model on one set; those of probabilities are None without any."""

    accuracy: float
    nll: float | None
    ece: float | None
    brier: float | None
    not_given: float
    seconds: float
    bins: Bins | None


def score_probabilities(found: TruthSet, p: Floats, seconds: float) -> Score:
    r"""Return the measures of probabilities, items x categories.

    With p the probabilities of an item of class k among K classes:

    - accuracy: 1/t if k is among the t classes of the highest probability, else 0;
    - negative log-likelihood: :math:`-\log(0.99\, p_k + 0.01 / K)`;
    - Brier score: :math:`\sum_l (p_l - [l = k])^2`;
    - calibration error: the mean over items of :math:`|\bar a_b - \bar c_b|`, where b is the
      item's bin of confidence, the highest probability, and :math:`\bar a_b` and
      :math:`\bar c_b` are the mean accuracy and confidence of the bin.

    The share of items whose label nobody gave them is computed over all items.
    """
    known = p[found.item]
    has_class, rows = found.truth >= 0, np.arange(len(known))
    p_truth = np.where(has_class, known[rows, found.truth], 0.0)
    correct = shared_credit(known, found.truth)
    confidence = known.max(axis=1)
    bins = calibration_bins(confidence, correct)
    n_classes = found.labels.n_categories
    # (p_k - 1)^2 replaces p_k^2 in the sum of squares.
    brier = (known**2).sum(axis=1) + 1.0 - 2.0 * p_truth
    return Score(
        accuracy=float(correct.mean()),
        nll=float(-np.log((1.0 - FLOOR) * p_truth + FLOOR / n_classes).mean()),
        ece=float((bins.n * np.abs(bins.accuracy - bins.confidence)).sum() / len(known)),
        brier=float(brier.mean()),
        not_given=share_not_given(found, p.argmax(axis=1)),
        seconds=seconds,
        bins=bins,
    )


def score_classes(found: TruthSet, label: NDArray[np.integer], seconds: float) -> Score:
    """Return the measures of a model that reports one class per item and no probabilities."""
    accuracy = float((label[found.item] == found.truth).mean())
    not_given = share_not_given(found, label)
    return Score(accuracy, None, None, None, not_given, seconds, None)


def shared_credit(p: Floats, truth: NDArray[np.int32]) -> Floats:
    """Return each item's accuracy; a tie of t classes with the truth among them counts 1/t."""
    is_top = p >= p.max(axis=1, keepdims=True) - _TIE
    credit: Floats = is_top[np.arange(len(p)), truth] / is_top.sum(axis=1)
    return np.where(truth >= 0, credit, 0.0)


def calibration_bins(confidence: Floats, correct: Floats) -> Bins:
    """Return the items in bins of confidence; empty bins have nothing to compare, 0 and 0."""
    place = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    n = np.bincount(place, minlength=N_BINS)
    sums = (np.bincount(place, values, N_BINS) for values in (confidence, correct))
    return Bins(n, *(total / np.maximum(n, 1) for total in sums))


def share_not_given(found: TruthSet, label: NDArray[np.integer]) -> float:
    """Return the share of items whose label none of their annotators gave."""
    labels = found.labels
    given = np.zeros(labels.n_items, dtype=np.bool_)
    given[labels.item_of_cell()[label[labels.item_of_cell()] == labels.cell_category]] = True
    return float(np.mean(~given))
