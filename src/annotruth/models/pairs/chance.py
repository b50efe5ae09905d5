"""Whether pair comparisons agree better than chance."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack

from annotruth.kernels.arrays import Floats, slices
from annotruth.models.base_fit import Verdict, is_above
from annotruth.models.pairs.pair_gpm.votes import standardised_covariates
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE, Comparisons
from annotruth.observations.pairs.votes import in_canonical_order

_MIN_COMPARISONS = 100
_MIN_RISE = 1.0  # of the log-likelihood ratio: less is rounding where only one order is possible
# Permutations, EM steps and significance: few permutations suffice if comparisons clearly agree.
_LOOKS = ((6, 5, 0.9999), (40, 30, 0.997))
_STEPS = _LOOKS[-1][1]
_SERIOUS_DRAWS, _SERIOUS_SIGNIFICANCE = 4, 0.98
_SCORE_PRECISION = 1.0
_START_RELIABILITY = 0.5
_MIN_RELIABILITY, _MAX_RELIABILITY = 1e-6, 0.999
_CROWD_COMPARISONS = 5.0  # pseudo-counts with the crowd's reliability
_MAX_ENTRIES = 1 << 22  # of tables of comparisons x draws


def judge_comparisons(data: Comparisons, seed: int) -> Verdict | None:
    r"""Return whether comparisons agree better than chance; None if there are too few to tell.

    By chance, annotator s votes left, right and tie (:math:`y = 1, -1, 0`) with their own shares
    :math:`q_{s,y}`, whatever the items. The alternative has serious votes, which depend on scores:

    .. math::

        P(y) = \epsilon_s \frac{q_{s,y} e^{y d / 2}}{\sum_z q_{s,z} e^{z d / 2}}
        + (1 - \epsilon_s) q_{s,y}, \qquad d = \theta_l - \theta_r + x \cdot c.

    The log-likelihood ratio after some EM steps on :math:`\epsilon` (with five pseudo-counts of the
    crowd's reliability) and :math:`\theta` and c (with the prior N(0, 1)) is compared with the ratios
    of permuted outcomes. These are permuted among the comparisons of each annotator, or of all
    annotators with few, so that shares do not change; where sides are not known, items are exchanged
    at random as well. Cube roots of ratios, which are nearly normal, are compared as for labels
    (`annotruth.models.evidence.chance.judge_agreement`). There are too few comparisons to tell
    if those drawn with scores of standard deviation 1.5 do not agree either, or if there are fewer
    than 100.

    Names and the order of rows do not matter, nor do sides that are not known.
    """
    if data.n_comparisons < _MIN_COMPARISONS:
        return None
    data = in_canonical_order(data)
    votes = RandomVotes(data, seed)
    ratios = _ScoreRatios(data, votes)
    for n_draws, n_steps, significance in _LOOKS:
        observed = ratios.of_draws(votes.outcome[:, np.newaxis], n_steps)
        by_chance = ratios.of_draws(votes.permute(n_draws), n_steps)
        if _agrees(float(observed[0]), by_chance, significance):
            return "informative"
    serious = ratios.of_draws(votes.draw_serious(_SERIOUS_DRAWS), _STEPS)
    would_agree = _agrees(float(np.median(serious)), by_chance, _SERIOUS_SIGNIFICANCE)
    return "chance" if would_agree else None


def _agrees(ratio: float, permuted: Floats, significance: float) -> bool:
    """Whether a ratio is significantly higher than those of permutations."""
    roots = np.cbrt(np.maximum(permuted, 0.0))
    return ratio > permuted.mean() + _MIN_RISE and is_above(np.cbrt(ratio), roots, significance)


class _ScoreRatios:
    """Log-likelihood ratios of scores to chance, of comparisons and of random draws."""

    def __init__(self, data: Comparisons, votes: RandomVotes) -> None:
        n = data.n_comparisons
        self._votes = votes
        sides = csr_array(
            (
                np.repeat([1.0, -1.0], n),
                (np.tile(np.arange(n), 2), np.concatenate([data.left, data.right])),
            ),
            shape=(n, data.n_items),
        )
        covariates = standardised_covariates(data)[0]
        self._design = (
            csr_array(hstack([sides, csr_array(covariates)])) if data.covariates else sides
        )
        self._transposed = csr_array(self._design.T)
        self._sizes = abs(self._transposed)

    def of_draws(self, drawn: Floats, n_steps: int) -> Floats:
        """Return the ratios of outcomes, comparisons x draws, after some EM steps."""
        at_once = max(1, _MAX_ENTRIES // len(drawn))
        parts = slices(drawn.shape[1], at_once)
        return np.concatenate([self._fit_draws(drawn[:, part], n_steps) for part in parts])

    def _fit_draws(self, y: Floats, n_steps: int) -> Floats:
        votes = self._votes
        shares = votes.shares(y)
        scores = np.zeros((self._design.shape[1], y.shape[1]))
        eps = np.full((len(votes.n_votes), y.shape[1]), _START_RELIABILITY)
        # Makes the diagonal matrix of the steps an upper bound of the information.
        reach = product(abs(self._design), np.ones((len(scores), 1)))
        for _ in range(n_steps):
            d = product(self._design, scores)
            odds = np.exp(d / 2.0)
            left, right = shares[LEFT] * odds, shares[RIGHT] / odds
            total = left + right + shares[TIE]
            reliability = eps[votes.group]
            serious = reliability * np.exp(y * d / 2.0) / total
            ratio = serious + 1.0 - reliability
            serious /= ratio
            log_ratio = np.log(ratio).sum(axis=0)
            log_ratio -= _SCORE_PRECISION / 2.0 * (scores**2).sum(axis=0)
            crowd = serious.mean(axis=0)
            share = product(votes.by_group, serious) + _CROWD_COMPARISONS * crowd
            eps = share / (votes.n_votes + _CROWD_COMPARISONS)
            eps = np.clip(eps, _MIN_RELIABILITY, _MAX_RELIABILITY)
            expected = (left - right) / total
            variance = (left + right) / total - expected**2
            slope = product(self._transposed, serious * (y - expected) / 2.0)
            slope -= _SCORE_PRECISION * scores
            bound = product(self._sizes, reach * serious * variance / 4.0)
            scores += slope / (bound + _SCORE_PRECISION)
        ratios: Floats = log_ratio
        return ratios


_MIN_OWN_SHARES = 10  # comparisons; annotators with fewer have the shares of all such annotators
_SCORE_SD = 1.5  # of the scores that serious comparisons are drawn with


class RandomVotes:
    """Outcomes of the same comparisons that are drawn at random; tables are comparisons x draws."""

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

    def draw_serious(self, n_draws: int) -> Floats:
        """Return outcomes that depend on scores drawn at random."""
        data = self._data
        scores = _SCORE_SD * self._rng.standard_normal((data.n_items, n_draws))
        odds = np.exp((scores[data.left] - scores[data.right]) / 2.0)
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
