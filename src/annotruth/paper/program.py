r"""GPM as the authors' published program iterates it, to see what the printed figures come from.

It differs from the paper's equations in one thing: item e's distribution is divided by the sum
of the *previous* step, :math:`\theta_{e,n} = \sum_{s \in l_{e,n}} \mu_{e,s} / \lambda_e`, where
:math:`\lambda_e` is the sum of :math:`\mu_{e,s}` one step before, and 1 at the start. The fixed
points are the same, the way there is not: after the first step theta sums to the number of
serious labels of the item, so that nearly every label looks serious, and reliabilities start
their way from near 1. The program stops at a cap of 10 or of 100 steps without a word, and
leaves theta as the last step had it; here it is divided by its sum at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels


class Answer(NamedTuple):
    """What GPM says of a crowd, by whichever iteration."""

    reliability: Floats
    shares: Floats
    converged: bool


def iterate(labels: Labels, *, max_iter: int, tol: float = 1e-4) -> Answer:
    """Run the program's iteration until Q changes by less than ``tol``, or up to the cap."""
    cell = labels.cell_of_label()
    item, category = labels.item_of_cell()[cell], labels.cell_category[cell]
    annotator = labels.annotator
    irregular = 1.0 / labels.n_categories

    eps = np.full(labels.n_annotators, 0.5)
    theta = labels.observed_shares()
    divisor = np.ones(labels.n_items)
    last = 0.0
    for _ in range(max_iter):
        serious = eps[annotator] * theta[item, category]
        mu = serious / (serious + (1.0 - eps[annotator]) * irregular)
        q = float(
            np.sum(xlogy(mu, serious) + xlogy(1.0 - mu, (1.0 - eps[annotator]) * irregular))
            - np.sum(divisor * (theta.sum(axis=1) - 1.0))
        )
        if abs(q - last) < tol:
            return Answer(eps, _normalised(theta), converged=True)
        last = q
        eps = np.bincount(annotator, mu, labels.n_annotators) / labels.labels_per_annotator
        sums = np.bincount(item * labels.n_categories + category, mu, theta.size)
        sums = sums.reshape(theta.shape)
        theta, divisor = sums / divisor[:, np.newaxis], sums.sum(axis=1)
    return Answer(eps, _normalised(theta), converged=False)


def _normalised(theta: Floats) -> Floats:
    shares: Floats = theta / theta.sum(axis=1, keepdims=True)
    return shares
