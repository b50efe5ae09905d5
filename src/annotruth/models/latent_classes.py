"""What a model with latent classes of items gives to `annotruth.advice`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.labels import LabelSummary


@dataclass(frozen=True, eq=False)
class LatentClasses:
    r"""Latent classes of items, and how likely each annotator gives each label to each of them.

    The posterior of item e is :math:`w_{e,k} \propto p_k \prod_{s \in l_e} a_s(r_{e,s} \mid k)^f`.

    Attributes
    ----------
    prior
        :math:`p_k`, one number per class.
    known_truth
        The likelihood of a known truth, categories x classes.
    confusion
        :math:`a_s(n \mid k)`, annotators x categories x classes; none is 0.
    opinions
        The distribution of serious opinion in each class, classes x categories.
    one_truth
        Whether the classes are the categories and every item has one right label.
    label_weight
        The exponent f: what a label counts, below 1 because the annotators' confusion is estimated.
    score_variance
        The variance of an item's score within a class.
    score_inflation
        By how much the variance of scores between classes is multiplied.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = at.simulate.crowd(n_items=20, n_annotators=8, seed=0).labels
    >>> classes = at.RobustGPM().fit(labels).latent_classes()
    >>> classes.opinions.shape  # 32 shapes of opinion over 5 categories
    (32, 5)
    """

    prior: Floats
    known_truth: Floats
    confusion: Floats
    opinions: Floats
    one_truth: bool
    label_weight: float
    score_variance: float = 0.0
    score_inflation: float = 1.0


def variance_inflation(labels: LabelSummary) -> float:
    """Return the factor by which variances grow because annotators' confusion is estimated.

    The fewer labels per annotator, the less is known of them. The form and its figures were
    chosen on simulated crowds.
    """
    return float(1.12 + 7.5 * labels.n_annotators / labels.n_labels)


def one_coin_confusion(accuracy: Floats, n_categories: int) -> Floats:
    """Return the confusion of annotators who give the right label with a probability, else any other."""
    wrong = (1.0 - accuracy) / max(n_categories - 1, 1)
    diagonal = np.eye(n_categories)
    confusion: Floats = np.where(
        diagonal, accuracy[:, np.newaxis, np.newaxis], wrong[:, np.newaxis, np.newaxis]
    )
    return confusion
