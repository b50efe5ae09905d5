"""The posterior of an annotator's states, which all passes of PairGPM compute.

`annotruth.kernels.pairs.gpm` has the equations. NumPy twins: `annotruth.kernels.reference.pairs.gpm_states`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled, compiled_in_any_order
from annotruth.kernels.pairs.gpm_votes import (
    BLOCK,
    MIRRORED,
    P,
    VoteRoom,
    any_above,
    any_inverted,
    set_odds,
    set_probabilities,
    set_votes,
)
from annotruth.kernels.pairs.levels import (
    DROPPED,
    N_FIRST,
    ActiveLevels,
    PairModel,
    StateLevels,
)


@compiled
def _set_bits(mask: int) -> Codes:
    """Return the positions of the bits that are set."""
    count = 0
    rest = mask
    while rest:
        count += 1
        rest &= rest - 1
    bits = np.empty(count, np.int64)
    count = 0
    position = 0
    while mask:
        if mask & 1:
            bits[count] = position
            count += 1
        mask >>= 1
        position += 1
    return bits


@compiled
def active_levels(active: Codes) -> ActiveLevels:
    """Return the levels of the bits that are set: groups, sharpness, tie rates, behaviors."""
    return ActiveLevels(
        _set_bits(active[0]), _set_bits(active[1]), _set_bits(active[2]), _set_bits(active[3])
    )


@compiled
def _prior(model: PairModel, active: ActiveLevels) -> Floats:
    """Return the prior of each active state."""
    levels = model.levels
    groups, betas, nus, behaviors = active
    prior = np.empty((len(groups), len(betas), len(nus), len(behaviors)))
    for j in range(len(betas)):
        for k in range(len(behaviors)):
            log_prior = levels.log_beta[betas[j]] + levels.log_behavior[behaviors[k]]
            prior[0, j, 0, k] = math.exp(log_prior)
    for g in range(len(groups) - 1, -1, -1):
        for t in range(len(nus) - 1, -1, -1):
            share = math.exp(levels.log_group[groups[g]] + levels.log_nu[nus[t]])
            for j in range(len(betas)):
                for k in range(len(behaviors)):
                    prior[g, j, t, k] = share * prior[0, j, 0, k]
    return prior


@compiled_in_any_order
def _multiply_cell(
    joint: Floats,
    g: int,
    j: int,
    t: int,
    eps: Floats,
    flip: Floats,
    never_serious: Floats,
    room: VoteRoom,
    n: int,
) -> None:
    """Multiply the probabilities of states at one sharpness and tie rate by those of n comparisons."""
    rows, chance = room.rows, room.chance
    for k in range(len(eps)):
        if joint[g, j, t, k] == 0.0:
            continue
        product = 1.0
        if flip[k] > 0.0:
            for i in range(n):
                product *= eps[k] * rows[P + i] + flip[k] * rows[MIRRORED + i] + chance[k, i]
        elif eps[k] > 0.0:
            for i in range(n):
                product *= eps[k] * rows[P + i] + chance[k, i]
        else:
            product = never_serious[k]
        joint[g, j, t, k] *= product


@compiled_in_any_order
def _never_serious(eps: Floats, flip: Floats, chance: Floats, n: int) -> Floats:
    """Return the probabilities of n comparisons in states in which no vote is serious."""
    products = np.ones(len(eps))
    for k in range(len(eps)):
        if eps[k] == 0.0 and flip[k] == 0.0:
            for i in range(n):
                products[k] *= chance[k, i]
    return products


@compiled
def _multiply(
    joint: Floats, room: VoteRoom, n: int, levels: StateLevels, active: ActiveLevels
) -> None:
    """Multiply each state's probability by that of n comparisons."""
    groups, betas, nus, behaviors = active
    eps, flip = levels.eps[behaviors], levels.flip[behaviors]
    never_serious = _never_serious(eps, flip, room.chance, n)
    mirror = any_inverted(levels, behaviors)
    for g in range(len(groups)):
        for j in range(len(betas)):
            is_set = False
            for t in range(len(nus)):
                if not any_above(joint, g, j, t, 0.0):
                    continue
                if not is_set:
                    set_odds(room, n, g, levels.beta[betas[j]])
                    is_set = True
                set_probabilities(room, n, levels.nu[nus[t]], mirror)
                _multiply_cell(joint, g, j, t, eps, flip, never_serious, room, n)


