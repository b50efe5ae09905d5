"""Outcomes of comparisons drawn at random: by chance, and by serious annotators."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from annotruth.comparisons.table import LEFT, RIGHT, TIE, Comparisons
from annotruth.kernels.arrays import Floats

_MIN_OWN_SHARES = 10  # comparisons; annotators with fewer have the shares of all such annotators
_SCORE_SD = 1.5  # of the scores that serious comparisons are drawn with


class RandomVotes:
    """Outcomes of the same comparisons that are drawn at random; tables are comparisons x draws.

    Examples
    --------
    >>> from annotruth import simulate
    >>> votes = RandomVotes(simulate.comparers(n_items=5, n_annotators=4).comparisons, seed=0)
    >>> votes.permute(3).shape == (len(votes.outcome), 3)
    True
    """

    def __init__(self, data: Comparisons, seed: int) -> None:
        n = data.n_comparisons
        self._data = data
        self._rng = np.random.default_rng(seed)
        self.outcome = np.array([1.0, -1.0, 0.0])[data.outcome]
        """1 for left, -1 for right, 0 for a tie."""
        has_own = data.comparisons_per_annotator >= _MIN_OWN_SHARES
        group = np.where(has_own, np.cumsum(has_own) - 1, has_own.sum())
        self.group = group[data.annotator_of_comparison()]
        """For each comparison, the number of those annotators who have the same shares."""
        self.by_group = csr_array(
            (np.ones(n), (self.group, np.arange(n))), shape=(int(has_own.sum()) + 1, n)
        )
        """Adds up comparisons by these groups: groups x comparisons."""
        self.n_votes = product(self.by_group, np.ones((n, 1)))
        """The number of comparisons of each group."""

    def permute(self, n_draws: int) -> Floats:
        """Return outcomes permuted within groups; where sides are not known, also exchanged."""
        drawn = np.empty((len(self.outcome), n_draws))
        place = np.argsort(self.group, kind="stable")
        for r in range(n_draws):
            order = np.lexsort((self._rng.random(len(place)), self.group))
            drawn[place, r] = self.outcome[order]
        if not self._data.sides_known:
            drawn *= self._rng.choice([-1.0, 1.0], drawn.shape)
        return drawn

    def draw_serious(self, n_draws: int, n_tastes: int = 1) -> Floats:
        """Return outcomes that depend on scores drawn at random, each annotator's on those of a taste."""
        data = self._data
        scores = _SCORE_SD * self._rng.standard_normal((n_tastes, data.n_items, n_draws))
        taste = self._rng.integers(n_tastes, size=data.n_annotators)[data.annotator_of_comparison()]
        odds = np.exp((scores[taste, data.left] - scores[taste, data.right]) / 2.0)
        shares = self.shares(self.outcome[:, np.newaxis])
        left, right = shares[LEFT] * odds, shares[RIGHT] / odds
        place = self._rng.random(odds.shape) * (left + right + shares[TIE])
        return np.where(place < left, 1.0, np.where(place < left + right, -1.0, 0.0))

    def shares(self, y: Floats) -> list[Floats]:
        """Return the groups' shares of left, right and tie among outcomes, each comparisons x draws.

        Smoothed by one pseudo-count with the crowd's shares.
        """
        counts = [
            product(self.by_group, (y == value).astype(np.float64)) for value in (1.0, -1.0, 0.0)
        ]
        if not self._data.sides_known:
            counts[LEFT] = counts[RIGHT] = (counts[LEFT] + counts[RIGHT]) / 2.0
        return [
            ((count + count.sum(axis=0) / len(y)) / (self.n_votes + 1.0))[self.group]
            for count in counts
        ]


def product(matrix: csr_array[np.float64], values: Floats) -> Floats:
    """Return the product of a sparse and a dense matrix."""
    return np.asarray(matrix @ values)
