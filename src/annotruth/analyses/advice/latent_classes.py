r"""Expected gain of a label for models with latent classes of items.

An item is in latent class k, whose opinions are :math:`\theta_k`, with posterior probability
:math:`w_k`; its distribution is the mean :math:`\theta = \sum_k w_k \theta_k`. The item's
*uncertainty* is the expected squared Hellinger distance of that mean from the truth,

.. math:: U(w) = \sum_k w_k H^2(\theta_k, \theta)
              = 1 - \sum_n \sqrt{\theta_n} \sum_k w_k \sqrt{\theta_{k,n}}.

It is not the entropy: an item known to be divided has entropy but no uncertainty. A label n has
probability :math:`p_n = \sum_k w_k a(n \mid k)` and turns w into
:math:`w^n_k = w_k a(n \mid k) / p_n`; its *gain* is :math:`U(w) - \sum_n p_n U(w^n)`, never below 0.

Where every item has one right label, a divided item fits no class: each new label would overturn
the posterior, and more would be asked for without end. So one more class is added there, half and
half between the two categories that most of the item's labels name; `estimate_divided`
estimates the share of such items.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import softmax

from annotruth.analyses.advice.items import ItemAssessment, Reasons, TopTwo
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import likely_sets
from annotruth.models.latent_classes import LatentClasses
from annotruth.models.result import Fit
from annotruth.observations import Labels

MAX_NUMBERS = 4_000_000
"""How many numbers are held at once for a partition of the items."""

_DIVIDED, _NOT_DIVIDED = 1.0, 4.0  # pseudo-counts of items
_EACH = 0.5  # pseudo-counts of labels per category and class
_SAMPLE_NUMBERS, _MAX_PARTITIONS = 250_000, 4  # a sample of the items is enough
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-4
_MIN_PROBABILITY = 1e-12


@dataclass(frozen=True, eq=False)
class ItemPosterior:
    """The posterior of some items over the latent classes."""

    weights: Floats  # items x classes; with ``halves`` the last column is that of divided items
    opinions: Floats  # classes x categories
    # items x categories: the opinions each item would have if it were divided, or None
    halves: Floats | None

    def uncertainty(self) -> Floats:
        """Return the expected squared Hellinger distance of each item from its truth."""
        # Rounding errors may leave a value just below zero.
        return np.maximum(self.unnormalised_uncertainty(self.weights[:, np.newaxis])[:, 0], 0.0)

    def gain(self, confusion: Floats) -> Floats:
        """Return how much one label with this confusion, labels x classes, would lower it."""
        joint = self.weights[:, np.newaxis, : confusion.shape[1]] * confusion
        if self.halves is not None:
            divided = self.weights[:, -1:] * (self.halves @ confusion.T)
            joint = np.concatenate([joint, divided[:, :, np.newaxis]], axis=2)
        gain: Floats = self.uncertainty() - self.unnormalised_uncertainty(joint).sum(axis=1)
        return np.maximum(gain, 0.0)

    def updated(self, likelihood: Floats) -> ItemPosterior:
        """Return the posterior after one more label per item, of likelihood items x classes."""
        if self.halves is not None:
            divided = (self.halves * likelihood).sum(axis=1, keepdims=True)
            likelihood = np.concatenate([likelihood, divided], axis=1)
        joint = self.weights * likelihood
        return replace(self, weights=joint / joint.sum(axis=1, keepdims=True))

    def take(self, items: Codes) -> ItemPosterior:
        """Return the posterior of some items, which may be repeated."""
        halves = None if self.halves is None else self.halves[items]
        return ItemPosterior(self.weights[items], self.opinions, halves)

    def distribution(self) -> Floats:
        """Return each item's mean distribution, items x categories."""
        return self._mean(self.weights[:, np.newaxis], self.opinions, self.halves)[:, 0]

    def expected_distance(self) -> Floats:
        """Return the expected Hellinger distance of each item's distribution from its truth."""
        root = np.sqrt(self.distribution())
        affinity = root @ np.sqrt(self.opinions).T
        if self.halves is not None:
            divided = (root * np.sqrt(self.halves)).sum(axis=1, keepdims=True)
            affinity = np.concatenate([affinity, divided], axis=1)
        distance: Floats = (self.weights * np.sqrt(np.maximum(1.0 - affinity, 0.0))).sum(axis=1)
        return distance

    def top_label_shares(self) -> Floats:
        """Return the probability that each category is the top label; divided items have two."""
        top = np.eye(self.opinions.shape[1])[self.opinions.argmax(axis=1)]
        return self._mean(self.weights[:, np.newaxis], top, self.halves)[:, 0]

    def p_top_label(self) -> Floats:
        """Return the probability that the label shown for each item is its true top label."""
        shown = self.distribution().argmax(axis=1)
        p_top: Floats = self.top_label_shares()[np.arange(len(shown)), shown]
        return p_top

    def score_variance(self, values: Floats) -> Floats:
        """Return the variance of each item's score between classes, given categories' values."""
        scores = np.broadcast_to(self.opinions @ values, (len(self.weights), len(self.opinions)))
        if self.halves is not None:
            scores = np.column_stack([scores, self.halves @ values])
        mean = (self.weights * scores).sum(axis=1, keepdims=True)
        variance: Floats = (self.weights * (scores - mean) ** 2).sum(axis=1)
        return variance

    def unnormalised_uncertainty(self, joint: Floats) -> Floats:
        """Return the uncertainty by unnormalised weights (last axis), times their sum."""
        total = joint.sum(axis=2)
        halves = None if self.halves is None else np.sqrt(self.halves)
        mean = np.sqrt(self._mean(joint, self.opinions, self.halves))
        root = self._mean(joint, np.sqrt(self.opinions), halves)
        uncertainty: Floats = total - (mean * root).sum(axis=2) / np.sqrt(total)
        return uncertainty

    def _mean(self, joint: Floats, opinions: Floats, halves: Floats | None) -> Floats:
        mean: Floats = joint[..., : len(opinions)]
        if not self._has_categories_as_classes:
            # One product of matrices, rows in order: NumPy multiplies other layouts without BLAS.
            product = mean.reshape(-1, len(opinions)) @ opinions
            mean = product.reshape(*mean.shape[:-1], -1)
        return mean if halves is None else mean + joint[..., -1:] * halves[:, np.newaxis]

    @cached_property
    def _has_categories_as_classes(self) -> bool:
        """Whether the opinions are an identity matrix, with which nothing needs to be multiplied."""
        return np.array_equal(self.opinions, np.eye(len(self.opinions)))


