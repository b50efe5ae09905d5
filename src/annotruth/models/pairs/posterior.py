"""The posterior of items' scores: intervals of scores and of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.distribution import Z_95

_DRAWS = 2000
_MOST_DRAWN_NUMBERS = 20_000_000


@dataclass(frozen=True, eq=False)
class ScorePosterior:
    """A normal approximation to the posterior of the items' scores.

    The covariance is items x items; or one variance per item, where there are too many for a matrix.
    """

    mean: Floats
    covariance: Floats

    def take(self, items: NDArray[np.int64]) -> ScorePosterior:
        """Return the posterior of some of the items."""
        if self.covariance.ndim == 1:
            return ScorePosterior(self.mean[items], self.covariance[items])
        return ScorePosterior(self.mean[items], self.covariance[np.ix_(items, items)])

    @property
    def sd(self) -> Floats:
        """The standard deviation of each score."""
        one_per_item = self.covariance.ndim == 1
        return np.sqrt(self.covariance if one_per_item else np.diag(self.covariance))

    @property
    def interval(self) -> Floats:
        """The 95% interval of each score: items x 2."""
        margin = Z_95 * self.sd
        return np.stack([self.mean - margin, self.mean + margin], axis=1)

    @property
    def rank(self) -> NDArray[np.int64]:
        """The rank of each score: 1 for the highest; equal scores have equal ranks."""
        ranks: NDArray[np.int64] = _ranks(self.mean[np.newaxis])[0]
        return ranks

    @property
    def rank_interval(self) -> NDArray[np.int64]:
        """The shortest interval with 95% of the draws of each item's rank, and the rank: items x 2.

        Between quantiles there would be 99% of them, as ranks are few. Of intervals as short, the middle one.
        """
        ordered = np.sort(self._ranks_of_draws, axis=0)
        n_inside = int(np.ceil(0.95 * len(ordered)))
        low, high = ordered[: len(ordered) - n_inside + 1], ordered[n_inside - 1 :]
        shortest = (high - low) == (high - low).min(axis=0)
        nth = shortest.cumsum(axis=0)
        at = (nth > nth[-1] // 2).argmax(axis=0), np.arange(len(self.mean))
        return np.stack([np.minimum(low[at], self.rank), np.maximum(high[at], self.rank)], axis=1)

    @property
    def p_best(self) -> Floats:
        """The probability that an item's score is the highest."""
        best: Floats = (self._ranks_of_draws == 1).mean(axis=0)
        return best

    @cached_property
    def _ranks_of_draws(self) -> NDArray[np.int64]:
        """The ranks of scores drawn from the posterior, draws x items.

        Draws are always the same: items take them in the order of their scores, through the symmetric
        root of the covariance, so that names, sides and the order of rows do not matter.
        """
        n, sd = len(self.mean), self.sd
        n_draws = int(np.clip(_MOST_DRAWN_NUMBERS // max(n, 1), 200, _DRAWS))
        place = np.argsort(np.lexsort((sd, -self.mean)))
        normal = np.random.default_rng(0).standard_normal((n_draws, n))[:, place]
        if self.covariance.ndim == 1:
            return _ranks(self.mean + normal * sd)
        values, vectors = np.linalg.eigh(self.covariance)
        roots = np.sqrt(np.maximum(values, 0.0))
        return _ranks(self.mean + (normal @ vectors * roots) @ vectors.T)


def with_interval(value: float, sd: float) -> Floats:
    """Return a number and the ends of its 95% interval."""
    return np.array([value, value - Z_95 * sd, value + Z_95 * sd])


class Ranking(NamedTuple):
    """Ranks of items, 1 for the best, with the ends of their 95% intervals, and p_best."""

    rank: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    p_best: Floats


def ranking_by_part(scores: ScorePosterior, part: NDArray[np.int64]) -> Ranking:
    """Return the ranks of items among those of the same part of the graph of comparisons."""
    n = len(part)
    rank, low, high = (np.zeros(n, dtype=np.int64) for _ in range(3))
    p_best = np.zeros(n)
    order = np.argsort(part, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        of_part = scores if len(members) == n else scores.take(members)
        rank[members] = of_part.rank
        low[members], high[members] = of_part.rank_interval.T
        p_best[members] = of_part.p_best
    return Ranking(rank, low, high, p_best)


def tied_ranking(part: NDArray[np.int64]) -> Ranking:
    """Return the ranks of items of which nothing is known: tied within each part of the graph."""
    size = np.bincount(part)[part]
    first = np.ones_like(size)
    return Ranking(first, first, size, 1.0 / size)


def _ranks(scores: Floats) -> NDArray[np.int64]:
    """Return ranks within each row, 1 for the highest; equal scores get the best of their ranks."""
    return np.stack([np.searchsorted(np.sort(-row), -row) + 1 for row in scores])