@compiled_in_any_order
def _normalise(joint: Floats, dropped: float) -> float:
    """Divide by the sum; set to 0 what is below ``dropped`` then. Return the log of the sum."""
    flat = joint.ravel()
    total = 0.0
    for i in range(len(flat)):
        total += flat[i]
    for i in range(len(flat)):
        share = flat[i] / total
        flat[i] = share if share >= dropped else 0.0
    return math.log(total)


@compiled
def state_posterior(
    room: VoteRoom,
    block: Any,
    first: int,
    last: int,
    favoured: int,
    covariates: Floats,
    model: PairModel,
    active: ActiveLevels,
) -> tuple[Floats, float]:
    """Return the posterior of active states given the comparisons first:last, and their log-likelihood.

    States that are very unlikely after some of the comparisons are left out for the rest.
    """
    joint = _prior(model, active)
    lo, size = first, N_FIRST
    log_likelihood = 0.0
    while lo < last:
        hi = last if lo + size + N_FIRST > last else lo + size
        set_votes(room, block, lo, hi, favoured, covariates, model, active)
        _multiply(joint, room, hi - lo, model.levels, active)
        log_likelihood += _normalise(joint, DROPPED if hi < last else 0.0)
        lo = hi
        size = min(2 * size, BLOCK - N_FIRST)
    if first == last:
        log_likelihood = _normalise(joint, 0.0)
    return joint, log_likelihood


@compiled
def multiply_prior(
    posterior: Floats, active: ActiveLevels, beta_ratio: Floats, behavior_ratio: Floats
) -> None:
    """Make it the posterior with prior probabilities of sharpness and behaviors that are multiplied."""
    n_groups, n_betas, n_nus, n_behaviors = posterior.shape
    for j in range(n_betas):
        for k in range(n_behaviors):
            ratio = beta_ratio[active.beta[j]] * behavior_ratio[active.behavior[k]]
            for g in range(n_groups):
                for t in range(n_nus):
                    posterior[g, j, t, k] *= ratio
    _normalise(posterior, 0.0)


@compiled_in_any_order
def marginals(posterior: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the posterior of groups, sharpness, tie rates and behaviors."""
    n_groups, n_betas, n_nus, n_behaviors = posterior.shape
    group, beta, nu = np.zeros(n_groups), np.zeros(n_betas), np.zeros(n_nus)
    behavior = np.zeros(n_behaviors)
    for g in range(n_groups):
        for j in range(n_betas):
            for t in range(n_nus):
                states = posterior[g, j, t]
                mass = 0.0
                for k in range(n_behaviors):
                    mass += states[k]
                    behavior[k] += states[k]
                group[g] += mass
                beta[j] += mass
                nu[t] += mass
    return group, beta, nu, behavior


@compiled
def _mask(levels: Codes, mass: Floats, least: float) -> int:
    """Return the bits of the levels whose posterior probability is at least ``least``."""
    mask = 0
    for i in range(len(levels)):
        if mass[i] >= least:
            mask |= 1 << levels[i]
    return mask


@compiled
def keep_likely(
    active: Codes, levels: ActiveLevels, by: tuple[Floats, Floats, Floats, Floats], least: float
) -> None:
    """Set the bits of the levels whose posterior probability is at least ``least``."""
    active[0] = _mask(levels.group, by[0], least)
    active[1] = _mask(levels.beta, by[1], least)
    active[2] = _mask(levels.nu, by[2], least)
    active[3] = _mask(levels.behavior, by[3], least)
