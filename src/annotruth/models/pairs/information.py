"""The information about scores and other parameters of a model of pair comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.pairs.graph import LaplacianSystem, center_in_parts


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

    Examples
    --------
    >>> system = LaplacianSystem(2, np.array([0]), np.array([1]), np.array([0.5]), ridge=1.0)
    >>> alone = ScoreInformation(system, np.empty((2, 0)), np.empty((0, 0)), np.zeros(2, int), 1.0)
    >>> alone.score_covariance().round(2).tolist()  # of centred scores
    [[0.25, -0.25], [-0.25, 0.25]]
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

    def score_covariance(self) -> Floats:
        """Return the covariance of the centred scores; only variances if there are many items.

        Items that were never compared have the variance of the prior.
        """
        size = np.bincount(self.part)[self.part]
        by_extra = self._solved_cross @ self.extra_covariance
        if self.system.is_dense:
            covariance: Floats = self.system.inverse + by_extra @ self._solved_cross.T
            covariance = center_in_parts(center_in_parts(covariance, self.part).T, self.part)
            covariance[size == 1, size == 1] = self.variance
            return covariance
        variances = self.system.inverse + (by_extra * self._solved_cross).sum(axis=1)
        return np.where(size == 1, self.variance, variances - self.variance / size)

    def centered_trace(self) -> float:
        """Return the sum of the variances of the centred scores."""
        by_extra = self._solved_cross @ self.extra_covariance
        n_parts = len(np.unique(self.part))
        trace = self.system.inverse_trace() + (by_extra * self._solved_cross).sum()
        return float(trace - n_parts * self.variance)

    @cached_property
    def _solved_cross(self) -> Floats:
        return self.system.solve(self.cross) if self.cross.size else self.cross
