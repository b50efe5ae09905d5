"""NumPy twins of `annotruth.kernels.pairs.gpm`, which has the equations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.levels import MAX_LOG_ODDS, SHARPNESS_SD, StateLevels

_MIRRORED = np.array([1, 0, 2])
_OWN = np.array([0.5, -0.5, 0.0])


class _Votes(NamedTuple):
    """Some comparisons by one annotator, and what each state expects of them.

    Arrays have the axes comparison, group, sharpness, tie rate, and for ``mixed`` behavior.
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


def _votes(
    left: Codes,
    right: Codes,
    outcome: Codes,
    favoured: int,
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
) -> _Votes:
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
    return _Votes(left, right, x, outcome, serious, mirrored, mixed, mean, variance)


def _votes_of(
    block: Any,
    s: int,
    favoured: NDArray[np.int32],
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
) -> _Votes:
    of = slice(block.annotator_ptr[s], block.annotator_ptr[s + 1])
    outcome = block.outcome[of].astype(np.int64)
    item = int(favoured[s])
    return _votes(
        block.left[of], block.right[of], outcome, item, covariates[of], theta, offsets, levels
    )


def _bits(mask: int, size: int) -> NDArray[np.bool_]:
    bits: NDArray[np.bool_] = (int(mask) >> np.arange(size)) & 1 == 1
    return bits


def _posterior(
    votes: _Votes, active: Codes, leverage: float, levels: StateLevels
) -> tuple[Floats, float]:
    """Return the posterior of the states, groups x sharpness x tie rates x behaviors, and its norm."""
    prior = (
        levels.log_group[:, np.newaxis, np.newaxis, np.newaxis]
        + levels.log_beta[:, np.newaxis, np.newaxis]
        + levels.log_nu[:, np.newaxis]
        + levels.log_behavior
    )
    prior = prior - leverage * np.log(levels.beta)[:, np.newaxis, np.newaxis] * levels.eps
    prior = prior - 0.5 * (SHARPNESS_SD * min(leverage, 1.0) * levels.eps) ** 2
    joint = prior + np.log(votes.mixed).sum(axis=0)
    for axis, mask in enumerate(active):
        shape = np.ones(4, dtype=np.int64)
        shape[axis] = joint.shape[axis]
        joint = np.where(_bits(mask, joint.shape[axis]).reshape(shape), joint, -np.inf)
    largest = joint.max()
    posterior = np.exp(joint - largest)
    total = posterior.sum()
    return posterior / total, float(largest + np.log(total))


def _slopes(votes: _Votes, levels: StateLevels) -> tuple[Floats, Floats, Floats]:
    """Return the derivative of log p_k(y) by d, and the weights of its serious and inverted parts."""
    serious = votes.serious[..., np.newaxis] * levels.eps / votes.mixed
    inverted = votes.mirrored[..., np.newaxis] * levels.flip / votes.mixed
    own = _OWN[votes.outcome].reshape(-1, 1, 1, 1, 1)
    mean = votes.mean[..., np.newaxis]
    return serious * (own - mean) - inverted * (own + mean), serious, inverted


def step(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    leverage: Floats,
    pair: NDArray[np.int32],
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
    prune: float,
    gradient: Floats,
    curvature: Floats,
    cross: Floats,
    offset_gradient: Floats,
    offset_curvature: Floats,
    group_count: Floats,
    nu_count: Floats,
    behavior_count: Floats,
    totals: Floats,
) -> None:
    """Add up the gradient and the expected curvature of the log-likelihood, and expected counts."""
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        if first == last or active[s, 0] == 0:
            continue
        votes = _votes_of(block, s, favoured, covariates, theta, offsets, levels)
        posterior, log_likelihood = _posterior(votes, active[s], leverage[s], levels)
        by = [posterior.sum(axis=tuple({0, 1, 2, 3} - {axis})) for axis in range(4)]
        group_count += by[0]
        nu_count += by[2]
        behavior_count += by[3]
        totals += log_likelihood, by[1] @ np.log(levels.beta), leverage[s] * (by[3] @ levels.eps)

        slope, serious, inverted = _slopes(votes, levels)
        slopes = (posterior * slope).sum(axis=(3, 4))  # comparison, group, sharpness
        curves = (posterior * (serious + inverted) * votes.variance[..., np.newaxis]).sum(
            axis=(3, 4)
        )
        beta_slope, beta_curve = slopes @ levels.beta, curves @ levels.beta
        np.add.at(gradient.T, votes.left, beta_slope)
        np.add.at(gradient.T, votes.right, -beta_slope)
        np.add.at(curvature.T, pair[first:last], curves @ levels.beta**2)
        by_offset = beta_curve[:, :, np.newaxis] * votes.x[:, np.newaxis]
        np.add.at(cross.transpose(1, 0, 2), votes.left, by_offset)
        np.add.at(cross.transpose(1, 0, 2), votes.right, -by_offset)
        offset_gradient += slopes.sum(axis=(1, 2)) @ votes.x
        offset_curvature += (votes.x * curves.sum(axis=(1, 2))[:, np.newaxis]).T @ votes.x
        if prune > 0.0:
            active[s] = _active(by, active[s], prune)


