"""The posterior of an annotator's states, which all passes of PairGPM compute.

`annotruth.kernels.pairs.gpm` has the equations. NumPy twins: `annotruth.kernels.reference.pairs.gpm_states`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.pairs.levels import MAX_LOG_ODDS, SHARPNESS_SD, PairModel

_RESCALE_EVERY = 64  # comparisons; a state's probability of an outcome is at least 0.001 or so


class ActiveLevels(NamedTuple):
    """The levels of one annotator that are still considered.

    Examples
    --------
    >>> ActiveLevels._fields
    ('group', 'beta', 'nu', 'behavior')
    """

    group: Codes
    beta: Codes
    nu: Codes
    behavior: Codes


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


@compiled
def _log_prior(leverage: float, model: PairModel, active: ActiveLevels) -> Floats:
    """Return the log of the prior of each active state, corrected for the leverage."""
    levels = model.levels
    groups, betas, nus, behaviors = active
    prior = np.empty((len(groups), len(betas), len(nus), len(behaviors)))
    small = min(leverage, 1.0)
    for g in range(len(groups)):
        for j in range(len(betas)):
            log_beta = math.log(levels.beta[betas[j]])
            for t in range(len(nus)):
                level = (
                    levels.log_group[groups[g]] + levels.log_beta[betas[j]] + levels.log_nu[nus[t]]
                )
                for k in range(len(behaviors)):
                    eps = levels.eps[behaviors[k]]
                    # Half a variance, up to a leverage of 1: few votes stay as likely as without it.
                    tilt = leverage * log_beta + 0.5 * (SHARPNESS_SD * small) ** 2 * eps
                    prior[g, j, t, k] = level + levels.log_behavior[behaviors[k]] - tilt * eps
    return prior


@compiled
def _add_log_likelihood(
    joint: Floats,
    block: Any,
    s: int,
    favoured: int,
    covariates: Floats,
    model: PairModel,
    active: ActiveLevels,
) -> None:
    """Add the log-likelihood of annotator s's votes in each active state."""
    levels, theta, offsets = model.levels, model.theta, model.offsets
    groups, betas, nus, behaviors = active
    n_states = len(behaviors)
    eps, flip = levels.eps[behaviors], levels.flip[behaviors]
    chance = np.empty((9, n_states))
    for row in range(9):
        for k in range(n_states):
            chance[row, k] = levels.chance[row, behaviors[k]]
    product = np.empty((len(nus), n_states))
    first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
    for g in range(len(groups)):
        scores = theta[groups[g]]
        for j in range(len(betas)):
            beta = levels.beta[betas[j]]
            product[:] = 1.0
            since = 0
            for v in range(first, last):
                left, right, y = block.left[v], block.right[v], block.outcome[v]
                row = kind(y, left, right, favoured)
                d = beta * (scores[left] - scores[right]) + offset_of(v, covariates, offsets)
                a = root_odds(d)
                for t in range(len(nus)):
                    p, mirrored, _ = davidson(y, a, levels.nu[nus[t]])
                    for k in range(n_states):
                        product[t, k] *= eps[k] * p + flip[k] * mirrored + chance[row, k]
                since += 1
                if since == _RESCALE_EVERY or v == last - 1:
                    since = 0
                    for t in range(len(nus)):
                        for k in range(n_states):
                            joint[g, j, t, k] += math.log(product[t, k])
                            product[t, k] = 1.0


@compiled
def _normalise(joint: Floats) -> float:
    """Turn log-joints into posterior probabilities; return the log of their sum."""
    flat = joint.ravel()
    largest = flat.max()
    total = 0.0
    for i in range(len(flat)):
        flat[i] = math.exp(flat[i] - largest)
        total += flat[i]
    for i in range(len(flat)):
        flat[i] /= total
    return float(largest + math.log(total))


@compiled
def state_posterior(
    block: Any,
    s: int,
    favoured: int,
    leverage: float,
    covariates: Floats,
    model: PairModel,
    active: ActiveLevels,
) -> tuple[Floats, float]:
    """Return the posterior of annotator s's active states, and the log-likelihood."""
    joint = _log_prior(leverage, model, active)
    _add_log_likelihood(joint, block, s, favoured, covariates, model, active)
    log_likelihood = _normalise(joint)
    return joint, log_likelihood


@compiled
def marginals(posterior: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the posterior of groups, sharpness, tie rates and behaviors."""
    mass = posterior.sum(axis=3)
    return (
        mass.sum(axis=2).sum(axis=1),
        mass.sum(axis=2).sum(axis=0),
        mass.sum(axis=0).sum(axis=0),
        posterior.sum(axis=0).sum(axis=0).sum(axis=0),
    )


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
