r"""Passes of PairGPM over votes whose difference is normal. NumPy twins: `annotruth.kernels.reference.pairs.gpm_outcomes`.

The outcome of vote v by annotator s follows Davidson's model with :math:`d = b D_v + \gamma_s` and
:math:`\nu_s e^{\zeta_v}`, where :math:`D_v` is normal; a share ``slip`` of votes is any outcome, alike:

.. math:: P(\text{left}), P(\text{right}), P(\text{tie}) \propto e^{d/2}, e^{-d/2}, \nu, \qquad d \sim N(m, s^2).

Averages over d are sums over nodes. Gauss-Hermite rules with few nodes fail for a large s, where the
outcome is nearly a step function of d; equidistant nodes do not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled

MAX_LOG_ODDS = 60.0
"""Differences are cut off there."""

_NODES = (5, 9, 15, 23)
_EQUIDISTANT = 89
_RANGE = 4.4  # standard deviations


class Quadrature(NamedTuple):
    """Rules one after the other: that of a standard deviation s is the first with ``s <= limit``."""

    node: Floats
    weight: Floats
    ptr: Codes
    limit: Floats


def make_quadrature() -> Quadrature:
    """Return the rules: the mean alone, Gauss-Hermite with 5, 9, 15 and 23 nodes, equidistant nodes."""
    rules = [(np.zeros(1), np.ones(1))]
    rules += [np.polynomial.hermite_e.hermegauss(n) for n in _NODES]
    equidistant = np.linspace(-_RANGE, _RANGE, _EQUIDISTANT)
    rules.append((equidistant, np.exp(-(equidistant**2) / 2.0)))
    sizes = [len(node) for node, _ in rules]
    return Quadrature(
        np.concatenate([node for node, _ in rules]),
        np.concatenate([weight / weight.sum() for _, weight in rules]),
        np.append(0, np.cumsum(sizes)).astype(np.int64),
        np.array([0.07, 0.5, 1.5, 3.0, 5.0, np.inf]),
    )


class Averages(NamedTuple):
    """Of left and right: the mean probability, its slope by d, and the mean of its product with a tie's."""

    left: float
    right: float
    left_slope: float
    right_slope: float
    left_tie: float
    right_tie: float


@compiled
def rule_of(sd: float, rules: Quadrature) -> int:
    """Return the number of the rule for a standard deviation."""
    rule = 0
    while sd > rules.limit[rule]:
        rule += 1
    return rule


@compiled
def averages(mean: float, sd: float, nu: float, rules: Quadrature) -> Averages:
    """Return averages over a normal d with this mean and standard deviation."""
    rule = rule_of(sd, rules)
    left = right = left_slope = right_slope = left_tie = right_tie = 0.0
    for i in range(rules.ptr[rule], rules.ptr[rule + 1]):
        d = min(max(mean + sd * rules.node[i], -MAX_LOG_ODDS), MAX_LOG_ODDS)
        odds = math.exp(0.5 * d)
        inverse = 1.0 / odds
        scale = 1.0 / (odds + inverse + nu)
        a, b, tie = odds * scale, inverse * scale, nu * scale
        m, w = 0.5 * (a - b), rules.weight[i]
        left += w * a
        right += w * b
        left_slope += w * a * (0.5 - m)
        right_slope -= w * b * (0.5 + m)
        left_tie += w * a * tie
        right_tie += w * b * tie
    return Averages(left, right, left_slope, right_slope, left_tie, right_tie)


LOST = 5.0
"""How much more a vote against an item says about who favours it than a vote for it."""

MIN_SHOWN = 4.0

LEAST_LEFT_OVER = 0.02
"""Of the variance of a difference, after one vote."""


class Sites(NamedTuple):
    """The Gaussian site :math:`e^{z D - K D^2 / 2}` of each vote."""

    precision: Floats
    """K"""
    shift: Floats
    """z"""