def _active(by: list[Floats], active: Codes, prune: float) -> list[int]:
    """Return the bits of the levels whose posterior probability is at least ``prune``."""
    masks = []
    for mass, mask in zip(by, active, strict=True):
        kept = (mass >= prune) & _bits(mask, len(mass))
        masks.append(int((kept.astype(np.int64) << np.arange(len(kept))).sum()))
    return masks


def prune_states(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    leverage: Floats,
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
    prune: float,
) -> None:
    """Make levels inactive whose posterior probability is below ``prune``."""
    for s in range(lo, hi):
        votes = _votes_of(block, s, favoured, covariates, theta, offsets, levels)
        posterior, _ = _posterior(votes, active[s], leverage[s], levels)
        by = [posterior.sum(axis=tuple({0, 1, 2, 3} - {axis})) for axis in range(4)]
        active[s] = _active(by, active[s], prune)


def find_favoured(block: Any, lo: int, hi: int, favoured: NDArray[np.int32], n_items: int) -> None:
    """Set ``favoured`` to the item that each annotator voted for most one-sidedly."""
    for s in range(lo, hi):
        of = slice(block.annotator_ptr[s], block.annotator_ptr[s + 1])
        left, right, outcome = block.left[of], block.right[of], block.outcome[of]
        gain = np.zeros(n_items)
        np.add.at(gain, left, np.where(outcome == 0, 0.66, -2.8))
        np.add.at(gain, right, np.where(outcome == 1, 0.66, -2.8))
        shown = np.stack([left, right], axis=1).ravel()
        favoured[s] = -1
        if len(shown) and gain[shown].max() > 0.0:
            favoured[s] = shown[gain[shown].argmax()]


def information(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    leverage: Floats,
    sampled: Floats,
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
    information: Floats,
) -> None:
    """Add up the observed information of the scores and the offsets (Louis, 1982)."""
    n_groups, n_items = theta.shape
    for s in range(lo, hi):
        if block.annotator_ptr[s] == block.annotator_ptr[s + 1] or active[s, 0] == 0:
            continue
        votes = _votes_of(block, s, favoured, covariates, theta, offsets, levels)
        posterior, _ = _posterior(votes, active[s], leverage[s], levels)
        slope, serious, inverted = _slopes(votes, levels)
        own = _OWN[votes.outcome].reshape(-1, 1, 1, 1, 1)
        mean, variance = votes.mean[..., np.newaxis], votes.variance[..., np.newaxis]
        bend = slope**2 - serious * ((own - mean) ** 2 - variance)
        bend -= inverted * ((own + mean) ** 2 - variance)
        scores, weights = [], []
        for g, j in np.ndindex(n_groups, len(levels.beta)):
            change = np.zeros((len(votes.left), len(information)))
            rows = np.arange(len(change))
            change[rows, g * n_items + votes.left] = levels.beta[j]
            change[rows, g * n_items + votes.right] = -levels.beta[j]
            change[:, n_groups * n_items :] = votes.x
            by_vote = (posterior[g, j] * bend[:, g, j]).sum(axis=(1, 2))
            information += sampled[s] * (change * by_vote[:, np.newaxis]).T @ change
            of_state = slope[:, g, j].reshape(len(change), -1)
            scores.append(of_state.T @ change)
            weights.append(posterior[g, j].ravel())
        all_scores, weight = np.concatenate(scores), np.concatenate(weights)
        all_scores = all_scores - weight @ all_scores
        information -= sampled[s] * (all_scores * weight[:, np.newaxis]).T @ all_scores


