"""NumPy twins of `annotruth.kernels.pairs.gpm_states`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.levels import MAX_LOG_ODDS, PairModel, StateLevels

HALF_SIGN = np.array([0.5, -0.5, 0.0])
"""The derivative of the log odds of each outcome by d."""

_MIRRORED = np.array([1, 0, 2])


class StateVotes(NamedTuple):
    """Some comparisons by one annotator, and what each state expects of them.

    Arrays have the axes comparison, group, sharpness, tie rate, and for ``mixed`` behavior.

    Examples
    --------
    >>> StateVotes._fields[:4]
    ('left', 'right', 'x', 'outcome')
    """

    left: Codes
    right: Codes
    x: Floats  # 1 and the covariates
    outcome: Codes
    serious: Floats  # D of the outcome
    mirrored: Floats
    mixed: Floats  # p_k(y)
    mean: Floats
    variance: Floats


def make_votes(
    left: Codes,
    right: Codes,
    outcome: Codes,
    favoured: int,
    covariates: Floats,
    model: PairModel,
) -> StateVotes:
    """Return what each state expects of these comparisons."""
    theta, offsets, levels = model
    won = np.where(outcome == 0, left, np.where(outcome == 1, right, -1))
    is_shown = (left == favoured) | (right == favoured)
    kind = np.where(is_shown, np.where(won == favoured, 1, 2), 0)
    x = np.concatenate([np.ones((len(left), 1)), covariates], axis=1)
    difference = (theta[:, left] - theta[:, right]).T
    d = levels.beta * difference[:, :, np.newaxis] + (x @ offsets)[:, np.newaxis, np.newaxis]
    a = np.exp(0.5 * np.clip(d, -MAX_LOG_ODDS, MAX_LOG_ODDS))[..., np.newaxis]
    total = a + 1.0 / a + levels.nu
    davidson = np.stack(
        [a / total, 1.0 / a / total, np.broadcast_to(levels.nu / total, total.shape)]
    )
    rows = np.arange(len(left))
    serious, mirrored = davidson[outcome, rows], davidson[_MIRRORED[outcome], rows]
    mean = 0.5 * (davidson[0] - davidson[1])
    variance = 0.25 * (davidson[0] + davidson[1]) - mean**2
    chance = levels.chance[3 * outcome + kind][:, np.newaxis, np.newaxis, np.newaxis]
    mixed = serious[..., np.newaxis] * levels.eps + mirrored[..., np.newaxis] * levels.flip + chance
    return StateVotes(left, right, x, outcome, serious, mirrored, mixed, mean, variance)


def votes_of(
    block: Any,
    s: int,
    favoured: NDArray[np.int32],
    covariates: Floats,
    model: PairModel,
    most: int | None = None,
) -> StateVotes:
    """Return the comparisons by annotator s, or the first of them."""
    first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
    of = slice(first, last if most is None else min(first + most, last))
    outcome = block.outcome[of].astype(np.int64)
    item = int(favoured[s])
    return make_votes(block.left[of], block.right[of], outcome, item, covariates[of], model)


def _bits(mask: int, size: int) -> NDArray[np.bool_]:
    bits: NDArray[np.bool_] = (int(mask) >> np.arange(size)) & 1 == 1
    return bits


def state_posterior(votes: StateVotes, active: Codes, levels: StateLevels) -> tuple[Floats, float]:
    """Return the posterior of the states, groups x sharpness x tie rates x behaviors, and its norm."""
    prior = (
        levels.log_group[:, np.newaxis, np.newaxis, np.newaxis]
        + levels.log_beta[:, np.newaxis, np.newaxis]
        + levels.log_nu[:, np.newaxis]
        + levels.log_behavior
    )
    joint = prior + np.log(votes.mixed).sum(axis=0)
    for axis, mask in enumerate(active):
        shape = np.ones(4, dtype=np.int64)
        shape[axis] = joint.shape[axis]
        joint = np.where(_bits(mask, joint.shape[axis]).reshape(shape), joint, -np.inf)
    largest = joint.max()
    posterior = np.exp(joint - largest)
    total = posterior.sum()
    return posterior / total, float(largest + np.log(total))


def marginals(posterior: Floats) -> list[Floats]:
    """Return the posterior of groups, sharpness, tie rates and behaviors."""
    return [posterior.sum(axis=tuple({0, 1, 2, 3} - {axis})) for axis in range(4)]


def multiply_prior(posterior: Floats, beta_ratio: Floats, behavior_ratio: Floats) -> Floats:
    """Return the posterior with prior probabilities of sharpness and behaviors that are multiplied."""
    joint: Floats = posterior * beta_ratio[:, np.newaxis, np.newaxis] * behavior_ratio
    joint /= joint.sum()
    return joint


def likely_levels(by: list[Floats], active: Codes, prune: float) -> list[int]:
    """Return the bits of the levels whose posterior probability is at least ``prune``."""
    masks = []
    for mass, mask in zip(by, active, strict=True):
        kept = (mass >= prune) & _bits(mask, len(mass))
        masks.append(int((kept.astype(np.int64) << np.arange(len(kept))).sum()))
    return masks


def slopes(votes: StateVotes, levels: StateLevels) -> tuple[Floats, Floats, Floats]:
    """Return the derivative of log p_k(y) by d, and the weights of its serious and inverted parts."""
    serious = votes.serious[..., np.newaxis] * levels.eps / votes.mixed
    inverted = votes.mirrored[..., np.newaxis] * levels.flip / votes.mixed
    own = HALF_SIGN[votes.outcome].reshape(-1, 1, 1, 1, 1)
    mean = votes.mean[..., np.newaxis]
    return serious * (own - mean) - inverted * (own + mean), serious, inverted