class VoteDifferences(NamedTuple):
    """The mean and variance of each vote's difference."""

    mean: Floats
    variance: Floats


class Outcomes(NamedTuple):
    """Votes sorted by annotator, with what does not depend on the scores."""

    ptr: Codes
    outcome: NDArray[np.int8]
    weight: Floats
    tie_odds: Floats  # of the pair, relative to the annotator's
    has_ties: bool
    has_sides: bool
    slip: float
    rules: Quadrature


class HabitPrior(NamedTuple):
    """The normal priors of side biases and of log tie rates: means and standard deviations."""

    side: float
    side_sd: float
    tie: float
    tie_sd: float


class Habits(NamedTuple):
    """What `fit_habits` changes: annotators x levels of sharpness."""

    side: Floats
    tie: Floats  # the log tie rate
    value: Floats  # log of the marginal likelihood (Laplace), up to constants that levels share
    side_variance: Floats


class Slope(NamedTuple):
    """The log-probability of a vote, its slopes by gamma and log nu, and their information."""

    log_p: float
    side: float
    tie: float
    side_side: float
    side_tie: float
    tie_tie: float


@compiled
def _slope(votes: Outcomes, v: int, mean: float, sd: float, nu: float) -> Slope:
    """Return the log-probability of a vote with its derivatives."""
    at = averages(mean, sd, nu, votes.rules)
    kept = 1.0 - votes.slip
    chance = votes.slip / (3.0 if votes.has_ties else 2.0)
    p_left, p_right = kept * at.left + chance, kept * at.right + chance
    side_left, side_right = kept * at.left_slope, kept * at.right_slope
    tie_left, tie_right = -kept * at.left_tie, -kept * at.right_tie
    side_tied, tie_tied = -side_left - side_right, -tie_left - tie_right
    side_side = side_left * side_left / p_left + side_right * side_right / p_right
    side_tie = tie_tie = 0.0
    p_tied = 1.0
    if votes.has_ties:
        p_tied = kept * (1.0 - at.left - at.right) + chance
        side_side += side_tied * side_tied / p_tied
        side_tie = side_left * tie_left / p_left + side_right * tie_right / p_right
        side_tie += side_tied * tie_tied / p_tied
        tie_tie = tie_left * tie_left / p_left + tie_right * tie_right / p_right
        tie_tie += tie_tied * tie_tied / p_tied
    outcome = votes.outcome[v]
    if outcome == 0:
        p, side, tie = p_left, side_left, tie_left
    elif outcome == 1:
        p, side, tie = p_right, side_right, tie_right
    else:
        p, side, tie = p_tied, side_tied, tie_tied
    return Slope(math.log(p), side / p, tie / p, side_side, side_tie, tie_tie)


@compiled
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
    """Take one step of Fisher scoring on the habits of annotators ``lo:hi`` at each level of sharpness."""
    for s in range(lo, hi):
        for j in range(len(level)):
            if not active[s, j]:
                continue
            b, g, h = level[j], habits.side[s, j], habits.tie[s, j]
            nu = math.exp(h) if votes.has_ties else 0.0
            total = slope_g = slope_h = gg = gh = hh = 0.0
            for v in range(votes.ptr[s], votes.ptr[s + 1]):
                w = votes.weight[v]
                if w == 0.0:
                    continue
                sd = abs(b) * math.sqrt(at.variance[v])
                one = _slope(votes, v, b * at.mean[v] + g, sd, nu * votes.tie_odds[v])
                total += w * one.log_p
                slope_g += w * one.side
                slope_h += w * one.tie
                gg += w * one.side_side
                gh += w * one.side_tie
                hh += w * one.tie_tie
            if votes.has_sides:
                z = (g - prior.side) / prior.side_sd
                total -= 0.5 * z * z + math.log(prior.side_sd)
                slope_g -= z / prior.side_sd
                gg += 1.0 / prior.side_sd**2
            else:
                slope_g, gg, gh = 0.0, 1.0, 0.0
            if votes.has_ties:
                z = (h - prior.tie) / prior.tie_sd
                total -= 0.5 * z * z + math.log(prior.tie_sd)
                slope_h -= z / prior.tie_sd
                hh += 1.0 / prior.tie_sd**2
            else:
                slope_h, hh, gh = 0.0, 1.0, 0.0
            determinant = gg * hh - gh * gh
            move_g = (hh * slope_g - gh * slope_h) / determinant
            move_h = (gg * slope_h - gh * slope_g) / determinant
            rise = 0.5 * (slope_g * move_g + slope_h * move_h)
            habits.value[s, j] = total + min(rise, 5.0) - 0.5 * math.log(determinant)
            habits.side_variance[s, j] = hh / determinant
            habits.side[s, j] = g + min(max(move_g, -1.0), 1.0)
            habits.tie[s, j] = h + min(max(move_h, -1.0), 1.0)


