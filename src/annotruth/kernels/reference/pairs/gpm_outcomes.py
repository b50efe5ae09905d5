"""NumPy twins of `annotruth.kernels.pairs.gpm_outcomes`, which document them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.kernels.pairs.gpm_outcomes import (
    LOST,
    MAX_LOG_ODDS,
    MIN_SHOWN,
    HabitPrior,
    Habits,
    Outcomes,
    Predictions,
    Quadrature,
    Sites,
    VoteDifferences,
    VoterHabits,
)


def _nodes(mean: Floats, sd: Floats, rules: Quadrature) -> tuple[Floats, Floats]:
    """Return differences and weights, votes x nodes of the longest rule; unused weights are 0."""
    rule = np.searchsorted(rules.limit, sd)
    first, size = rules.ptr[rule], np.diff(rules.ptr)[rule]
    place = np.arange(size.max(initial=1))
    used = place < size[:, np.newaxis]
    index = np.where(used, first[:, np.newaxis] + place, 0)
    d = mean[:, np.newaxis] + sd[:, np.newaxis] * rules.node[index]
    return np.clip(d, -MAX_LOG_ODDS, MAX_LOG_ODDS), np.where(used, rules.weight[index], 0.0)


def _davidson(d: Floats, nu: Floats) -> Floats:
    """Return the probabilities of left, right and tie: 3 x votes x nodes."""
    odds = np.stack(
        [np.exp(d / 2.0), np.exp(-d / 2.0), np.broadcast_to(nu[:, np.newaxis], d.shape)]
    )
    p: Floats = odds / odds.sum(axis=0)
    return p


def outcome_probabilities(mean: Floats, sd: Floats, nu: Floats, rules: Quadrature) -> Floats:
    """Return the probabilities of left, right and tie, averaged over a normal d: 3 x votes."""
    found = np.empty((3, len(mean)))
    for at in slices(len(mean), 1 << 16):
        d, weight = _nodes(mean[at], sd[at], rules)
        found[:, at] = (_davidson(d, nu[at]) * weight).sum(axis=2)
    return found


def _slopes(
    votes: Outcomes, at: slice, mean: Floats, sd: Floats, nu: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return log-probabilities, their slopes (2 x votes) and the information (2 x 2 x votes)."""
    d, weight = _nodes(mean, sd, votes.rules)
    p = _davidson(d, nu)
    m = (p[0] - p[1]) / 2.0
    side = np.stack([p[0] * (0.5 - m), -p[1] * (0.5 + m), -p[2] * m])
    tie = np.stack([-p[0] * p[2], -p[1] * p[2], p[2] * (1.0 - p[2])])
    used = 3 if votes.has_ties else 2
    kept = 1.0 - votes.slip
    of_outcome = kept * (p * weight).sum(axis=2)[:used] + votes.slip / used
    slopes = kept * np.stack([(each * weight).sum(axis=2)[:used] for each in (side, tie)])
    chosen = votes.outcome[at].astype(np.int64), np.arange(len(mean))
    information = np.einsum("ayv,byv->abv", slopes, slopes / of_outcome)
    return np.log(of_outcome[chosen]), slopes[:, *chosen] / of_outcome[chosen], information


def fit_habits(
    votes: Outcomes,
    lo: int,
    hi: int,
    at: VoteDifferences,
    level: Floats,
    active: NDArray[np.bool_],
    prior: HabitPrior,
    habits: Habits,
) -> None:
    """Take one step of Fisher scoring on the habits at each level of sharpness."""
    known = np.array([votes.has_sides, votes.has_ties])
    center = np.array([prior.side, prior.tie])
    sd = np.array([prior.side_sd, prior.tie_sd])
    for s in range(lo, hi):
        own = slice(votes.ptr[s], votes.ptr[s + 1])
        for j in np.flatnonzero(active[s]):
            b, habit = level[j], np.array([habits.side[s, j], habits.tie[s, j]])
            nu = np.exp(habit[1]) * votes.tie_odds[own] * votes.has_ties
            spread = abs(b) * np.sqrt(at.variance[own])
            log_p, slopes, information = _slopes(
                votes, own, b * at.mean[own] + habit[0], spread, nu
            )
            w = votes.weight[own]
            z = (habit - center) / sd
            total = w @ log_p - (0.5 * z**2 + np.log(sd))[known].sum()
            slope = np.where(known, slopes @ w - z / sd, 0.0)
            matrix = (information @ w + np.diag(1.0 / sd**2)) * np.outer(known, known)
            matrix += np.diag(1.0 - known)
            move = np.linalg.solve(matrix, slope)
            rise = min(0.5 * slope @ move, 5.0)
            habits.value[s, j] = total + rise - 0.5 * np.log(np.linalg.det(matrix))
            habits.side_variance[s, j] = np.linalg.inv(matrix)[0, 0]
            habits.side[s, j], habits.tie[s, j] = habit + np.clip(move, -1.0, 1.0)


