r"""GPM as the authors' published program iterates, to trace where printed figures come from.

The program differs from the paper's equations in one point: the distribution of item e is
divided by the sum of the *previous* step, :math:`\theta_{e,n} = \sum_{s \in l_{e,n}} \mu_{e,s} /
\lambda_e`, where :math:`\lambda_e` is the sum of :math:`\mu_{e,s}` one step before, and 1 at the
start. The fixed points are the same, but the path to them is not: after the first step theta
sums to the number of serious labels of the item, so that nearly every label looks serious and
reliabilities start near 1. The program stops after 10 or 100 steps without a warning and leaves
theta as it is after the last step; here it is normalised at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from annotruth.kernels.arrays import Floats
from annotruth.observations import Labels


class GPMEstimate(NamedTuple):
    """Reliabilities and item distributions from GPM, by either iteration."""

    reliability: Floats
    distribution: Floats
    converged: bool


def run_published_program(labels: Labels, *, max_iter: int, tol: float = 1e-4) -> GPMEstimate:
    """Fit GPM by the program's iteration until Q changes by less than ``tol``."""
    cell = labels.cell_of_label()
    item, category = labels.item_of_cell()[cell], labels.cell_category[cell]
    annotator = labels.annotator
    irregular = 1.0 / labels.n_categories

    eps = np.full(labels.n_annotators, 0.5)
    theta = labels.observed_shares()
    divisor = np.ones(labels.n_items)
    previous_q = 0.0
    for _ in range(max_iter):
        serious = eps[annotator] * theta[item, category]
        mu = serious / (serious + (1.0 - eps[annotator]) * irregular)
        q = float(
            np.sum(xlogy(mu, serious) + xlogy(1.0 - mu, (1.0 - eps[annotator]) * irregular))
            - np.sum(divisor * (theta.sum(axis=1) - 1.0))
        )
        if abs(q - previous_q) < tol:
            return GPMEstimate(eps, _normalise(theta), converged=True)
        previous_q = q
        eps = np.bincount(annotator, mu, labels.n_annotators) / labels.labels_per_annotator
        sums = np.bincount(item * labels.n_categories + category, mu, theta.size)
        sums = sums.reshape(theta.shape)
        theta, divisor = sums / divisor[:, np.newaxis], sums.sum(axis=1)
    return GPMEstimate(eps, _normalise(theta), converged=False)


def _normalise(theta: Floats) -> Floats:
    distribution: Floats = theta / theta.sum(axis=1, keepdims=True)
    return distribution