class VoterHabits(NamedTuple):
    """What annotators are taken for: sharpness, side bias, log tie rate, and the weight of their votes."""

    sharpness: Floats
    side: Floats
    tie: Floats
    weight: Floats


@compiled
def update_sites(
    votes: Outcomes,
    lo: int,
    hi: int,
    at: VoteDifferences,
    who: VoterHabits,
    step: float,
    sites: Sites,
) -> None:
    """Update the site of each vote of the annotators ``lo:hi``.

    K and z go a part ``step`` of the way to the site that gives the vote's difference the mean and variance
    that the vote itself gives it, all other sites being as they are (expectation propagation). Where the
    difference hardly varies, it is the slope and curvature of the log-probability at the mean. The
    log-probability is multiplied by the weights of the vote and of its annotator.
    """
    for s in range(lo, hi):
        b, nu_s = who.sharpness[s], math.exp(who.tie[s]) if votes.has_ties else 0.0
        for v in range(votes.ptr[s], votes.ptr[s + 1]):
            nu, w = nu_s * votes.tie_odds[v], votes.weight[v] * who.weight[s]
            precision, shift = sites.precision[v], sites.shift[v]
            left_over = max(1.0 - precision * at.variance[v], LEAST_LEFT_OVER)
            sd = math.sqrt(at.variance[v] / left_over)
            rule = rule_of(abs(b) * sd, votes.rules)
            if rule == 0:
                slope, new_precision = _curve(votes, v, b * at.mean[v] + who.side[s], nu)
                new_precision *= w * b * b
                new_shift = w * b * slope + new_precision * at.mean[v]
            else:
                mean = (at.mean[v] - at.variance[v] * shift) / left_over
                center, ratio = _tilted(votes, v, b * mean + who.side[s], b * sd, nu, w, rule)
                new_precision = (1.0 / ratio - 1.0) / (sd * sd)
                new_shift = new_precision * mean + center / (sd * ratio)
            sites.precision[v] += step * (new_precision - precision)
            sites.shift[v] += step * (new_shift - shift)


@compiled
def _curve(votes: Outcomes, v: int, d: float, nu: float) -> tuple[float, float]:
    """Return the slope and curvature of a vote's log-probability; a slip has none."""
    kept = 1.0 - votes.slip
    outcome = votes.outcome[v]
    d = min(max(d, -MAX_LOG_ODDS), MAX_LOG_ODDS)
    odds = math.exp(0.5 * d)
    scale = 1.0 / (odds + 1.0 / odds + nu)
    left, right = odds * scale, scale / odds
    m = 0.5 * (left - right)
    p = left if outcome == 0 else right if outcome == 1 else nu * scale
    meant = kept * p / (kept * p + votes.slip / (3.0 if votes.has_ties else 2.0))
    chosen = 0.5 if outcome == 0 else -0.5 if outcome == 1 else 0.0
    return meant * (chosen - m), meant * (0.25 * (left + right) - m * m)


