"""Probabilities of the outcomes of an annotator's comparisons, for all passes of PairGPM.

`annotruth.kernels.pairs.gpm` has the equations. Loops over the comparisons of a block are simple enough
for SIMD instructions. NumPy twins: `annotruth.kernels.reference.pairs.gpm_states`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled, compiled_in_any_order
from annotruth.kernels.pairs.levels import MAX_LOG_ODDS, ActiveLevels, PairModel, StateLevels

BLOCK = 128
"""The most comparisons whose probabilities are multiplied: a likely state has 0.1 and more of each."""

_ROW = BLOCK + 8  # a cache line between rows, as distances of 4,096 bytes slow down memory
# The rows of `VoteRoom`:
OFFSET = 0 * _ROW  # gamma + x.c
OWN = 1 * _ROW  # `half_sign` of the outcome
IS_TIE = 2 * _ROW
# At a sharpness:
TOTAL = 3 * _ROW  # exp(d / 2) + exp(-d / 2)
GAP = 4 * _ROW  # exp(d / 2) - exp(-d / 2)
WON = 5 * _ROW  # that of the two which belongs to the outcome; 0 for a tie
LOST = 6 * _ROW
# At a sharpness and a tie rate:
INVERSE = 7 * _ROW  # of the normalising sum
P = 8 * _ROW  # D of the outcome
MIRRORED = 9 * _ROW  # D of the outcome with left and right exchanged
SERIOUS = 10 * _ROW  # sums of posteriors, divided by the probability of the outcome
INVERTED = 11 * _ROW
# Derivatives of the log-likelihood by d at a sharpness, and by a group's score and the offset:
SLOPE = 12 * _ROW
CURVE = 13 * _ROW
SLOPE_BY_SCORE = 14 * _ROW
CURVE_BY_SCORE = 15 * _ROW
CURVE_BY_BOTH = 16 * _ROW
SLOPE_BY_OFFSET = 17 * _ROW
CURVE_BY_OFFSET = 18 * _ROW
_N_ROWS = 19

_LOG2_E = 1.0 / math.log(2.0)
_LOG_2 = 0.693145751953125  # so short that small multiples of it are exact
_LOG_2_REST = 1.4286068203094173e-06


@compiled
def kind(outcome: int, left: int, right: int, favoured: int) -> int:
    """Return the row of ``chance``: the outcome, and whether the favoured item is shown and won."""
    if favoured == left:
        return 3 * outcome + (1 if outcome == 0 else 2)
    if favoured == right:
        return 3 * outcome + (1 if outcome == 1 else 2)
    return 3 * outcome


@compiled
def regressor(v: int, c: int, covariates: Floats) -> float:
    """Return what offset c is multiplied by: 1 for gamma, then the covariates."""
    if c == 0:
        return 1.0
    value: float = covariates[v, c - 1]
    return value


@compiled
def offset_of(v: int, covariates: Floats, offsets: Floats) -> float:
    """Return gamma + x.c of a comparison."""
    total: float = offsets[0]
    for c in range(covariates.shape[1]):
        total += covariates[v, c] * offsets[c + 1]
    return total


@compiled
def root_odds(d: float) -> float:
    """Return exp(d / 2), within bounds that avoid overflow."""
    return math.exp(0.5 * min(max(d, -MAX_LOG_ODDS), MAX_LOG_ODDS))


@compiled
def davidson(outcome: int, a: float, nu: float) -> tuple[float, float, float]:
    """Return D of an outcome and of its mirror image, and the normalising sum, at exp(d / 2) = a."""
    b = 1.0 / a
    total = a + b + nu
    if outcome == 0:
        return a / total, b / total, total
    if outcome == 1:
        return b / total, a / total, total
    return nu / total, nu / total, total


@compiled
def half_sign(outcome: int) -> float:
    """Return the derivative of an outcome's log odds by d: 1/2, -1/2, or 0 for a tie."""
    return 0.5 if outcome == 0 else (-0.5 if outcome == 1 else 0.0)


@compiled
def moments(a: float, total: float) -> tuple[float, float]:
    """Return the mean and the variance of `half_sign`, at exp(d / 2) = a."""
    mean = 0.5 * (a - 1.0 / a) / total
    return mean, 0.25 * (a + 1.0 / a) / total - mean * mean


class VoteRoom(NamedTuple):
    """Room for up to `BLOCK` comparisons of one annotator, and for numbers computed of each.

    ``rows`` is one array, in which ``rows[OWN + i]`` is the entry of comparison i in the row `OWN`. With
    constant distances between rows, the compiler knows that they do not overlap, and loops over several
    of them use SIMD instructions without checks that would take as long as they do.

    Examples
    --------
    >>> VoteRoom._fields
    ('rows', 'difference', 'chance')
    """

    rows: Floats
    difference: Floats  # of the scores: active groups x comparisons
    chance: Floats  # active behaviors x comparisons


