"""How informative one more vote is: the information in its outcome about a difference of scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.comparisons import TIE
from annotruth.kernels.arrays import Floats
from annotruth.models.pairs.result import RankFit

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS /= _WEIGHTS.sum()


class Voters(NamedTuple):
    r"""Annotators as a source of votes: one number each per annotator, or one for a typical one.

    A vote is serious with probability :math:`\varepsilon` and then follows Davidson's model of ties
    with the log odds :math:`\beta (\theta_l - \theta_r)`; otherwise all outcomes are equally likely.

    Attributes
    ----------
    reliability
        The probability of a serious vote.
    sharpness
        By how much differences of scores are multiplied.
    tie_odds
        :math:`\nu`; 0 where there are no ties.

    Examples
    --------
    >>> Voters(np.array(1.0), np.array(1.0), 0.0).information(np.array([0.0, 2.0])).round(3).tolist()
    [0.25, 0.105]
    """

    reliability: Floats
    sharpness: Floats
    tie_odds: float

    def information(self, difference: Floats) -> Floats:
        r"""Return the Fisher information of one vote about the difference of two scores.

        It is :math:`\sum_y (\partial p_y / \partial d)^2 / p_y`, summed over the outcomes y.
        """
        half = np.exp(np.clip(self.sharpness * difference, -60.0, 60.0) / 2.0)
        total = half + 1.0 / half + self.tie_odds
        left, right, tie = half / total, 1.0 / (half * total), self.tie_odds / total
        mean = (left - right) / 2.0
        chance = (1.0 - self.reliability) / (3.0 if self.tie_odds > 0.0 else 2.0)
        information = np.zeros_like(total)
        for p, statistic in ((left, 0.5), (right, -0.5), (tie, 0.0)):
            slope = self.reliability * self.sharpness * p * (statistic - mean)
            information += slope**2 / np.maximum(self.reliability * p + chance, 1e-300)
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
    return Voters(reliability, sharpness, _tie_odds(fit))


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
