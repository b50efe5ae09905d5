r"""A classifier's probabilities, calibrated on the labels, as what is known about items beside labels.

The classifier is taken as one more annotator, whose probabilities :math:`f_{e,j}` are never believed as
they are. What a prediction of class j means is learned: :math:`M_{j,k}` is the probability that the item
is then of class k, and an exponent :math:`\beta` makes probabilities softer or sharper,

.. math:: g_e(k) = \sum_j \tilde f_{e,j} M_{j,k}, \quad \tilde f_{e,j} \propto f_{e,j}^\beta .

With :math:`A_e(k)` the likelihood of an item's labels in class k, by a fit without the classifier, and
:math:`p` the shares of the classes, the log-likelihood of the labels is

.. math:: \sum_e \log \sum_k g_e(k) A_e(k),

which is concave in M; EM maximises it. Items that are held out decide how much the classifier counts: not
at all, :math:`g = p`; with one parameter, :math:`M = \lambda I + (1 - \lambda) 1 p^T`; or with all of M,
which pseudo-counts draw to the former. All of M is used if that makes their labels likelier by one standard
error, and the classifier at all by two. So one that does not predict labels has no effect.

The model is then fitted again with :math:`g_e / p` as the likelihood of what is known about item e.
Raykar et al., "Learning From Crowds" (2010), learn a classifier and annotators jointly in this way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from annotruth.errors import counted
from annotruth.kernels.arrays import Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels

EXPONENTS = (0.25, 0.5, 1.0, 2.0)
"""The exponents that are compared: below 1 for overconfident classifiers."""

_N_FOLDS = 5
_MAX_ITEMS = 20_000  # that the calibration is chosen with
_MIN_ITEMS = 20  # with fewer, nothing is concluded
_N_STEPS = 50
_N_ERRORS = 2.0  # by how many standard errors held-out labels must be likelier with the classifier
_PSEUDO_ITEMS = 10.0  # per predicted class, distributed as in the calibration with one parameter
_MIN_PROBABILITY = 1e-6  # of a prediction: no classifier is certain


@dataclass(frozen=True, eq=False)
class Calibration:
    """What a classifier's probabilities say about the class of an item."""

    exponent: float  # the power that its probabilities are raised to
    # M over p: how many times likelier the item is of each class if it predicts a class, predicted
    # classes x classes. All ones if the classifier is not used.
    likelihood: Floats

    @property
    def is_used(self) -> bool:
        """Whether the classifier has an effect."""
        return bool((self.likelihood != 1.0).any())

    def of_items(self, predictions: Floats) -> Floats:
        """Return the likelihood of each item's prediction by class; 1 where there is none."""
        likelihood: Floats = np.ones(predictions.shape)
        has = has_prediction(predictions)
        likelihood[has] = sharpened(predictions[has], self.exponent) @ self.likelihood
        return likelihood

    def to_arrays(self) -> dict[str, Floats]:
        """Return it as arrays, by the names that saved fits have."""
        return {
            "classifier_exponent": np.array([self.exponent]),
            "classifier_likelihood": self.likelihood,
        }

    @classmethod
    def from_fit(cls, fit: Fit) -> Calibration | None:
        """Return the calibration that a fit holds; None without a classifier."""
        if "classifier_likelihood" not in fit.parameters:
            return None
        n = fit.data.n_categories
        exponent = fit.parameter("classifier_exponent", 1)
        return cls(float(exponent[0]), fit.parameter("classifier_likelihood", n, n))


def not_used(n_categories: int) -> Calibration:
    """Return the calibration of a classifier that has no effect."""
    return Calibration(1.0, np.ones((n_categories, n_categories)))


def has_prediction(predictions: Floats) -> NDArray[np.bool_]:
    """Return which items have a prediction."""
    return ~np.isnan(predictions[:, 0])


def sharpened(predictions: Floats, exponent: float) -> Floats:
    """Return probabilities raised to a power and normalised; none is 0."""
    powers = np.maximum(predictions, _MIN_PROBABILITY) ** exponent
    normalised: Floats = powers / powers.sum(axis=1, keepdims=True)
    return normalised


