"""Probabilities of the outcomes of an annotator's comparisons, for all passes of PairGPM.

`annotruth.kernels.pairs.gpm` has the equations. Loops over the comparisons of a block are simple enough
for SIMD instructions. NumPy twins: `annotruth.kernels.reference.pairs.gpm_states`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.pairs.levels import MAX_LOG_ODDS, ActiveLevels, PairModel

BLOCK = 128
"""The most comparisons whose probabilities are multiplied: a likely state has 0.1 and more of each."""

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
    """Room for up to `BLOCK` comparisons of one annotator, and for probabilities of their outcomes.

    Examples
    --------
    >>> VoteRoom._fields[:4]
    ('difference', 'offset', 'own', 'is_tie')
    """

    difference: Floats  # of the scores, one row per active group
    offset: Floats
    own: Floats  # `half_sign` of the outcome
    is_tie: Floats
    chance: Floats  # one row per active behavior
    # At a sharpness:
    total: Floats  # exp(d / 2) + exp(-d / 2)
    gap: Floats  # exp(d / 2) - exp(-d / 2)
    won: Floats  # that of the two which belongs to the outcome; 0 for a tie
    lost: Floats
    # At a sharpness and a tie rate:
    inverse: Floats  # of the normalising sum
    p: Floats  # D of the outcome
    mirrored: Floats  # D of the outcome with left and right exchanged


@compiled
def vote_room(model: PairModel) -> VoteRoom:
    """Return room for a block of comparisons."""
    rows = np.empty((10, BLOCK))
    difference = np.empty((len(model.theta), BLOCK))
    chance = np.empty((len(model.levels.eps), BLOCK))
    return VoteRoom(
        difference, rows[0], rows[1], rows[2], chance, rows[3], rows[4], rows[5], rows[6], rows[7],
        rows[8], rows[9],
    )  # fmt: skip


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
    row = np.empty(last - first, np.int64)
    for i in range(last - first):
        v = first + i
        left, right, y = block.left[v], block.right[v], block.outcome[v]
        row[i] = kind(y, left, right, favoured)
        room.offset[i] = offset_of(v, covariates, model.offsets)
        room.own[i] = half_sign(y)
        room.is_tie[i] = 1.0 if y == 2 else 0.0
        for g in range(len(active.group)):
            scores = model.theta[active.group[g]]
            room.difference[g, i] = scores[left] - scores[right]
    for k in range(len(active.behavior)):
        for i in range(last - first):
            room.chance[k, i] = model.levels.chance[row[i], active.behavior[k]]


@compiled
def _set_root_odds(room: VoteRoom, n: int, g: int, beta: float) -> None:
    """Set ``won`` to exp(d / 2), within bounds that avoid overflow.

    With x = m log 2 + r it is 2^m exp r, by the Taylor series of exp r: unlike calls of exp, these
    loops use SIMD instructions. ``total`` and ``inverse`` are overwritten.
    """
    exponent = room.inverse.view(np.int64)
    for i in range(n):
        d = beta * room.difference[g, i] + room.offset[i]
        x = 0.5 * min(max(d, -MAX_LOG_ODDS), MAX_LOG_ODDS)
        m = math.floor(x * _LOG2_E + 0.5)
        room.total[i] = (x - m * _LOG_2) - m * _LOG_2_REST
        exponent[i] = (np.int64(m) + 1023) << 52  # the bits of the double 2^m
    for i in range(n):
        r = room.total[i]
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
        room.won[i] = (series * r + 1.0) * room.inverse[i]


@compiled
def set_odds(room: VoteRoom, n: int, g: int, beta: float) -> None:
    """Set the odds of n comparisons at a sharpness."""
    _set_root_odds(room, n, g, beta)
    for i in range(n):
        a = room.won[i]
        room.total[i] = a + 1.0 / a
        room.gap[i] = a - 1.0 / a
    for i in range(n):
        # The larger and the smaller of exp(d / 2) and exp(-d / 2), by which of them belongs to y.
        half, sign = 0.5 * room.total[i], room.own[i] * room.gap[i]
        either = 1.0 - room.is_tie[i]
        room.won[i] = either * (half + sign)
        room.lost[i] = either * (half - sign)


@compiled
def set_probabilities(room: VoteRoom, n: int, nu: float, mirror: bool) -> None:
    """Set the probabilities of n comparisons at a tie rate, after `set_odds`; mirrored ones if asked."""
    for i in range(n):
        room.inverse[i] = 1.0 / (room.total[i] + nu)
    for i in range(n):
        room.p[i] = (room.won[i] + nu * room.is_tie[i]) * room.inverse[i]
    if not mirror:
        return
    for i in range(n):
        room.mirrored[i] = (room.lost[i] + nu * room.is_tie[i]) * room.inverse[i]


@compiled
def any_above(values: Floats, least: float) -> bool:
    """Whether any value is above ``least``."""
    flat = values.ravel()
    i = 0
    while i < len(flat) and flat[i] <= least:
        i += 1
    return i < len(flat)
