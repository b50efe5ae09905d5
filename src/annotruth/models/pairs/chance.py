"""Whether pair comparisons agree better than chance."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array, hstack

from annotruth.kernels.arrays import Floats, slices
from annotruth.models.base_fit import Verdict, is_above
from annotruth.models.pairs.pair_gpm.votes import standardised_covariates
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE, Comparisons
from annotruth.observations.pairs.votes import in_canonical_order

_MIN_COMPARISONS = 100
_MIN_RISE = 1.0  # of the log-likelihood ratio: less is rounding where only one order is possible
# Permutations, EM steps and significance: few permutations suffice if comparisons clearly agree.
_LOOKS = ((6, 5, 0.9999), (40, 30, 0.997))
_DRAWS, _STEPS, _SIGNIFICANCE = _LOOKS[-1]
_SERIOUS_DRAWS, _SERIOUS_SIGNIFICANCE = 4, 0.98
_SCORE_PRECISION = 1.0
_START_RELIABILITY = 0.5
_MIN_RELIABILITY, _MAX_RELIABILITY = 1e-6, 0.999
_CROWD_COMPARISONS = 5.0  # pseudo-counts with the crowd's reliability
_MIN_SQUARES = 1e-9  # of deviations, which are 0 where all votes of an annotator are equal
_MAX_ENTRIES = 1 << 22  # of tables of comparisons x draws


def judge_comparisons(data: Comparisons, seed: int, *, n_groups: int = 1) -> Verdict | None:
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

    With several taste groups, tastes may be opposite, and nothing is left of them in common scores. If
    these do not agree, the alternative is that annotators of a group deviate from chance in the same
    direction:

    .. math:: m_{s,e} = n_s^{-1/2} \sum_v (y_v - \bar y_s) (1_{e = l_v} - 1_{e = r_v})

    over the :math:`n_s` votes v of annotator s. The sum of the largest squared singular values of m, as
    many as groups, is compared with those of permuted outcomes, and of draws in which each annotator
    has the scores of one of the groups.

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
    if n_groups > 1:
        return _judge_tastes(data, votes, n_groups, seed)
    serious = ratios.of_draws(votes.draw_serious(_SERIOUS_DRAWS), _STEPS)
    would_agree = _agrees(float(np.median(serious)), by_chance, _SERIOUS_SIGNIFICANCE)
    return "chance" if would_agree else None


def _agrees(ratio: float, permuted: Floats, significance: float) -> bool:
    """Whether a ratio is significantly higher than those of permutations."""
    roots = np.cbrt(np.maximum(permuted, 0.0))
    return ratio > permuted.mean() + _MIN_RISE and is_above(np.cbrt(ratio), roots, significance)


def _judge_tastes(
    data: Comparisons, votes: RandomVotes, n_groups: int, seed: int
) -> Verdict | None:
    """Return whether annotators agree better than chance within groups; None if votes are too few."""
    by_chance = _taste_strengths(data, votes.permute(_DRAWS), n_groups, seed)
    (observed,) = _taste_strengths(data, votes.outcome[:, np.newaxis], n_groups, seed)
    if is_above(observed, by_chance, _SIGNIFICANCE):
        return "informative"
    drawn = votes.draw_serious(_SERIOUS_DRAWS, n_groups)
    serious = float(np.median(_taste_strengths(data, drawn, n_groups, seed)))
    return "chance" if is_above(serious, by_chance, _SERIOUS_SIGNIFICANCE) else None


def _taste_strengths(data: Comparisons, drawn: Floats, n_groups: int, seed: int) -> list[float]:
    """Return the logs of the sums of the largest squared singular values, one per draw.

    Logs of sums of squares are nearly normal.
    """
    annotator, n_votes = data.annotator_of_comparison(), data.comparisons_per_annotator
    strengths = []
    for y in drawn.T:
        deviation = y
        if data.sides_known:
            deviation = y - (np.bincount(annotator, y) / n_votes)[annotator]
        matrix = deviations_by_item(data, deviation / np.sqrt(n_votes[annotator]))
        directions = leading_directions(matrix, n_groups, np.random.default_rng(seed))
        squares = np.maximum(((matrix @ directions) ** 2).sum(), _MIN_SQUARES)
        strengths.append(float(np.log(squares)))
    return strengths


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


_POWER_STEPS = 12  # enough for directions that stand out, and no others matter


def deviations_by_item(data: Comparisons, deviation: Floats) -> csr_array[np.float64]:
    """Return the sums of one number per comparison: annotators x items.

    It counts for the left item, and with the opposite sign for the right one.
    """
    annotator = data.annotator_of_comparison()
    rows, columns = np.tile(annotator, 2), np.concatenate([data.left, data.right])
    values = np.concatenate([deviation, -deviation])
    shape = (data.n_annotators, data.n_items)
    return coo_array((values, (rows, columns)), shape=shape).tocsr()


def leading_directions(
    matrix: csr_array[np.float64], n_directions: int, rng: np.random.Generator
) -> Floats:
    """Return the leading right singular vectors, columns x directions.

    By power iteration, which needs nothing but products with the sparse matrix.
    """
    n_columns = matrix.shape[1]
    start = rng.standard_normal((n_columns, min(n_directions, n_columns)))
    directions: Floats = np.linalg.qr(start)[0]
    for _ in range(_POWER_STEPS):
        directions = np.linalg.qr(np.asarray(matrix.T @ (matrix @ directions)))[0]
    return directions
