r"""The share of divided items, where the model assumes one right label per item.

The fit has blamed the annotators for divided items, which blurs the crowd's confusion matrix and
all annotators' confusion with it. Here an item is in class k with probability :math:`(1 - \delta) p_k`, or
divided between any two classes with probability :math:`\delta`. EM estimates the share
:math:`\delta`, with a prior of 1 divided item in 5, and the crowd's matrix M from the labels of the
items that have a class; annotators' confusion follows it:

.. math:: a_s(n \mid k) \propto a_s(n \mid k) \, M^{new}_{n,k} / M^{old}_{n,k}.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from annotruth.advice.latent_classes import category_counts, partitions, posterior_of
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.models.latent_classes import LatentClasses

_DIVIDED, _NOT_DIVIDED = 1.0, 4.0  # pseudo-counts of items
_EACH = 0.5  # pseudo-counts of labels per category and class
_MAX_NUMBERS, _MAX_PARTITIONS = 250_000, 4  # a sample of the items is enough
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-4
_MIN_PROBABILITY = 1e-12


def estimate_divided(labels: Labels, classes: LatentClasses) -> tuple[LatentClasses, float]:
    """Return classes whose confusion is that on items that are not divided, and the share that is."""
    every = partitions(labels, classes, _MAX_NUMBERS)
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
