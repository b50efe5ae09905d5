r"""The prior of PairGPM's scores, whose mean depends on how often an item was compared.

Items are seldom compared equally often, and those that are compared more often tend to be the better
ones, or the worse. With the standardised log :math:`x_i` of an item's number of comparisons, scores are
:math:`\theta_i \sim N(b x_i, 1 / \lambda)`, and :math:`b \sim N(0, 1 / \lambda)`. Without b, that is

.. math:: \theta \sim N(0, (I + x x^T) / \lambda), \qquad
    \lambda (I + x x^T)^{-1} = \lambda (I - u u^T), \quad u = x / \sqrt{1 + |x|^2}.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.models.pairs.graph import center_in_parts


class ScorePrior(NamedTuple):
    """The matrix :math:`I - u u^T`, for each group's scores: groups x items.

    Examples
    --------
    >>> prior = make_score_prior(np.array([1, 4, 16]), np.array([0, 0, 0]))
    >>> prior.times(np.array([[-1.0, 0.0, 1.0]])).round(3).tolist()
    [[-0.25, 0.0, 0.25]]
    >>> round(prior.square(np.array([[1.0, -2.0, 1.0]])), 3)  # not in the direction of x
    6.0
    """

    u: Floats

    def times(self, theta: Floats) -> Floats:
        """Return the product of the matrix and each group's scores."""
        product: Floats = theta - np.outer(theta @ self.u, self.u)
        return product

    def square(self, theta: Floats) -> float:
        """Return the sum of the squares of scores with this matrix."""
        return inner(theta, self.times(theta))

    def matrix(self, n_groups: int) -> Floats:
        """Return the matrix of all groups' scores."""
        one = np.eye(len(self.u)) - np.outer(self.u, self.u)
        return np.kron(np.eye(n_groups), one)


def make_score_prior(n_comparisons: Codes, part: Codes) -> ScorePrior:
    """Return the prior for numbers of comparisons; within a part of the graph, x has mean 0."""
    x = center_in_parts(np.log(np.maximum(n_comparisons, 1)), part)
    sd = float(x.std())
    if sd < _LEAST_SPREAD:  # equally often
        return ScorePrior(np.zeros(len(x)))
    x = x / sd
    return ScorePrior(x / np.sqrt(1.0 + inner(x, x)))


def independent_scores(n_items: int) -> ScorePrior:
    """Return the prior whose mean is 0."""
    return ScorePrior(np.zeros(n_items))


_LEAST_SPREAD = 1e-3  # of the log of the numbers of comparisons
