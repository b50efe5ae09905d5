"""What is known of people without a model: real accuracy, and agreement with the majority."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels
from benchmarks.honesty.real import votes
from benchmarks.people.verdicts import Bools
from benchmarks.truth.scoring import shared_credit
from benchmarks.truth.sets import TruthSet

LEAST_KNOWN = 10
ABOVE_CHANCE = 0.1
LEAST_KAPPA = 0.1


@dataclass(frozen=True, eq=False)
class KnownPeople:
    r"""How well people label items of known class, one entry per annotator.

    With :math:`a` the share of right labels, :math:`p_k` and :math:`q_k` the shares of class k
    among the labels and among the truths of these items, and :math:`b = \sum_k p_k q_k` what the
    same labels would have, shuffled over the items: :math:`\kappa = (a - b) / (1 - b)`.

    Attributes
    ----------
    n_known
        How many of their labels are of items of known class.
    accuracy
        The share of these that are right; nan without any.
    is_bad
        Accuracy below chance + 0.1, of those who are evaluated.
    is_uninformative
        Bad, or a kappa below 0.1, of those who are evaluated.
    """

    n_known: Codes
    accuracy: Floats
    is_bad: Bools
    is_uninformative: Bools

    @property
    def is_evaluated(self) -> Bools:
        """Whether there are enough known items to say how accurate somebody is."""
        return self.n_known >= LEAST_KNOWN


def known_people(found: TruthSet) -> KnownPeople:
    """Compare people's labels with the known classes."""
    labels = found.labels
    n, k = labels.n_annotators, labels.n_categories
    truth_of = np.full(labels.n_items, -2, dtype=np.int64)
    truth_of[found.item] = found.truth
    truth = truth_of[labels.item_of_label()]
    is_known = truth > -2
    annotator, truth = labels.annotator[is_known], truth[is_known]
    label = labels.category_of_label()[is_known]
    n_known = np.bincount(annotator, minlength=n)
    right = np.bincount(annotator, label == truth, n)
    given, true = np.zeros((n, k)), np.zeros((n, k + 1))
    np.add.at(given, (annotator, label), 1)
    np.add.at(true, (annotator, truth), 1)  # a class that no label has is last
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = right / n_known
        shuffled = (given * true[:, :k]).sum(axis=1) / n_known.astype(np.float64) ** 2
        kappa = (accuracy - shuffled) / (1.0 - shuffled)
    is_evaluated = n_known >= LEAST_KNOWN
    is_bad = is_evaluated & (accuracy < 1.0 / k + ABOVE_CHANCE)
    return KnownPeople(n_known, accuracy, is_bad, is_bad | (is_evaluated & (kappa < LEAST_KAPPA)))


def majority_agreement(labels: Labels, *, with_own: bool) -> Floats:
    """Return how often people's labels are the item's most frequent one; ties of t count 1/t.

    Without their own label, items that nobody else labelled do not count.
    """
    item, label = labels.item_of_label(), labels.category_of_label()
    counts = votes(labels)[item]
    if not with_own:
        counts[np.arange(label.size), label] -= 1
    counted = counts.sum(axis=1) > 0
    credit = shared_credit(counts.astype(np.float64), label.astype(np.int32)) * counted
    n = labels.n_annotators
    with np.errstate(invalid="ignore"):
        agreement: Floats = np.bincount(labels.annotator, credit, n) / np.bincount(
            labels.annotator, counted, n
        )
    return agreement
