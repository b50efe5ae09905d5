"""How certain the order of items is, and how much more certain a vote would make it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from annotruth.analyses.advice.pairs.votes import Voters
from annotruth.kernels.arrays import Codes, Floats

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS /= _WEIGHTS.sum()


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

    Attributes
    ----------
    mean, covariance
        Of the items' scores; the covariance is replaced as votes are added.
    comparable
        Which pairs of items can be compared, items x items: those of different parts cannot.
    """

    mean: Floats
    covariance: Floats
    comparable: NDArray[np.bool_]

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
        first, second, gains = zip(*chosen, strict=True) if chosen else ((), (), ())
        return ChosenPairs(
            np.array(first, dtype=np.int64), np.array(second, dtype=np.int64), np.array(gains)
        )

    def add_vote(self, a: int, b: int, kappa: float) -> None:
        """Add a vote on two items, whose outcome is unknown."""
        column = self.covariance[a] - self.covariance[b]
        self.covariance = self.covariance - kappa * np.outer(column, column)


@dataclass(frozen=True, eq=False)
class ChosenPairs:
    """Pairs of items to compare, the first chosen first.

    Attributes
    ----------
    first, second
        The positions of the two items.
    gain
        By how much one vote is expected to reduce the uncertainty of the order.
    """

    first: Codes
    second: Codes
    gain: Floats


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
