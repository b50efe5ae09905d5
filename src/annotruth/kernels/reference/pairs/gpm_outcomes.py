"""NumPy twins of `annotruth.kernels.pairs.gpm_outcomes`, which document them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.kernels.pairs.gpm_outcomes import (
    LEAST_LEFT_OVER,
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


def _nodes(sd: Floats, rules: Quadrature) -> tuple[Floats, Floats]:
    """Return standard scores and weights, votes x nodes of the longest rule; unused weights are 0."""
    rule = np.searchsorted(rules.limit, sd)
    first, size = rules.ptr[rule], np.diff(rules.ptr)[rule]
    place = np.arange(size.max(initial=1))
    used = place < size[:, np.newaxis]
    index = np.where(used, first[:, np.newaxis] + place, 0)
    return rules.node[index], np.where(used, rules.weight[index], 0.0)


def _differences(mean: Floats, sd: Floats, node: Floats) -> Floats:
    """Return the differences at the nodes."""
    d = mean[:, np.newaxis] + sd[:, np.newaxis] * node
    return np.clip(d, -MAX_LOG_ODDS, MAX_LOG_ODDS)


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
        node, weight = _nodes(sd[at], rules)
        d = _differences(mean[at], sd[at], node)
        found[:, at] = (_davidson(d, nu[at]) * weight).sum(axis=2)
    return found


def _slopes(
    votes: Outcomes, at: slice, mean: Floats, sd: Floats, nu: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return log-probabilities, their slopes (2 x votes) and the information (2 x 2 x votes)."""
    node, weight = _nodes(sd, votes.rules)
    p = _davidson(_differences(mean, sd, node), nu)
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
        mean, variance = at.mean[own], at.variance[own]
        precision, shift = sites.precision[own], sites.shift[own]
        nu = np.exp(who.tie[s]) * votes.tie_odds[own] * votes.has_ties
        chosen = votes.outcome[own].astype(np.int64), np.arange(len(mean))
        w = votes.weight[own] * who.weight[s]
        slip = votes.slip / (3.0 if votes.has_ties else 2.0)
        left_over = np.maximum(1.0 - precision * variance, LEAST_LEFT_OVER)
        sd = np.sqrt(variance / left_over)
        node, weight = _nodes(b * sd, votes.rules)
        varies = (weight > 0.0).sum(axis=1) > 1
        middle = np.where(varies, (mean - variance * shift) / left_over, mean)
        p = _davidson(_differences(b * middle + who.side[s], varies * b * sd, node), nu)
        of_outcome = (1.0 - votes.slip) * p[chosen]
        # Where it hardly varies: the slope and curvature at the mean, which is the only node.
        meant = (of_outcome / (of_outcome + slip))[:, 0]
        m = (p[0] - p[1])[:, 0] / 2.0
        slope = w * b * meant * (np.array([0.5, -0.5, 0.0])[chosen[0]] - m)
        curvature = w * b**2 * meant * (0.25 * (p[0] + p[1])[:, 0] - m**2)
        # Elsewhere the moments, with the vote in place of its site.
        tilted = weight * (of_outcome + slip) ** w[:, np.newaxis]
        tilted /= tilted.sum(axis=1, keepdims=True)
        center = (tilted * node).sum(axis=1)
        ratio = np.clip((tilted * node**2).sum(axis=1) - center**2, LEAST_LEFT_OVER, 1.0)
        sd = np.where(varies, sd, 1.0)
        new = np.where(varies, (1.0 / ratio - 1.0) / sd**2, curvature)
        new_shift = new * middle + np.where(varies, center / (sd * ratio), slope)
        sites.precision[own] += step * (new - precision)
        sites.shift[own] += step * (new_shift - shift)


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