@compiled
def vote_room(model: PairModel) -> VoteRoom:
    """Return room for a block of comparisons."""
    return VoteRoom(
        np.empty(_N_ROWS * _ROW),
        np.empty((len(model.theta), BLOCK)),
        np.empty((len(model.levels.eps), BLOCK)),
    )


@compiled
def set_votes(
    room: VoteRoom,
    block: Any,
    first: int,
    last: int,
    favoured: int,
    covariates: Floats,
    model: PairModel,
    active: ActiveLevels,
) -> None:
    """Set the comparisons first:last."""
    n = last - first
    left, right, outcome = (
        block.left[first:last],
        block.right[first:last],
        block.outcome[first:last],
    )
    rows = room.rows
    row = np.empty(n, np.int64)
    for i in range(n):
        row[i] = 3 * outcome[i]
        rows[OWN + i] = half_sign(outcome[i])
        rows[IS_TIE + i] = 1.0 if outcome[i] == 2 else 0.0
    for i in range(n):
        if left[i] == favoured or right[i] == favoured:
            row[i] = kind(outcome[i], left[i], right[i], favoured)
    for i in range(n):
        rows[OFFSET + i] = offset_of(first + i, covariates, model.offsets)
    for g in range(len(active.group)):
        scores, difference = model.theta[active.group[g]], room.difference[g]
        for i in range(n):
            difference[i] = scores[left[i]] - scores[right[i]]
    for k in range(len(active.behavior)):
        behavior, chance = active.behavior[k], room.chance[k]
        for i in range(n):
            chance[i] = model.levels.chance[row[i], behavior]


@compiled_in_any_order
def set_odds(room: VoteRoom, n: int, g: int, beta: float) -> None:
    """Set the odds of n comparisons at a sharpness: the rows from `TOTAL` to `LOST`.

    With x = m log 2 + r, exp x is 2^m exp r, by the Taylor series of exp r: unlike calls of exp, these
    loops use SIMD instructions. `INVERSE` is overwritten.
    """
    rows, difference = room.rows, room.difference
    exponent = rows.view(np.int64)
    for i in range(n):
        d = beta * difference[g, i] + rows[OFFSET + i]
        x = 0.5 * min(max(d, -MAX_LOG_ODDS), MAX_LOG_ODDS)
        m = math.floor(x * _LOG2_E + 0.5)
        rows[TOTAL + i] = (x - m * _LOG_2) - m * _LOG_2_REST
        exponent[INVERSE + i] = (np.int64(m) + 1023) << 52  # the bits of the double 2^m
    for i in range(n):
        r = rows[TOTAL + i]
        series = 1.0 / 479001600.0
        series = series * r + 1.0 / 39916800.0
        series = series * r + 1.0 / 3628800.0
        series = series * r + 1.0 / 362880.0
        series = series * r + 1.0 / 40320.0
        series = series * r + 1.0 / 5040.0
        series = series * r + 1.0 / 720.0
        series = series * r + 1.0 / 120.0
        series = series * r + 1.0 / 24.0
        series = series * r + 1.0 / 6.0
        series = series * r + 0.5
        series = series * r + 1.0
        a = (series * r + 1.0) * rows[INVERSE + i]
        b = 1.0 / a
        rows[TOTAL + i] = a + b
        rows[GAP + i] = a - b
        # The larger and the smaller of a and b, by which of them belongs to the outcome.
        half, sign = 0.5 * (a + b), rows[OWN + i] * (a - b)
        either = 1.0 - rows[IS_TIE + i]
        rows[WON + i] = either * (half + sign)
        rows[LOST + i] = either * (half - sign)


@compiled_in_any_order
def set_probabilities(room: VoteRoom, n: int, nu: float, mirror: bool) -> None:
    """Set the probabilities of n comparisons at a tie rate, after `set_odds`; mirrored ones if asked."""
    rows = room.rows
    for i in range(n):
        inverse = 1.0 / (rows[TOTAL + i] + nu)
        rows[INVERSE + i] = inverse
        rows[P + i] = (rows[WON + i] + nu * rows[IS_TIE + i]) * inverse
    if not mirror:
        return
    for i in range(n):
        rows[MIRRORED + i] = (rows[LOST + i] + nu * rows[IS_TIE + i]) * rows[INVERSE + i]


@compiled
def any_above(posterior: Floats, g: int, j: int, t: int, least: float) -> bool:
    """Whether any state at a group, a sharpness and a tie rate has a probability above ``least``.

    Levels are numbers: views of arrays take longer than the loop.
    """
    k = 0
    n_behaviors: int = posterior.shape[3]
    while k < n_behaviors and posterior[g, j, t, k] <= least:
        k += 1
    return k < n_behaviors


@compiled
def any_inverted(levels: StateLevels, behaviors: Codes) -> bool:
    """Whether votes are inverted in any of these behaviors."""
    k = 0
    while k < len(behaviors) and levels.flip[behaviors[k]] == 0.0:
        k += 1
    return k < len(behaviors)