def update_sites(
    votes: Outcomes,
    lo: int,
    hi: int,
    at: VoteDifferences,
    who: VoterHabits,
    step: float,
    sites: Sites,
) -> None:
    """Update the Gaussian site of each vote."""
    for s in range(lo, hi):
        own, b = slice(votes.ptr[s], votes.ptr[s + 1]), who.sharpness[s]
        nu = np.exp(who.tie[s]) * votes.tie_odds[own] * votes.has_ties
        middle, sd = b * at.mean[own] + who.side[s], abs(b) * np.sqrt(at.variance[own])
        d, weight = _nodes(middle, sd, votes.rules)
        p = _davidson(d, nu)
        m = (p[0] - p[1]) / 2.0
        outcome = votes.outcome[own].astype(np.int64)
        of_outcome = (1.0 - votes.slip) * p[outcome, np.arange(len(outcome))]
        meant = weight * of_outcome
        meant /= of_outcome + votes.slip / (3.0 if votes.has_ties else 2.0)
        chosen = np.array([0.5, -0.5, 0.0])[outcome][:, np.newaxis]
        slope = (meant * (chosen - m)).sum(axis=1)
        curvature = (meant * (0.25 * (p[0] + p[1]) - m**2)).sum(axis=1)
        w = votes.weight[own] * who.weight[s]
        new = w * b**2 * curvature
        sites.precision[own] += step * (new - sites.precision[own])
        sites.shift[own] += step * (w * b * slope + new * at.mean[own] - sites.shift[own])


def predict_votes(
    votes: Outcomes, lo: int, hi: int, at: VoteDifferences, who: VoterHabits, found: Predictions
) -> None:
    """Set the predictions of the votes of the annotators ``lo:hi``."""
    for s in range(lo, hi):
        own, b = slice(votes.ptr[s], votes.ptr[s + 1]), who.sharpness[s]
        nu = np.exp(who.tie[s]) * votes.tie_odds[own] * votes.has_ties
        middle, sd = b * at.mean[own] + who.side[s], abs(b) * np.sqrt(at.variance[own])
        found.log_p[own], slopes, information = _slopes(votes, own, middle, sd, nu)
        w = votes.weight[own] * who.weight[s]
        found.tie_slope[own], found.tie_information[own] = w * slopes[1], w * information[1, 1]


def find_favoured(
    votes: Outcomes,
    lo: int,
    hi: int,
    left: Codes,
    right: Codes,
    n_items: int,
    favoured: Codes,
    shown: Floats,
) -> None:
    """Find the item that each annotator ``lo:hi`` chose most one-sidedly."""
    for s in range(lo, hi):
        at = slice(votes.ptr[s], votes.ptr[s + 1])
        w, y = votes.weight[at], votes.outcome[at]
        items = np.concatenate([left[at], right[at]])
        won = np.bincount(items, np.concatenate([w * (y == 0), w * (y == 1)]), n_items)
        lost = np.bincount(items, np.concatenate([w * (y != 0), w * (y != 1)]), n_items)
        one_sided = np.where(won + lost >= MIN_SHOWN, won - LOST * lost, 0.0)
        if not (one_sided > 0.0).any():
            continue
        # Of equal items, the first that was shown, on the left before the right.
        in_turn = np.stack([left[at], right[at]], axis=1).ravel()
        best = favoured[s] = in_turn[one_sided[in_turn].argmax()]
        own = (left[at] == best) | (right[at] == best)
        shown[s, :3] = np.bincount(y[own], w[own], 3)
        shown[s, 3] = won[best]
