"""Thurstone's model of pair comparisons, with ties and a side bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri

from annotruth.kernels.arrays import Floats, inner
from annotruth.models.pairs.graph import PairCounts, net_sums
from annotruth.models.pairs.score_model import Evaluation, Likelihood, ScoreModel
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE

_HALF_LOG_2PI = 0.9189385332046727


@dataclass(kw_only=True)
class Thurstone(ScoreModel):
    r"""Thurstone's case V (Psychological Review, 1927), with ties by a threshold.

    An annotator perceives the difference :math:`d + z`, where :math:`d = \theta_l - \theta_r + \gamma`
    and z is standard normal, and calls it a tie if it is within :math:`\pm \tau` (Glenn and David,
    Biometrics, 1960):

    .. math::

        P(\text{left}) = \Phi(d - \tau), \quad P(\text{right}) = \Phi(-d - \tau), \quad
        P(\text{tie}) = \Phi(d + \tau) - \Phi(d - \tau).

    Scores are in units of the standard deviation of a perceived difference: a difference of 1 is a
    probability of 84%, ties apart. Otherwise as `BradleyTerry`: the side bias gamma is estimated if
    the sides are known, all annotators are alike, covariates are not used, and scores have a normal
    prior whose variance is estimated from the data.

    Its options are those of `PairEstimator`. ``result_.side_bias`` and ``result_.parameters["tie"]``,
    which is tau, have their 95% intervals; ``result_.parameters["score_variance"]`` is the
    variance of the prior.

    Examples
    --------
    >>> from annotruth.observations import Comparisons
    >>> votes = Comparisons.from_codes(
    ...     [0, 0, 1, 0, 1], [1, 2, 2, 1, 2], [0, 0, 0, 1, 1], [0, 0, 0, 0, 2],
    ...     items=["a", "b", "c"], annotators=["x", "y"], sides_known=False,
    ... )
    >>> model = Thurstone().fit(votes)
    >>> model.result_.scores.rank.tolist()
    [1, 2, 3]
    >>> model.predict_proba(np.array([0]), np.array([2]), np.array([-1])).round(2).tolist()
    [[0.9, 0.01, 0.09]]
    """

    name: ClassVar[str] = "thurstone"

    def likelihood(self, counts: PairCounts) -> Likelihood:
        """Return the log-likelihood of counts as a function, which computes in NumPy."""

        def evaluate(scores: Floats, side_bias: float | None, tie: float | None) -> Evaluation:
            difference = scores[counts.left] - scores[counts.right] + (side_bias or 0.0)
            pairs = case_v(difference, tie, counts.votes)
            per_item = (
                net_sums(counts.left, counts.right, values, counts.n_items)
                for values in (pairs.slope, pairs.information, pairs.mixed)
            )
            slope, side_cross, tie_cross = per_item
            mixed = pairs.mixed.sum()
            corner = np.array([[pairs.information.sum(), mixed], [mixed, pairs.tie_information]])
            return Evaluation(
                pairs.log_likelihood,
                slope,
                extra_slope=np.array([pairs.slope.sum(), pairs.tie_slope]),
                information=pairs.information,
                cross=np.stack([side_cross, tie_cross], axis=1),
                corner=corner,
            )

        return evaluate

    @staticmethod
    def probabilities(difference: Floats, tie: float | None) -> Floats:
        """Return the probabilities of left, right and tie, one row per difference."""
        log_p = _log_probabilities(difference, tie)
        return np.exp(np.stack([log_p.left, log_p.right, log_p.tie], axis=1))

    @staticmethod
    def tie_start(share: float) -> float:
        """Return the tie parameter with which equal items have this share of ties."""
        return float(ndtri((1.0 + share) / 2.0))


class PairDerivatives(NamedTuple):
    """The log-likelihood of pairs' counts, and its derivatives with respect to d and tau."""

    log_likelihood: float
    slope: Floats  # by d, of each pair
    information: Floats  # twice by d, of each pair, with the sign changed
    mixed: Floats  # by d and tau, of each pair, with the sign changed
    tie_slope: float  # by tau, of all pairs
    tie_information: float  # twice by tau, of all pairs, with the sign changed


class _LogProbabilities(NamedTuple):
    left: Floats
    right: Floats
    tie: Floats


def _log_probabilities(difference: Floats, tie: float | None) -> _LogProbabilities:
    """Return the logarithms of the probabilities; NaN for ties if the threshold is negative."""
    threshold = tie or 0.0
    left, right = log_ndtr(difference - threshold), log_ndtr(-difference - threshold)
    if tie is None:
        return _LogProbabilities(left, right, np.full_like(difference, -np.inf))
    # The difference of two lower tails, which do not round to 1.
    distance = np.abs(difference)
    larger, smaller = log_ndtr(threshold - distance), log_ndtr(-threshold - distance)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _LogProbabilities(left, right, larger + np.log1p(-np.exp(smaller - larger)))


def case_v(difference: Floats, tie: float | None, votes: Floats) -> PairDerivatives:
    r"""Return the log-likelihood of counts, pairs x outcomes, and its derivatives.

    It depends on :math:`x = d - \tau` and :math:`y = -d - \tau`: the probabilities are
    :math:`\Phi(x)`, :math:`\Phi(y)` and the rest. Its derivatives are expressed by the ratios
    :math:`\phi(x) / \Phi(x)`, :math:`\phi(y) / \Phi(y)`, :math:`\phi(x) / P(\text{tie})` and
    :math:`\phi(y) / P(\text{tie})`.
    """
    threshold = tie or 0.0
    log_p = _log_probabilities(difference, tie)
    x, y = difference - threshold, -difference - threshold
    n_left, n_right, n_tie = votes[:, LEFT], votes[:, RIGHT], votes[:, TIE]
    tied = n_tie > 0
    log_tie = np.where(tied, log_p.tie, 0.0)
    ratio_x, ratio_y = _density_ratio(x, log_p.left), _density_ratio(y, log_p.right)
    tie_x = np.where(tied, _density_ratio(x, log_tie), 0.0)
    tie_y = np.where(tied, _density_ratio(y, log_tie), 0.0)
    slope_x = n_left * ratio_x - n_tie * tie_x
    slope_y = n_right * ratio_y - n_tie * tie_y
    information_x = n_left * ratio_x * (ratio_x + x) + n_tie * tie_x * (tie_x - x)
    information_y = n_right * ratio_y * (ratio_y + y) + n_tie * tie_y * (tie_y - y)
    information_xy = n_tie * tie_x * tie_y
    return PairDerivatives(
        inner(n_left, log_p.left) + inner(n_right, log_p.right) + inner(n_tie, log_tie),
        slope=slope_x - slope_y,
        information=information_x - 2.0 * information_xy + information_y,
        mixed=information_y - information_x,
        tie_slope=float(-(slope_x + slope_y).sum()),
        tie_information=float((information_x + 2.0 * information_xy + information_y).sum()),
    )


def _density_ratio(x: Floats, log_probability: Floats) -> Floats:
    """Return the normal density at x divided by a probability."""
    # It overflows at a threshold of almost 0 beside ties, where steps are halved.
    with np.errstate(over="ignore"):
        ratio: Floats = np.exp(-0.5 * x**2 - _HALF_LOG_2PI - log_probability)
    return ratio
