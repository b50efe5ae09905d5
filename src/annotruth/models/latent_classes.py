"""What models say beyond fits: latent classes and confusion, evidence of labels, fits of parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.engines import Input
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.arrays import Covariates

POSTERIOR_INPUTS = (Input("prior"), Input("known_truth"), Input("confusion", annotator_axis=0))
"""The inputs of passes that compute items' posteriors."""

MIN_LIKELIHOOD = 1e-12
"""The least likelihood of a label in a class that odds are computed with."""


@dataclass(frozen=True, eq=False)
class LatentClasses:
    r"""Latent classes of items, and how likely each annotator gives each label to each of them.

    The posterior of item e is :math:`w_{e,k} \propto p_k \prod_{s \in l_e} a_s(r_{e,s} \mid k)^f`.
    """

    prior: Floats  # p, one number per class
    known_truth: Floats  # the likelihood of a known truth, categories x classes
    confusion: Floats  # a, annotators x categories x classes; none is 0
    opinions: Floats  # the distribution of serious opinion in each class, classes x categories
    one_truth: bool  # whether the classes are the categories and every item has one right label
    label_weight: float  # f: what a label counts, below 1 because the confusion is estimated
    score_variance: float = 0.0  # of an item's score within a class
    score_inflation: float = 1.0  # by which the variance of scores between classes is multiplied
    item_likelihood: Floats | None = None  # of what else is known about items, items x classes

    def tables(self) -> dict[str, Floats]:
        """Return what posteriors are computed from, as inputs of passes (`POSTERIOR_INPUTS`)."""
        return {
            "prior": self.prior,
            "known_truth": self.known_truth,
            "confusion": self.confusion,
        }


class ExpectedCounts(NamedTuple):
    """Sums of the items' posteriors."""

    counts: Floats  # over each annotator's labels: annotators x categories x classes
    classes: Floats  # over all items


def variance_inflation(labels: LabelSummary) -> float:
    """Return the factor by which variances grow because annotators' confusion is estimated.

    The fewer labels per annotator, the less is known of them. The form and its figures were
    chosen on simulated crowds.
    """
    n_annotators = labels.weighted(np.ones(labels.n_annotators)).sum()
    return float(1.12 + 7.5 * n_annotators / labels.counted_labels())


def normalise_log_weights(log_weights: Floats) -> Floats:
    """Return weights that sum to 1 in every row, given their logarithms."""
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    normalised: Floats = weights / weights.sum(axis=1, keepdims=True)
    return normalised


def one_coin_confusion(accuracy: Floats, n_categories: int) -> Floats:
    """Return the confusion of annotators who give the right label with a probability, else any other."""
    wrong = (1.0 - accuracy) / max(n_categories - 1, 1)
    diagonal = np.eye(n_categories)
    confusion: Floats = np.where(
        diagonal, accuracy[:, np.newaxis, np.newaxis], wrong[:, np.newaxis, np.newaxis]
    )
    return confusion


def confusion_log_odds(labels: Labels, confusion: Floats, first: Codes, second: Codes) -> Floats:
    """Return the log-odds of each label between two categories of its item.

    ``confusion`` is annotators x categories x classes, and no entry counts as less than
    `MIN_LIKELIHOOD`; ``first`` and ``second`` are one category per item.
    """
    item, label = labels.item_of_label(), labels.category_of_label()
    one, other = (
        np.log(np.maximum(confusion[labels.annotator, label, category[item]], MIN_LIKELIHOOD))
        for category in (first, second)
    )
    odds: Floats = one - other
    return odds


def pool_to_class(confusion: Floats, class_of: Codes) -> Floats:
    """Return a confusion matrix, categories x states, in which no label is likelier than the class.

    Labels that would be share the mean with it.
    """
    confusion = confusion.copy()
    above = confusion > confusion[class_of, np.arange(len(class_of))]
    for z in np.flatnonzero(above.any(axis=0)):
        confusion[:, z] = _pooled(confusion[:, z], class_of[z])
    return confusion


def _pooled(distribution: Floats, place: int) -> Floats:
    """Return the distribution with the mean of all entries that would exceed it at ``place``."""
    others = np.sort(np.delete(distribution, place))[::-1]
    total, n = distribution[place], 1
    for other in others:
        if other <= total / n:
            break
        total, n = total + other, n + 1
    pooled = distribution > total / n
    pooled[place] = True
    return np.where(pooled, total / n, distribution)


@dataclass(frozen=True, eq=False)
class LabelEvidence:
    r"""What labels say about reliability, one by one.

    At the reliability :math:`\epsilon` label j has the probability
    :math:`\epsilon S_j + (1 - \epsilon) I_j`. What is known of its item is inferred from the other
    labels of the item.
    """

    if_serious: Floats  # S of each label, in the order of the layout of Labels
    if_irregular: Floats  # I of each label
    levels: Floats  # the levels of reliability that are considered, rising
    # the posterior of each annotator's level if it is constant, annotators x levels
    weights: Floats


@dataclass(frozen=True, eq=False)
class Parts:
    """A division of annotators' labels into parts, each of which is fitted as an annotator."""

    of_label: Codes  # the part of each label, in the order of the layout
    annotator: Codes  # the annotator of each part

    def labels(self, labels: Labels) -> Labels:
        """Return the labels with parts as their annotators, in the same layout."""
        prior = labels.annotator_prior
        return replace(
            labels,
            annotators=pa.array(np.arange(len(self.annotator))),
            annotator=self.of_label.astype(np.int32),
            annotator_prior=None if prior is None else prior[self.annotator],
            covariates=Covariates(),
        )

    def shares(self) -> Floats:
        """Return the share of each part in the labels of its annotator."""
        n_labels = np.bincount(self.of_label, minlength=len(self.annotator))
        shares: Floats = n_labels / np.bincount(self.annotator, n_labels)[self.annotator]
        return shares

    def mean(self, values: Floats) -> Floats:
        """Return the mean of the parts of each annotator, weighted by their labels."""
        shares = self.shares().reshape(-1, *[1] * (values.ndim - 1))
        return self.total(shares * values)

    def total(self, values: Floats) -> Floats:
        """Return the sum over the parts of each annotator."""
        total = np.zeros((self.annotator.max() + 1, *values.shape[1:]))
        np.add.at(total, self.annotator, values)
        return total


@dataclass(frozen=True, eq=False)
class PartedFit:
    """A fit in which parts of annotators' labels have reliabilities of their own."""

    fit: Fit  # with one entry per annotator: means over parts, weighted by labels
    reliability: Floats  # of each part, with its 95% interval
    low: Floats
    high: Floats