def choose_calibration(predictions: Floats, evidence: Floats, prior: Floats) -> Calibration:
    """Return the calibration that held-out items choose.

    ``predictions``: The classifier's probabilities, items x classes; NaN where it has none.
    ``evidence``: The likelihood of each item's labels by class, up to a factor per item.
    ``prior``: The shares of the classes.
    """
    used = np.flatnonzero(has_prediction(predictions))
    n = len(prior)
    if len(used) < _MIN_ITEMS:
        return not_used(n)
    # Evenly spaced in the order of the labels, so that they are the same in every run.
    some = used[:: -(-len(used) // _MAX_ITEMS)]
    gains = {}
    for exponent in EXPONENTS:
        sharp = sharpened(predictions[some], exponent)
        for own_confusion in (False, True):
            gains[own_confusion, exponent] = _held_out_gains(
                sharp, evidence[some], prior, own_confusion
            )
    one, full = (
        max((key for key in gains if key[0] is own), key=lambda key: gains[key].mean())
        for own in (False, True)
    )
    chosen = full if _is_better(gains[full], gains[one], 1.0) else one
    if not _is_better(gains[chosen], np.zeros(len(some)), _N_ERRORS):
        return not_used(n)
    own_confusion, exponent = chosen
    sharp = sharpened(predictions[used], exponent)
    return Calibration(exponent, _meaning(sharp, evidence[used], prior, own_confusion) / prior)


def _held_out_gains(sharp: Floats, evidence: Floats, prior: Floats, own_confusion: bool) -> Floats:
    """Return by how much each item's log-likelihood is higher with the classifier, held out."""
    gains = np.empty(len(sharp))
    fold = np.arange(len(sharp)) % _N_FOLDS
    for held in range(_N_FOLDS):
        kept = fold != held
        meaning = _meaning(sharp[kept], evidence[kept], prior, own_confusion)
        gains[~kept] = np.log(((sharp[~kept] @ meaning) * evidence[~kept]).sum(axis=1))
    return gains - np.log(evidence @ prior)


def _meaning(sharp: Floats, evidence: Floats, prior: Floats, own_confusion: bool) -> Floats:
    """Return M, the probability of each class given the predicted one, by EM."""
    believed, ignored = (sharp * evidence).sum(axis=1), evidence @ prior
    trust = 0.5
    for _ in range(_N_STEPS):
        right = trust * believed
        trust = float((right / (right + (1.0 - trust) * ignored)).mean())
    meaning = trust * np.eye(len(prior)) + (1.0 - trust) * prior
    if not own_confusion:
        return meaning
    pseudo_counts = _PSEUDO_ITEMS * meaning
    for _ in range(_N_STEPS):
        total = ((sharp @ meaning) * evidence).sum(axis=1, keepdims=True)
        meaning = meaning * (sharp.T @ (evidence / total)) + pseudo_counts
        meaning /= meaning.sum(axis=1, keepdims=True)
    return meaning


def _is_better(gains: Floats, others: Floats, n_errors: float) -> bool:
    """Return whether the mean is higher by more than so many standard errors."""
    difference = gains - others
    return bool(difference.mean() > n_errors * difference.std() / np.sqrt(len(difference)))


class KnownItems(NamedTuple):
    """What is known about items beside their labels, as kernels take it."""

    labels: Labels  # the labels; ``known`` is the row of each item in the table, -1 for none
    # the likelihood of what is known by class: known truths, then the classifier's predictions
    table: Floats


def known_items(labels: Labels, known_truth: Floats, calibration: Calibration | None) -> KnownItems:
    """Return what is known about items; ``known_truth`` is as for kernels, categories x classes."""
    if labels.classifier is None or calibration is None or not calibration.is_used:
        return KnownItems(labels, known_truth)
    rows = np.flatnonzero(has_prediction(labels.classifier) & (labels.known < 0))
    known = labels.known.copy()
    known[rows] = len(known_truth) + np.arange(len(rows))
    likelihood = calibration.of_items(labels.classifier[rows])
    n_subtypes = known_truth.shape[1] // labels.n_categories
    table = np.vstack([known_truth, np.repeat(likelihood, n_subtypes, axis=1)])
    return KnownItems(replace(labels, known=known), table)


class ClassifierFinding(NamedTuple):
    """How good a classifier is, by a fit that used it."""

    n_items: int  # the number of items with a prediction
    accuracy: float  # the share of them whose most probable class is the label found
    # the share of the entropy of the classes that its calibrated probabilities remove: 0 if it is
    # not used, 1 if they are certain
    weight: float

    def describe(self) -> str:
        """Return it as one line."""
        line = (
            f"predicts the label found for {self.accuracy:.1%} of {counted(self.n_items, 'item')}; "
        )
        if self.weight == 0.0:
            return f"{line}not used, because it does not improve predictions of held-out labels"
        return f"{line}weight {self.weight:.2f} (0: not used, 1: certain)"


def judge_classifier(fit: Fit) -> ClassifierFinding:
    """Return how good the classifier of a fit is."""
    predictions, calibration = fit.data.classifier, Calibration.from_fit(fit)
    assert predictions is not None
    assert fit.distribution is not None
    assert fit.label is not None
    used = np.flatnonzero(has_prediction(predictions))
    accuracy = float((predictions[used].argmax(axis=1) == fit.label[used]).mean())
    if calibration is None or not calibration.is_used:
        return ClassifierFinding(len(used), accuracy, 0.0)
    shares = fit.distribution.dense(fit.data.n_categories).mean(axis=0)
    calibrated = shares * calibration.of_items(predictions[used])
    calibrated /= calibrated.sum(axis=1, keepdims=True)
    left = entr(calibrated).sum(axis=1).mean() / entr(shares).sum()
    return ClassifierFinding(len(used), accuracy, float(np.clip(1.0 - left, 0.0, 1.0)))
