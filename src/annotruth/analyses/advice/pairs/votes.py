"""How informative one more vote is: the information in its outcome about a difference of scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from annotruth.kernels.arrays import Floats
from annotruth.models.result import RankFit
from annotruth.observations import TIE

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS /= _WEIGHTS.sum()


class Voters(NamedTuple):
    r"""Annotators as a source of votes: one number each per annotator, or one for a typical one.

    A vote is serious with probability :math:`\varepsilon` and then follows Davidson's model of ties
    with the log odds :math:`\beta (\theta_l - \theta_r)`, or Thurstone's model with this difference;
    otherwise all outcomes are equally likely.

    Attributes
    ----------
    reliability
        The probability of a serious vote.
    sharpness
        By how much differences of scores are multiplied.
    tie
        Davidson's :math:`\nu` or Thurstone's threshold :math:`\tau`; 0 where there are no ties.
    is_normal
        Whether perceived differences are normal, as in Thurstone's model.
    """

    reliability: Floats
    sharpness: Floats
    tie: float
    is_normal: bool = False

    def information(self, difference: Floats) -> Floats:
        r"""Return the Fisher information of one vote about the difference of two scores.

        It is :math:`\sum_y (\partial p_y / \partial d)^2 / p_y`, summed over the outcomes y.
        """
        outcomes = _normal_outcomes if self.is_normal else _davidson_outcomes
        p, slope = outcomes(self.sharpness * difference, self.tie)
        chance = (1.0 - self.reliability) / (3.0 if self.tie > 0.0 else 2.0)
        squared = (self.reliability * self.sharpness * slope) ** 2
        information: Floats = (squared / np.maximum(self.reliability * p + chance, 1e-300)).sum(
            axis=0
        )
        return information

    def expected_information(self, mean: Floats, variance: Floats) -> Floats:
        """Return the information expected of a vote if the difference is normal."""
        sd = np.sqrt(variance)
        expected = np.zeros_like(mean)
        for x, w in zip(_NODES, _WEIGHTS, strict=True):
            expected += w * self.information(mean + x * sd)
        return expected


def voters_of(fit: RankFit) -> Voters:
    """Return the annotators of a fit; all are alike where a model does not distinguish them."""
    n = fit.data.n_annotators
    reliability = np.ones(n) if fit.reliability is None else np.asarray(fit.reliability)
    sharpness = np.asarray(fit.annotator_columns.get("sharpness", np.ones(n)), dtype=np.float64)
    if fit.is_thurstone:
        threshold = float(fit.parameters["tie"][0]) if "tie" in fit.parameters else 0.0
        return Voters(reliability, sharpness, threshold, is_normal=True)
    return Voters(reliability, sharpness, _tie_odds(fit))


def _davidson_outcomes(difference: Floats, tie_odds: float) -> tuple[Floats, Floats]:
    """Return the probabilities of left, right and tie, and their slopes by the difference."""
    half = np.exp(np.clip(difference, -60.0, 60.0) / 2.0)
    total = half + 1.0 / half + tie_odds
    left, right, tie = half / total, 1.0 / (half * total), tie_odds / total
    mean = (left - right) / 2.0
    return np.stack([left, right, tie]), np.stack(
        [left * (0.5 - mean), right * (-0.5 - mean), tie * -mean]
    )


def _normal_outcomes(difference: Floats, threshold: float) -> tuple[Floats, Floats]:
    """Return the same in Thurstone's model."""
    above, below = difference - threshold, difference + threshold
    p = np.stack([ndtr(above), ndtr(-below), ndtr(below) - ndtr(above)])
    of_left, of_right = (np.exp(-(x**2) / 2.0) / np.sqrt(2.0 * np.pi) for x in (above, below))
    return p, np.stack([of_left, -of_right, of_right - of_left])


def _tie_odds(fit: RankFit) -> float:
    """Return the odds of ties with which as many ties are expected as there are."""
    data, scores = fit.data, fit.scores.mean
    share = float(np.mean(data.outcome == TIE))
    if share == 0.0:
        return 0.0
    cosh = 2.0 * np.cosh((scores[data.left] - scores[data.right]) / 2.0)
    low, high = 1e-6, 1e6
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if np.mean(middle / (middle + cosh)) < share else (low, middle)
    return float(np.sqrt(low * high))