def posteriors(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    leverage: Floats,
    covariates: Floats,
    by_group: Floats,
    by_beta: Floats,
    by_nu: Floats,
    by_behavior: Floats,
    evidence: Floats,
    p_serious: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
    totals: Floats,
) -> None:
    """Set each annotator's posterior of groups, sharpness, tie rates and behaviors, and evidence."""
    for s in range(lo, hi):
        votes = _votes_of(block, s, favoured, covariates, theta, offsets, levels)
        posterior, log_likelihood = _posterior(votes, active[s], leverage[s], levels)
        totals[0] += log_likelihood
        for axis, by in enumerate((by_group, by_beta, by_nu, by_behavior)):
            by[s] = posterior.sum(axis=tuple({0, 1, 2, 3} - {axis}))
        mass = posterior.sum(axis=3)
        _, serious, _ = _slopes(votes, levels)
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        p_serious[first:last] = (posterior * serious).sum(axis=(1, 2, 3, 4))
        y = votes.outcome
        both = 4.0 * (votes.variance + votes.mean**2)  # of left and of right together
        p_left, p_right = both / 2.0 + votes.mean, both / 2.0 - votes.mean
        higher_left = (theta[:, votes.left] > theta[:, votes.right]).T[:, :, np.newaxis, np.newaxis]
        y4 = y[:, np.newaxis, np.newaxis, np.newaxis]
        agreed = np.where(higher_left, y4 == 0, y4 == 1)
        winner = np.where(y == 0, votes.left, np.where(y == 1, votes.right, -1))
        is_shown = (votes.left == favoured[s]) | (votes.right == favoured[s])
        evidence[s] = (
            *((y == 0).sum(), (mass * p_left).sum()),
            *((y == 2).sum(), (mass * (1.0 - both)).sum()),
            *((mass * agreed).sum(), (mass * np.where(higher_left, p_left, p_right)).sum()),
            *((is_shown & (winner == favoured[s])).sum(), is_shown.sum()),
        )


def side_bias(
    block: Any,
    lo: int,
    hi: int,
    bias: Floats,
    sharpness: Floats,
    tie: Floats,
    group: Codes,
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    precision: float,
) -> None:
    """Set each annotator's side bias and the precision of it, by Newton's method."""
    for s in range(lo, hi):
        of = slice(block.annotator_ptr[s], block.annotator_ptr[s + 1])
        scores = theta[group[s]]
        rest = sharpness[s] * (scores[block.left[of]] - scores[block.right[of]])
        rest = rest + covariates[of] @ offsets[1:]
        value, information = offsets[0], precision
        for _ in range(20):
            a = np.exp(0.5 * np.clip(rest + value, -MAX_LOG_ODDS, MAX_LOG_ODDS))
            total = a + 1.0 / a + tie[s]
            mean = 0.5 * (a - 1.0 / a) / total
            slope = (_OWN[block.outcome[of]] - mean).sum() - precision * (value - offsets[0])
            information = precision + (0.25 * (a + 1.0 / a) / total - mean**2).sum()
            move = np.clip(slope / information, -1.0, 1.0)
            value += move
            if abs(move) < 1e-6:
                break
        bias[s] = value, information


def predict(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    leverage: Floats,
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
    new_ptr: Codes,
    new_left: Codes,
    new_right: Codes,
    new_covariates: Floats,
    probability: Floats,
) -> None:
    """Set the probabilities of left, right and tie of new comparisons, sorted by annotator."""
    for s in range(lo, hi):
        votes = _votes_of(block, s, favoured, covariates, theta, offsets, levels)
        posterior, _ = _posterior(votes, active[s], leverage[s], levels)
        of = slice(new_ptr[s], new_ptr[s + 1])
        for y in range(3):
            outcome = np.full(len(new_left[of]), y)
            new = _votes(
                *(new_left[of], new_right[of], outcome, int(favoured[s]), new_covariates[of]),
                *(theta, offsets, levels),
            )
            probability[of, y] = (posterior * new.mixed).sum(axis=(1, 2, 3, 4))