@compiled
def _tilted(
    votes: Outcomes, v: int, mean: float, sd: float, nu: float, w: float, rule: int
) -> tuple[float, float]:
    """Return how a vote of weight w changes the distribution of its difference d.

    These are by how many standard deviations it moves the mean, and what it multiplies the variance by.
    """
    kept, rules = 1.0 - votes.slip, votes.rules
    chance = votes.slip / (3.0 if votes.has_ties else 2.0)
    outcome = votes.outcome[v]
    total = first = second = 0.0
    for i in range(rules.ptr[rule], rules.ptr[rule + 1]):
        x = rules.node[i]
        d = min(max(mean + sd * x, -MAX_LOG_ODDS), MAX_LOG_ODDS)
        odds = math.exp(0.5 * d)
        scale = 1.0 / (odds + 1.0 / odds + nu)
        p = odds * scale if outcome == 0 else scale / odds if outcome == 1 else nu * scale
        p = rules.weight[i] * math.exp(w * math.log(kept * p + chance))
        total += p
        first += p * x
        second += p * x * x
    center = first / total
    return center, min(max(second / total - center * center, LEAST_LEFT_OVER), 1.0)


class Predictions(NamedTuple):
    """Of each vote: its log-probability, and the slope and information by the pair's log tie rate.

    The latter two are multiplied by the weights of the vote and of its annotator.
    """

    log_p: Floats
    tie_slope: Floats
    tie_information: Floats


@compiled
def predict_votes(
    votes: Outcomes,
    lo: int,
    hi: int,
    at: VoteDifferences,
    who: VoterHabits,
    found: Predictions,
) -> None:
    """Set the predictions of the votes of the annotators ``lo:hi``."""
    for s in range(lo, hi):
        nu = math.exp(who.tie[s]) if votes.has_ties else 0.0
        for v in range(votes.ptr[s], votes.ptr[s + 1]):
            sd = abs(who.sharpness[s]) * math.sqrt(at.variance[v])
            middle = who.sharpness[s] * at.mean[v] + who.side[s]
            one = _slope(votes, v, middle, sd, nu * votes.tie_odds[v])
            w = votes.weight[v] * who.weight[s]
            found.log_p[v] = one.log_p
            found.tie_slope[v] = w * one.tie
            found.tie_information[v] = w * one.tie_tie


@compiled
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
    """Find the item that each annotator ``lo:hi`` chose most one-sidedly.

    A vote against an item counts `LOST` times as much as one for it. ``shown`` becomes
    the weighted outcomes of the votes on the item, and the votes for it: annotators x 4. Items that
    were shown fewer than `MIN_SHOWN` times are not favoured.
    """
    won, lost = np.zeros(n_items), np.zeros(n_items)
    for s in range(lo, hi):
        for v in range(votes.ptr[s], votes.ptr[s + 1]):
            w, y, i, j = votes.weight[v], votes.outcome[v], left[v], right[v]
            won[i] += w * (y == 0)
            lost[i] += w * (y != 0)
            won[j] += w * (y == 1)
            lost[j] += w * (y != 1)
        best, most = -1, 0.0
        for v in range(votes.ptr[s], votes.ptr[s + 1]):
            for side in range(2):
                i = left[v] if side == 0 else right[v]
                one_sided = won[i] - LOST * lost[i]
                if one_sided > most and won[i] + lost[i] >= MIN_SHOWN:
                    best, most = i, one_sided
        favoured[s] = best
        for v in range(votes.ptr[s], votes.ptr[s + 1]):
            w, y, i, j = votes.weight[v], votes.outcome[v], left[v], right[v]
            if best in (i, j):
                shown[s, y] += w
                shown[s, 3] += w * (y == (0 if best == i else 1))
            won[i], lost[i], won[j], lost[j] = 0.0, 0.0, 0.0, 0.0
