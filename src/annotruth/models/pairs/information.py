"""The information about scores and other parameters of a model of pair comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.pairs.graph import LaplacianSystem, PairCounts

PRIOR_SD = 3.0
"""The standard deviation of the priors of the side bias and of the tie parameter."""


class Evaluation(NamedTuple):
    """A log-likelihood of the counts of pairs at some parameters, and its derivatives.

    Parameters other than scores are, in this order, the side bias and the tie parameter, where there
    are such. Information is the second derivative with the sign changed.
    """

    log_likelihood: float
    slope: Floats
    """The slope of each score."""
    extra_slope: Floats
    """The slope of each other parameter."""
    information: Floats
    """The information of each pair about the difference of its scores."""
    cross: Floats
    """The mixed information: items x other parameters."""
    corner: Floats
    """The information about the other parameters."""


Likelihood: TypeAlias = Callable[[Floats, float | None, float | None], Evaluation]
"""Evaluates scores, the side bias and the tie parameter; None where there is none."""


@dataclass(frozen=True, eq=False)
class ScoreInformation:
    """The information matrix of scores and other parameters, in blocks.

    Attributes
    ----------
    system
        The block of the scores.
    cross
        The block of scores x other parameters.
    corner
        The block of the other parameters.
    part
        The connected part that each item is in.
    variance
        The variance of the scores' prior.
    """

    system: LaplacianSystem
    cross: Floats
    corner: Floats
    part: NDArray[np.int64]
    variance: float

    def solve(self, scores: Floats, extra: Floats) -> tuple[Floats, Floats]:
        """Return the solution of the equations with this matrix."""
        of_scores = self.system.solve(scores)
        moves: Floats = self.extra_covariance @ (extra - self.cross.T @ of_scores)
        return of_scores - self._solved_cross @ moves, moves

    @cached_property
    def extra_covariance(self) -> Floats:
        """The covariance of the other parameters."""
        covariance: NDArray[np.floating] = np.linalg.inv(
            self.corner - self.cross.T @ self._solved_cross
        )
        return covariance.astype(np.float64)

    def score_covariance(self, scores: Floats, prior_items: float) -> Floats:
        r"""Return the covariance of the centred scores; only variances if there are many items.

        It includes the uncertainty of the prior's variance: :math:`\log \sigma^2`, whose variance is
        2 / (prior_items + n_determined), moves the scores by :math:`A^{-1} \theta / \sigma^2`. Items
        that were never compared have the variance of the prior.
        """
        size = np.bincount(self.part)[self.part]
        by_extra = self._solved_cross @ self.extra_covariance
        by_scale = self.solve(scores, np.zeros(len(self.corner)))[0] / self.variance
        by_scale *= np.sqrt(2.0 / (prior_items + self.n_determined()))
        if self.system.is_dense:
            left = np.column_stack([by_extra, by_scale])
            right = np.column_stack([self._solved_cross, by_scale])
            covariance: Floats = left @ right.T
            covariance += self.system.centered_inverse
            covariance[size == 1, size == 1] = self.variance
            return covariance
        by_extra = (by_extra * self._solved_cross).sum(axis=1)
        variances = self.system.centered_inverse + by_extra + by_scale**2
        return np.where(size == 1, self.variance, variances)

    def n_determined(self) -> float:
        """Return how many differences of scores the data determine, rather than the prior."""
        by_extra = self._solved_cross @ self.extra_covariance
        trace = self.system.centered_trace() + float((by_extra * self._solved_cross).sum())
        n_differences = len(self.part) - len(np.unique(self.part))
        return max(n_differences - trace / self.variance, 0.0)

    @cached_property
    def _solved_cross(self) -> Floats:
        return self.system.solve(self.cross) if self.cross.size else self.cross


def make_information(
    counts: PairCounts, part: NDArray[np.int64], evaluation: Evaluation, *, variance: float
) -> ScoreInformation:
    """Return the information about the parameters, that of their priors included."""
    system = LaplacianSystem(
        counts.left, counts.right, evaluation.information, 1.0 / variance, part
    )
    corner = evaluation.corner + np.diag(np.full(len(evaluation.corner), PRIOR_SD**-2))
    return ScoreInformation(system, evaluation.cross, corner, part, variance)
