"""Derivatives of the log-likelihood of an annotator's comparisons, for the step of PairGPM.

`annotruth.kernels.pairs.gpm` has the equations; its step and that step's NumPy twin compare them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.pairs.gpm_votes import (
    BLOCK,
    VoteRoom,
    any_above,
    regressor,
    set_odds,
    set_probabilities,
    set_votes,
)
from annotruth.kernels.pairs.levels import LIKELY, ActiveLevels, PairModel, StateLevels


class Derivatives(NamedTuple):
    """Derivatives of the log-likelihood of up to `BLOCK` comparisons, one entry each.

    Examples
    --------
    >>> Derivatives._fields[:2]
    ('serious', 'inverted')
    """

    serious: Floats  # sums of posteriors, divided by the probability of the outcome
    inverted: Floats
    slope: Floats  # of one sharpness, by d
    curve: Floats
    slope_by_score: Floats  # of one group
    curve_by_score: Floats
    curve_by_both: Floats
    slope_by_offset: Floats
    curve_by_offset: Floats


@compiled
def derivative_room() -> Derivatives:
    """Return room for the derivatives of a block of comparisons."""
    r = np.empty((9, BLOCK))
    return Derivatives(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8])


@compiled
def add_derivatives(
    block: Any,
    s: int,
    favoured: int,
    pair: NDArray[np.int32],
    covariates: Floats,
    model: PairModel,
    active: ActiveLevels,
    room: VoteRoom,
    posterior: Floats,
    by: Derivatives,
    gradient: Floats,
    curvature: Floats,
    cross: Floats,
    offset_gradient: Floats,
    offset_curvature: Floats,
) -> None:
    """Add annotator s's part of the gradient and of the expected curvature."""
    end = block.annotator_ptr[s + 1]
    n_offsets = len(model.offsets)
    for lo in range(block.annotator_ptr[s], end, BLOCK):
        hi = min(lo + BLOCK, end)
        set_votes(room, block, lo, hi, favoured, covariates, model, active)
        by.slope_by_offset[:] = 0.0
        by.curve_by_offset[:] = 0.0
        for g in range(len(active.group)):
            group = active.group[g]
            _set_group_derivatives(room, hi - lo, model.levels, active, posterior, g, by)
            for v in range(lo, hi):
                left, right = block.left[v], block.right[v]
                gradient[group, left] += by.slope_by_score[v - lo]
                gradient[group, right] -= by.slope_by_score[v - lo]
                curvature[group, pair[v]] += by.curve_by_score[v - lo]
                for c in range(n_offsets):
                    change = by.curve_by_both[v - lo] * regressor(v, c, covariates)
                    cross[group, left, c] += change
                    cross[group, right, c] -= change
        for v in range(lo, hi):
            for c in range(n_offsets):
                x = regressor(v, c, covariates)
                offset_gradient[c] += by.slope_by_offset[v - lo] * x
                for c2 in range(n_offsets):
                    x2 = regressor(v, c2, covariates)
                    offset_curvature[c, c2] += by.curve_by_offset[v - lo] * x * x2


@compiled
def _set_group_derivatives(
    room: VoteRoom,
    n: int,
    levels: StateLevels,
    active: ActiveLevels,
    posterior: Floats,
    g: int,
    by: Derivatives,
) -> None:
    """Set the derivatives of n comparisons by a group's scores, and add those by the offset."""
    by.slope_by_score[:] = 0.0
    by.curve_by_score[:] = 0.0
    by.curve_by_both[:] = 0.0
    mirror = any_above(levels.flip[active.behavior], 0.0)
    for j in range(len(active.beta)):
        if not any_above(posterior[g, j], LIKELY):
            continue
        beta = levels.beta[active.beta[j]]
        set_odds(room, n, g, beta)
        by.slope[:] = 0.0
        by.curve[:] = 0.0
        for t in range(len(active.nu)):
            states = posterior[g, j, t]
            if any_above(states, LIKELY):
                set_probabilities(room, n, levels.nu[active.nu[t]], mirror)
                is_inverted = set_shares(room, n, levels, active.behavior, states, by)
                _add_slopes(room, n, is_inverted, by)
        for i in range(n):
            by.slope_by_offset[i] += by.slope[i]
            by.slope_by_score[i] += beta * by.slope[i]
        for i in range(n):
            by.curve_by_offset[i] += by.curve[i]
            by.curve_by_both[i] += beta * by.curve[i]
            by.curve_by_score[i] += beta * beta * by.curve[i]


@compiled
def set_shares(
    room: VoteRoom,
    n: int,
    levels: StateLevels,
    behaviors: Codes,
    states: Floats,
    by: Derivatives,
) -> bool:
    """Set the probabilities of being serious and inverted; return whether any state is inverted."""
    is_inverted = False
    by.serious[:] = 0.0
    for k in range(len(behaviors)):
        eps, flip = levels.eps[behaviors[k]], levels.flip[behaviors[k]]
        if states[k] <= LIKELY or eps + flip == 0.0:
            continue
        if flip == 0.0:
            weight = eps * states[k]
            for i in range(n):
                by.serious[i] += weight / (eps * room.p[i] + room.chance[k, i])
            continue
        if not is_inverted:
            by.inverted[:] = 0.0
            is_inverted = True
        for i in range(n):
            mixed = eps * room.p[i] + flip * room.mirrored[i] + room.chance[k, i]
            by.serious[i] += eps * states[k] / mixed
            by.inverted[i] += flip * states[k] / mixed
    for i in range(n):
        by.serious[i] *= room.p[i]
    if is_inverted:
        for i in range(n):
            by.inverted[i] *= room.mirrored[i]
    return is_inverted


@compiled
def _add_slopes(room: VoteRoom, n: int, is_inverted: bool, by: Derivatives) -> None:
    """Add the derivatives by d at one sharpness and tie rate."""
    for i in range(n):
        mean = 0.5 * room.gap[i] * room.inverse[i]
        by.slope[i] += by.serious[i] * (room.own[i] - mean)
    if is_inverted:
        for i in range(n):
            mean = 0.5 * room.gap[i] * room.inverse[i]
            by.slope[i] -= by.inverted[i] * (room.own[i] + mean)
        for i in range(n):
            by.serious[i] += by.inverted[i]
    for i in range(n):
        mean = 0.5 * room.gap[i] * room.inverse[i]
        by.curve[i] += by.serious[i] * (0.25 * room.total[i] * room.inverse[i] - mean * mean)