def partitions(
    labels: Labels, classes: LatentClasses, max_numbers: int | None = None
) -> list[tuple[int, int]]:
    """Split the items so that the arrays of one partition hold about as many numbers at most."""
    n_classes, n_categories = classes.opinions.shape
    numbers = labels.n_labels * n_classes + labels.n_items * n_classes * n_categories
    bounds = np.unique(labels.partition(1 + numbers // (max_numbers or MAX_NUMBERS)))
    return list(pairwise(bounds.tolist()))


def posterior_of(
    labels: Labels, classes: LatentClasses, divided_share: float, lo: int, hi: int
) -> ItemPosterior:
    """Return the posterior of items lo:hi, given the share of divided items."""
    ends = labels.cell_ptr[labels.item_ptr[lo : hi + 1]]
    starts = ends[:-1] - ends[0]
    cells = slice(labels.item_ptr[lo], labels.item_ptr[hi])
    sizes = np.diff(labels.cell_ptr[cells.start : cells.stop + 1])
    likelihood = classes.confusion[
        labels.annotator[ends[0] : ends[-1]], np.repeat(labels.cell_category[cells], sizes)
    ]
    if labels.annotator_weight is not None:
        weights = labels.annotator_weight[labels.annotator[ends[0] : ends[-1]]]
        likelihood = likelihood ** weights[:, np.newaxis]
    weight, known = classes.label_weight, labels.known[lo:hi]
    with np.errstate(divide="ignore"):
        log_known = np.log(classes.known_truth)
    logs = np.log(classes.prior) + weight * np.add.reduceat(np.log(likelihood), starts, axis=0)
    logs += np.where(known[:, np.newaxis] < 0, 0.0, log_known[known])
    other = None if classes.item_likelihood is None else classes.item_likelihood[lo:hi]
    if other is not None:
        logs += np.log(other)
    halves = None
    if divided_share > 0.0:
        halves = _halves(category_counts(labels, lo, hi))
        item = np.repeat(np.arange(hi - lo), np.diff(ends))
        log_likelihood = np.log((likelihood * halves[item]).sum(axis=1))
        pairs = labels.n_categories * (labels.n_categories - 1) / 2
        log_half = np.log(divided_share / pairs) + weight * np.add.reduceat(log_likelihood, starts)
        if other is not None:
            log_half += np.log((other * halves).sum(axis=1))
        log_half[known >= 0] = -np.inf
        logs = np.column_stack([logs + np.log1p(-divided_share), log_half])
    return ItemPosterior(softmax(logs, axis=1), classes.opinions, halves)


def category_counts(labels: Labels, lo: int, hi: int) -> Floats:
    """Return how many labels of each category items lo:hi have."""
    counts = np.zeros((hi - lo, labels.n_categories))
    cells = slice(labels.item_ptr[lo], labels.item_ptr[hi])
    item = np.repeat(np.arange(hi - lo), np.diff(labels.item_ptr[lo : hi + 1]))
    sizes = np.diff(labels.cell_ptr[cells.start : cells.stop + 1])
    counts[item, labels.cell_category[cells]] = sizes
    return counts


def _halves(counts: Floats) -> Floats:
    """Return one half for each of the two categories with most labels, items x categories."""
    two = np.argsort(-counts, axis=1, kind="stable")[:, :2]
    halves = np.zeros_like(counts)
    np.put_along_axis(halves, two, 0.5, axis=1)
    return halves


class LatentClassBasis:
    """Uncertainty and gain of items by the latent classes of a model."""

    def __init__(self, fit: Fit, classes: LatentClasses) -> None:
        self.fit = fit
        self.classes, self.divided_share = classes, 0.0
        if classes.one_truth and fit.data.n_categories > 1:
            self.classes, self.divided_share = estimate_divided(fit.data, classes)

    def posteriors(self) -> Iterator[tuple[int, int, ItemPosterior]]:
        """Yield the posterior of items lo:hi, partition by partition."""
        labels = self.fit.data
        for lo, hi in partitions(labels, self.classes):
            yield lo, hi, posterior_of(labels, self.classes, self.divided_share, lo, hi)

    @cached_property
    def label_gain(self) -> Floats:
        """The gain of one label by each annotator on an item without labels.

        It uses the annotator's own confusion: one who is known to invert the scale may have a high
        gain, and one who is always generous has as high a gain as others.
        """
        prior, confusion = self.classes.prior, self.classes.confusion
        fresh = ItemPosterior(prior[np.newaxis], self.classes.opinions, None)
        size = max(1, MAX_NUMBERS // confusion[0].size)
        after = [
            fresh.unnormalised_uncertainty(prior * confusion[first : first + size]).sum(axis=1)
            for first in range(0, len(confusion), size)
        ]
        gain: Floats = np.maximum(fresh.uncertainty() - np.concatenate(after), 0.0)
        return gain

    def typical_confusion(self, ask: NDArray[np.bool_]) -> Floats:
        """Return the mean confusion, labels x classes, of those to ask; of all if there are none."""
        confusion = self.classes.confusion
        typical: Floats = (confusion[ask] if ask.any() else confusion).mean(axis=0)
        return typical

    def assess(self, ask: NDArray[np.bool_]) -> ItemAssessment:
        """Return how uncertain each item is and what one label by those to ask would gain."""
        labels, confusion = self.fit.data, self.typical_confusion(ask)
        uncertainty, gain = np.empty(labels.n_items), np.empty(labels.n_items)
        top, candidates = [], []
        for lo, hi, posterior in self.posteriors():
            uncertainty[lo:hi] = posterior.uncertainty()
            gain[lo:hi] = posterior.gain(confusion)
            top.append(TopTwo.of_dense(posterior.distribution()))
            if "may_lead" not in self.fit.item_columns:
                candidates.append(likely_sets(posterior.top_label_shares(), labels.scale.names))
        sets = self.fit.item_columns.get("may_lead") or pa.concat_arrays(candidates)
        return ItemAssessment(
            uncertainty, gain, TopTwo.concatenate(top), Reasons.of_sets(sets, labels.scale.names)
        )


def estimate_divided(labels: Labels, classes: LatentClasses) -> tuple[LatentClasses, float]:
    r"""Return classes whose confusion is that on items that are not divided, and the share that is.

    A model that assumes one right label per item attributes divided items to the annotators'
    confusion. Here an item is in class k with probability :math:`(1 - \delta) p_k`, or divided
    between any two classes with probability :math:`\delta`. EM estimates :math:`\delta`, with a
    prior of 1 divided item in 5, and the crowd's confusion matrix M from the items that have a
    class; the annotators' confusion follows it:

    .. math:: a_s(n \mid k) \propto a_s(n \mid k) \, M^{new}_{n,k} / M^{old}_{n,k}.
    """
    every = partitions(labels, classes, _SAMPLE_NUMBERS)
    sample = every[:: -(-len(every) // _MAX_PARTITIONS)]
    n_items = sum(hi - lo for lo, hi in sample)
    matrix, _ = _confusion(labels, classes, 0.0, sample)
    share = _DIVIDED / (_DIVIDED + _NOT_DIVIDED)
    for _ in range(_MAX_ITERATIONS):
        new, n_divided = _confusion(labels, classes, share, sample)
        confusion = classes.confusion * (new / matrix)
        confusion /= confusion.sum(axis=1, keepdims=True)
        classes, matrix = replace(classes, confusion=np.maximum(confusion, _MIN_PROBABILITY)), new
        before = share
        share = (n_divided + _DIVIDED) / (n_items + _DIVIDED + _NOT_DIVIDED)
        if abs(share - before) < _TOLERANCE:
            break
    return classes, share


def _confusion(
    labels: Labels, classes: LatentClasses, share: float, sample: list[tuple[int, int]]
) -> tuple[Floats, float]:
    """Return the crowd's confusion matrix, labels x classes, and the number of divided items."""
    matrix = np.full((labels.n_categories, labels.n_categories), _EACH)
    n_divided = 0.0
    for lo, hi in sample:
        weights = posterior_of(labels, classes, share, lo, hi).weights
        matrix += category_counts(labels, lo, hi).T @ weights[:, : labels.n_categories]
        n_divided += float(weights[:, labels.n_categories :].sum())
    return matrix / matrix.sum(axis=0), n_divided
