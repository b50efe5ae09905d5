"""Derivatives of the log-likelihood of an annotator's comparisons, for the step of PairGPM.

`annotruth.kernels.pairs.gpm` has the equations; its step and that step's NumPy twin compare them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled_in_any_order
from annotruth.kernels.pairs.gpm_votes import (
    BLOCK,
    CURVE,
    CURVE_BY_BOTH,
    CURVE_BY_OFFSET,
    CURVE_BY_SCORE,
    GAP,
    INVERSE,
    INVERTED,
    MIRRORED,
    OWN,
    SERIOUS,
    SLOPE,
    SLOPE_BY_OFFSET,
    SLOPE_BY_SCORE,
    TOTAL,
    P,
    VoteRoom,
    any_above,
    any_inverted,
    regressor,
    set_odds,
    set_probabilities,
    set_votes,
)
from annotruth.kernels.pairs.levels import ActiveLevels, PairModel, StateLevels


@compiled_in_any_order
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
    least: float,
    gradient: Floats,
    curvature: Floats,
    cross: Floats,
    offset_gradient: Floats,
    offset_curvature: Floats,
) -> None:
    """Add annotator s's part of the gradient and of the expected curvature.

    States count whose posterior probability is above ``least``.
    """
    end = block.annotator_ptr[s + 1]
    rows = room.rows
    for lo in range(block.annotator_ptr[s], end, BLOCK):
        hi = min(lo + BLOCK, end)
        set_votes(room, block, lo, hi, favoured, covariates, model, active)
        for i in range(hi - lo):
            rows[SLOPE_BY_OFFSET + i] = 0.0
            rows[CURVE_BY_OFFSET + i] = 0.0
        for g in range(len(active.group)):
            group = active.group[g]
            _set_group_derivatives(room, hi - lo, model.levels, active, posterior, g, least)
            for v in range(lo, hi):
                slope = rows[SLOPE_BY_SCORE + v - lo]
                gradient[group, block.left[v]] += slope
                gradient[group, block.right[v]] -= slope
                curvature[group, pair[v]] += rows[CURVE_BY_SCORE + v - lo]
            for c in range(len(offset_gradient)):
                for v in range(lo, hi):
                    change = rows[CURVE_BY_BOTH + v - lo] * regressor(v, c, covariates)
                    cross[group, block.left[v], c] += change
                    cross[group, block.right[v], c] -= change
        _add_by_offset(rows, lo, hi, covariates, offset_gradient, offset_curvature)


@compiled_in_any_order
def _add_by_offset(
    rows: Floats, lo: int, hi: int, covariates: Floats, gradient: Floats, curvature: Floats
) -> None:
    """Add the derivatives of the comparisons lo:hi by the offsets."""
    for c in range(len(gradient)):
        total = 0.0
        for v in range(lo, hi):
            total += rows[SLOPE_BY_OFFSET + v - lo] * regressor(v, c, covariates)
        gradient[c] += total
        for c2 in range(len(gradient)):
            total = 0.0
            for v in range(lo, hi):
                x = regressor(v, c, covariates) * regressor(v, c2, covariates)
                total += rows[CURVE_BY_OFFSET + v - lo] * x
            curvature[c, c2] += total


@compiled_in_any_order
def _set_group_derivatives(
    room: VoteRoom,
    n: int,
    levels: StateLevels,
    active: ActiveLevels,
    posterior: Floats,
    g: int,
    least: float,
) -> None:
    """Set the derivatives of n comparisons by a group's scores, and add those by the offset."""
    rows = room.rows
    for i in range(n):
        rows[SLOPE_BY_SCORE + i] = 0.0
        rows[CURVE_BY_SCORE + i] = 0.0
        rows[CURVE_BY_BOTH + i] = 0.0
    mirror = any_inverted(levels, active.behavior)
    for j in range(len(active.beta)):
        beta = levels.beta[active.beta[j]]
        is_set = False
        for t in range(len(active.nu)):
            if not any_above(posterior, g, j, t, least):
                continue
            if not is_set:
                set_odds(room, n, g, beta)
                for i in range(n):
                    rows[SLOPE + i] = 0.0
                    rows[CURVE + i] = 0.0
                is_set = True
            set_probabilities(room, n, levels.nu[active.nu[t]], mirror)
            is_inverted = set_shares(room, n, levels, active.behavior, posterior, g, j, t, least)
            _add_slopes(room, n, is_inverted)
        if not is_set:
            continue
        for i in range(n):
            slope, curve = rows[SLOPE + i], rows[CURVE + i]
            rows[SLOPE_BY_OFFSET + i] += slope
            rows[SLOPE_BY_SCORE + i] += beta * slope
            rows[CURVE_BY_OFFSET + i] += curve
            rows[CURVE_BY_BOTH + i] += beta * curve
            rows[CURVE_BY_SCORE + i] += beta * beta * curve


@compiled_in_any_order
def set_shares(
    room: VoteRoom,
    n: int,
    levels: StateLevels,
    behaviors: Codes,
    posterior: Floats,
    g: int,
    j: int,
    t: int,
    least: float,
) -> bool:
    """Set the probabilities of being serious and inverted; return whether any state is inverted."""
    rows, chance = room.rows, room.chance
    is_inverted = False
    for i in range(n):
        rows[SERIOUS + i] = 0.0
    for k in range(len(behaviors)):
        eps, flip = levels.eps[behaviors[k]], levels.flip[behaviors[k]]
        probability = posterior[g, j, t, k]
        if probability <= least or eps + flip == 0.0:
            continue
        serious, inverted = eps * probability, flip * probability
        if flip == 0.0:
            for i in range(n):
                p = rows[P + i]
                rows[SERIOUS + i] += serious * p / (eps * p + chance[k, i])
            continue
        if not is_inverted:
            for i in range(n):
                rows[INVERTED + i] = 0.0
            is_inverted = True
        for i in range(n):
            p, mirrored = rows[P + i], rows[MIRRORED + i]
            mixed = eps * p + flip * mirrored + chance[k, i]
            rows[SERIOUS + i] += serious * p / mixed
            rows[INVERTED + i] += inverted * mirrored / mixed
    return is_inverted


@compiled_in_any_order
def _add_slopes(room: VoteRoom, n: int, is_inverted: bool) -> None:
    """Add the derivatives by d at one sharpness and tie rate."""
    rows = room.rows
    for i in range(n):
        inverse, serious = rows[INVERSE + i], rows[SERIOUS + i]
        mean = 0.5 * rows[GAP + i] * inverse
        rows[SLOPE + i] += serious * (rows[OWN + i] - mean)
        rows[CURVE + i] += serious * (0.25 * rows[TOTAL + i] * inverse - mean * mean)
    if not is_inverted:
        return
    for i in range(n):
        inverse, inverted = rows[INVERSE + i], rows[INVERTED + i]
        mean = 0.5 * rows[GAP + i] * inverse
        rows[SLOPE + i] -= inverted * (rows[OWN + i] + mean)
        rows[CURVE + i] += inverted * (0.25 * rows[TOTAL + i] * inverse - mean * mean)
