"""How certain the order of items is, and how much more certain a vote would make it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import RankFit
from annotruth.observations import LEFT, RIGHT, TIE

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS /= _WEIGHTS.sum()
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_FEW_WEIGHTS /= _FEW_WEIGHTS.sum()


class Voters(NamedTuple):
    r"""Annotators as a source of votes: one number each per annotator, or one for a typical one.

    A vote is serious with probability :math:`\varepsilon` and then follows Davidson's model of ties
    with the log odds :math:`\beta (\theta_l - \theta_r)`, or Thurstone's model with this difference;
    otherwise all outcomes are equally likely.
    """

    reliability: Floats  # the probability of a serious vote
    sharpness: Floats  # by how much differences of scores are multiplied
    tie: float  # Davidson's nu or Thurstone's threshold tau; 0 where there are no ties
    is_normal: bool = False  # whether perceived differences are normal, as in Thurstone's model

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
        for x, w in zip(_FEW_NODES, _FEW_WEIGHTS, strict=True):
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
    odds = np.stack([half, 1.0 / half, np.full_like(half, tie_odds)])
    p = odds / odds.sum(axis=0)
    mean = (p[LEFT] - p[RIGHT]) / 2.0
    return p, p * np.stack([0.5 - mean, -0.5 - mean, -mean])


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


class ChosenPairs(NamedTuple):
    """Pairs of items to compare, the first chosen first."""

    first: Codes  # positions of items
    second: Codes
    gain: Floats  # by how much a vote is expected to reduce the uncertainty of the order


@dataclass(eq=False)
class OrderPosterior:
    r"""The posterior of some items' scores, as votes are added to it.

    The uncertainty of the order is :math:`\sum_{i<j} p_{ij} (1 - p_{ij})`, where
    :math:`p_{ij} = \Phi(z_{ij})` is the probability that item i has the higher score,
    :math:`z_{ij} = m_{ij} / s_{ij}`, and m and s are mean and standard deviation of the difference. A
    vote on the items a and b with Fisher information I reduces the covariance C to
    :math:`C - \kappa u u^T` with :math:`u = C (e_a - e_b)`, :math:`\kappa = I / (1 + I s_{ab}^2)`, and
    :math:`p_{ij}` will move by a standard deviation of about
    :math:`\varphi(z_{ij}) \sqrt{\kappa} |u_i - u_j| / s_{ij}`. So the vote is expected to reduce the
    uncertainty by

    .. math:: \kappa \sum_{i<j} w_{ij} (u_i - u_j)^2 = \kappa (e_a - e_b)^T C L C (e_a - e_b),
              \qquad w_{ij} = \varphi(z_{ij})^2 / s_{ij}^2,

    where L is the Laplacian matrix of the weights w.
    """

    mean: Floats
    covariance: Floats  # replaced as votes are added
    comparable: NDArray[np.bool_]  # items x items: those of different parts are not

    def difference(self) -> Floats:
        """Return the mean of each difference of scores."""
        return self.mean[:, np.newaxis] - self.mean

    def variance(self) -> Floats:
        """Return the variance of each difference of scores; 1 on the diagonal."""
        own = np.diag(self.covariance)
        variance: Floats = own[:, np.newaxis] + own - 2.0 * self.covariance
        np.fill_diagonal(variance, 1.0)
        return np.maximum(variance, 1e-12)

    def p_above(self) -> Floats:
        """Return the probability that the item of the row has a higher score than the column's."""
        p: Floats = ndtr(self.difference() / np.sqrt(self.variance()))
        return p

    def expected_tau(self, first_variance: Floats | None = None) -> float:
        """Return the Kendall tau between the ranking and the true one that is expected.

        If votes have been added whose outcomes are unknown, ``first_variance`` is the variance
        before: the scores will have moved, and the expectation is over that too.
        """
        if not self.comparable.any():
            return 1.0
        variance, difference = self.variance(), self.difference()
        moved = 0.0 if first_variance is None else np.maximum(first_variance - variance, 0.0)
        right = np.zeros_like(variance)
        for x, w in zip(_NODES, _WEIGHTS, strict=True):
            right += w * ndtr(np.abs(difference + x * np.sqrt(moved)) / np.sqrt(variance))
        return float(2.0 * right[self.comparable].mean() - 1.0)

    def gains(self, voter: Voters) -> tuple[Floats, Floats]:
        """Return what one vote on each pair gains, and the kappa of each pair."""
        variance, difference = self.variance(), self.difference()
        weight = np.exp(-(difference**2) / variance) / (2.0 * np.pi * variance)
        weight[~self.comparable] = 0.0
        laplacian = -weight
        np.fill_diagonal(laplacian, weight.sum(axis=1))
        spread = self.covariance @ laplacian @ self.covariance
        own = np.diag(spread)
        information = voter.expected_information(difference, variance)
        kappa = information / (1.0 + information * variance)
        gain = kappa * (own[:, np.newaxis] + own - 2.0 * spread)
        return np.where(self.comparable, gain, 0.0), kappa

    def choose(self, voter: Voters, n_votes: int, *, at_once: int = 1) -> ChosenPairs:
        """Choose pairs one after another, the one with the highest gain first, and add a vote each.

        ``at_once`` pairs without a common item are chosen before gains are computed again.
        """
        chosen: list[tuple[int, int, float]] = []
        while len(chosen) < n_votes:
            gain, kappa = self.gains(voter)
            pairs = _best_pairs(gain, min(at_once, n_votes - len(chosen)))
            if not pairs:
                break
            for a, b in pairs:
                self.add_vote(a, b, kappa[a, b])
                chosen.append((a, b, float(gain[a, b])))
        first, second = (np.array([each[k] for each in chosen], dtype=np.int64) for k in (0, 1))
        return ChosenPairs(first, second, np.array([gain for _, _, gain in chosen]))

    def add_vote(self, a: int, b: int, kappa: float) -> None:
        """Add a vote on two items, whose outcome is unknown."""
        column = self.covariance[a] - self.covariance[b]
        self.covariance = self.covariance - kappa * np.outer(column, column)


def _best_pairs(gain: Floats, n_pairs: int) -> list[tuple[int, int]]:
    """Return the pairs with the highest gains of which no two have a common item."""
    n = len(gain)
    upper = np.triu(gain, 1).ravel()
    n_candidates = min(len(upper), 4 * n * n_pairs if n_pairs > 1 else 1)
    candidates = np.argpartition(-upper, n_candidates - 1)[:n_candidates]
    candidates = candidates[np.argsort(-upper[candidates], kind="stable")]
    used: set[int] = set()
    pairs: list[tuple[int, int]] = []
    for place in candidates[upper[candidates] > 0.0].tolist():
        a, b = divmod(place, n)
        if a not in used and b not in used:
            pairs.append((a, b))
            used |= {a, b}
            if len(pairs) == n_pairs:
                break
    return pairs
