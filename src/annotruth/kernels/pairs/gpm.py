r"""Passes of PairGPM over annotators.

An annotator is in a latent state: a taste group g, a sharpness :math:`\beta_j`, a tie rate
:math:`\nu_t` and a behavior with a reliability, k. In this state, the outcome y of a comparison of l
with r has the probability

.. math:: p_k(y) = \epsilon_k D(y; d) + \phi_k D(\bar y; d) + c_k(y), \qquad
    d = \beta_j (\theta_{g,l} - \theta_{g,r}) + \gamma + x \cdot c,

where :math:`D(\text{left}, \text{right}, \text{tie}; d) \propto (e^{d/2}, e^{-d/2}, \nu_t)` and
:math:`\bar y` is the outcome with left and right exchanged. Each kernel processes annotators
``lo:hi`` of a block. The levels that are still considered for an annotator are the bits of
``active[s]``: groups, sharpness, tie rates, behaviors. ``favoured[s]`` is the item that the annotator
may favour, ``pair`` the code of each comparison's pair, ``covariates`` one row per comparison, and
``offsets`` are gamma and c. ``leverage[s]`` is the part of the scores' degrees of freedom that s's
votes determine: it lowers the log of the sharpness :math:`\beta` by as much as the fitted scores
follow s's own votes, by the factor :math:`\beta^{-h_s \epsilon_k}`. NumPy twins: `annotruth.kernels.reference.pairs.gpm`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.pairs.levels import (
    LIKELY,
    MAX_LOG_ODDS,
    NEGLIGIBLE,
    SHARPNESS_SD,
    StateLevels,
)

_RESCALE_EVERY = 64  # comparisons; a state's probability of an outcome is at least 0.001 or so


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
def _kind(outcome: int, left: int, right: int, favoured: int) -> int:
    """Return the row of ``chance``: the outcome, and whether the favoured item is shown and won."""
    if favoured == left:
        return 3 * outcome + (1 if outcome == 0 else 2)
    if favoured == right:
        return 3 * outcome + (1 if outcome == 1 else 2)
    return 3 * outcome


@compiled
def _offset(v: int, covariates: Floats, offsets: Floats) -> float:
    """Return gamma + x.c of a comparison."""
    total: float = offsets[0]
    for c in range(covariates.shape[1]):
        total += covariates[v, c] * offsets[c + 1]
    return total


@compiled
def _root_odds(d: float) -> float:
    """Return exp(d / 2), within bounds that avoid overflow."""
    return math.exp(0.5 * min(max(d, -MAX_LOG_ODDS), MAX_LOG_ODDS))


@compiled
def _davidson(outcome: int, a: float, nu: float) -> tuple[float, float, float]:
    """Return D of an outcome and of its mirror image, and the normalising sum, at exp(d / 2) = a."""
    b = 1.0 / a
    total = a + b + nu
    if outcome == 0:
        return a / total, b / total, total
    if outcome == 1:
        return b / total, a / total, total
    return nu / total, nu / total, total


@compiled
def _log_joint(
    block: Any,
    s: int,
    favoured: int,
    leverage: float,
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
    groups: Codes,
    betas: Codes,
    nus: Codes,
    behaviors: Codes,
) -> Floats:
    """Return the log of the prior times the likelihood of each active state of annotator s."""
    n_states = len(behaviors)
    eps, flip = levels.eps[behaviors], levels.flip[behaviors]
    chance = np.empty((9, n_states))
    for row in range(9):
        for k in range(n_states):
            chance[row, k] = levels.chance[row, behaviors[k]]
    joint = np.empty((len(groups), len(betas), len(nus), n_states))
    product = np.empty((len(nus), n_states))
    small = min(leverage, 1.0)
    first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
    for g in range(len(groups)):
        scores = theta[groups[g]]
        for j in range(len(betas)):
            beta = levels.beta[betas[j]]
            log_beta = math.log(beta)
            for t in range(len(nus)):
                prior = (
                    levels.log_group[groups[g]] + levels.log_beta[betas[j]] + levels.log_nu[nus[t]]
                )
                for k in range(n_states):
                    # Half a variance, up to a leverage of 1: few votes stay as likely as without it.
                    tilt = leverage * log_beta + 0.5 * (SHARPNESS_SD * small) ** 2 * eps[k]
                    joint[g, j, t, k] = prior + levels.log_behavior[behaviors[k]] - tilt * eps[k]
            product[:] = 1.0
            since = 0
            for v in range(first, last):
                left, right, y = block.left[v], block.right[v], block.outcome[v]
                row = _kind(y, left, right, favoured)
                d = beta * (scores[left] - scores[right]) + _offset(v, covariates, offsets)
                a = _root_odds(d)
                for t in range(len(nus)):
                    p, mirrored, _ = _davidson(y, a, levels.nu[nus[t]])
                    for k in range(n_states):
                        product[t, k] *= eps[k] * p + flip[k] * mirrored + chance[row, k]
                since += 1
                if since == _RESCALE_EVERY or v == last - 1:
                    since = 0
                    for t in range(len(nus)):
                        for k in range(n_states):
                            joint[g, j, t, k] += math.log(product[t, k])
                            product[t, k] = 1.0
    return joint


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
def _mask(levels: Codes, mass: Floats, least: float) -> int:
    """Return the bits of the levels whose posterior probability is at least ``least``."""
    mask = 0
    for i in range(len(levels)):
        if mass[i] >= least:
            mask |= 1 << levels[i]
    return mask


@compiled
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
    r"""Add up the gradient and the expected curvature of the log-likelihood, and expected counts.

    With the posterior w of an annotator's states, a comparison adds
    :math:`\sum_k w_k (\epsilon_k D'(y) + \phi_k D'(\bar y)) / p_k(y)` to the derivative with respect
    to d, and the expected curvature of the serious and the inverted part to ``curvature`` (by pair,
    times the squared sharpness), ``cross`` (items with offsets) and ``offset_curvature``. ``totals``
    gets the log-likelihood, the expected log sharpness, and the expected leverage. Levels whose posterior
    probability is below ``prune`` are no longer active afterwards.
    """
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        if first == last or active[s, 0] == 0:
            continue
        groups, betas = _set_bits(active[s, 0]), _set_bits(active[s, 1])
        nus, behaviors = _set_bits(active[s, 2]), _set_bits(active[s, 3])
        posterior = _log_joint(
            block, s, favoured[s], leverage[s], covariates, theta, offsets, levels, groups, betas, nus,
            behaviors,
        )  # fmt: skip
        totals[0] += _normalise(posterior)
        mass = posterior.sum(axis=3)
        by_group = mass.sum(axis=2).sum(axis=1)
        by_beta = mass.sum(axis=2).sum(axis=0)
        by_nu = mass.sum(axis=0).sum(axis=0)
        by_behavior = posterior.sum(axis=0).sum(axis=0).sum(axis=0)
        for g in range(len(groups)):
            group_count[groups[g]] += by_group[g]
        for t in range(len(nus)):
            nu_count[nus[t]] += by_nu[t]
        for k in range(len(behaviors)):
            behavior_count[behaviors[k]] += by_behavior[k]
            totals[2] += leverage[s] * by_behavior[k] * levels.eps[behaviors[k]]
        for j in range(len(betas)):
            log_beta = math.log(levels.beta[betas[j]])
            totals[1] += by_beta[j] * log_beta
        _add_derivatives(
            block, s, favoured[s], pair, covariates, theta, offsets, levels, groups, betas, nus,
            behaviors, posterior, mass, mass.sum(axis=2), gradient, curvature, cross, offset_gradient,
            offset_curvature,
        )  # fmt: skip
        if prune > 0.0:
            active[s, 0] = _mask(groups, by_group, prune)
            active[s, 1] = _mask(betas, by_beta, prune)
            active[s, 2] = _mask(nus, by_nu, prune)
            active[s, 3] = _mask(behaviors, by_behavior, prune)


@compiled
def _add_derivatives(
    block: Any,
    s: int,
    favoured: int,
    pair: NDArray[np.int32],
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
    groups: Codes,
    betas: Codes,
    nus: Codes,
    behaviors: Codes,
    posterior: Floats,
    mass: Floats,
    by_beta: Floats,
    gradient: Floats,
    curvature: Floats,
    cross: Floats,
    offset_gradient: Floats,
    offset_curvature: Floats,
) -> None:
    """Add annotator s's part of the gradient and of the expected curvature."""
    n_states = len(behaviors)
    eps, flip = levels.eps[behaviors], levels.flip[behaviors]
    for v in range(block.annotator_ptr[s], block.annotator_ptr[s + 1]):
        left, right, y = block.left[v], block.right[v], block.outcome[v]
        row = _kind(y, left, right, favoured)
        own = 0.5 if y == 0 else (-0.5 if y == 1 else 0.0)
        offset = _offset(v, covariates, offsets)
        slope_of_offset = 0.0
        curve_of_offset = 0.0
        for g in range(len(groups)):
            difference = theta[groups[g], left] - theta[groups[g], right]
            slope_of_score = 0.0
            curve_of_both = 0.0
            curve_of_score = 0.0
            for j in range(len(betas)):
                if by_beta[g, j] < NEGLIGIBLE:
                    continue
                beta = levels.beta[betas[j]]
                a = _root_odds(beta * difference + offset)
                slope = 0.0
                curve = 0.0
                for t in range(len(nus)):
                    if mass[g, j, t] < NEGLIGIBLE:
                        continue
                    p, mirrored, total = _davidson(y, a, levels.nu[nus[t]])
                    serious = 0.0
                    inverted = 0.0
                    for k in range(n_states):
                        weight = posterior[g, j, t, k] / (
                            eps[k] * p + flip[k] * mirrored + levels.chance[row, behaviors[k]]
                        )
                        serious += weight * eps[k]
                        inverted += weight * flip[k]
                    serious *= p
                    inverted *= mirrored
                    mean = 0.5 * (a - 1.0 / a) / total
                    variance = 0.25 * (a + 1.0 / a) / total - mean * mean
                    slope += serious * (own - mean) - inverted * (own + mean)
                    curve += (serious + inverted) * variance
                slope_of_offset += slope
                curve_of_offset += curve
                slope_of_score += beta * slope
                curve_of_both += beta * curve
                curve_of_score += beta * beta * curve
            gradient[groups[g], left] += slope_of_score
            gradient[groups[g], right] -= slope_of_score
            curvature[groups[g], pair[v]] += curve_of_score
            for c in range(len(offsets)):
                x = 1.0 if c == 0 else covariates[v, c - 1]
                cross[groups[g], left, c] += curve_of_both * x
                cross[groups[g], right, c] -= curve_of_both * x
        for c in range(len(offsets)):
            x = 1.0 if c == 0 else covariates[v, c - 1]
            offset_gradient[c] += slope_of_offset * x
            for c2 in range(len(offsets)):
                x2 = 1.0 if c2 == 0 else covariates[v, c2 - 1]
                offset_curvature[c, c2] += curve_of_offset * x * x2


@compiled
def find_favoured(block: Any, lo: int, hi: int, favoured: NDArray[np.int32], n_items: int) -> None:
    """Set ``favoured`` to the item that each annotator voted for most one-sidedly.

    That is the item with the largest log-likelihood of being voted for whenever it is shown,
    compared with a random vote: 0.66 for every vote for it, -2.8 for every other vote on it.
    """
    gain = np.zeros(n_items)
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        best = -1
        for v in range(first, last):
            left, right, y = block.left[v], block.right[v], block.outcome[v]
            gain[left] += 0.66 if y == 0 else -2.8
            gain[right] += 0.66 if y == 1 else -2.8
        for v in range(first, last):
            for item in (block.left[v], block.right[v]):
                if gain[item] > 0.0 and (best < 0 or gain[item] > gain[best]):
                    best = item
        favoured[s] = best
        for v in range(first, last):
            gain[block.left[v]] = 0.0
            gain[block.right[v]] = 0.0


@compiled
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
    r"""Add up the observed information of the scores and the offsets (Louis, 1982).

    With the score :math:`g_k` and the Hessian :math:`H_k` of an annotator's log-likelihood in state
    k, the information is :math:`-\sum_k w_k H_k - \operatorname{Cov}_w(g_k)`. Annotators count
    ``sampled[s]`` times; 0 leaves them out. ``information`` is (groups * items + offsets) squared.
    """
    n_groups, n_items = theta.shape
    n_offsets = len(offsets)
    place = np.full(n_items, -1, np.int64)
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        if first == last or sampled[s] == 0.0 or active[s, 0] == 0:
            continue
        groups, betas = _set_bits(active[s, 0]), _set_bits(active[s, 1])
        nus, behaviors = _set_bits(active[s, 2]), _set_bits(active[s, 3])
        posterior = _log_joint(
            block, s, favoured[s], leverage[s], covariates, theta, offsets, levels, groups, betas, nus,
            behaviors,
        )  # fmt: skip
        _normalise(posterior)
        shown = np.empty(2 * (last - first), np.int64)
        n_shown = 0
        for v in range(first, last):
            for item in (block.left[v], block.right[v]):
                if place[item] < 0:
                    place[item] = n_shown
                    shown[n_shown] = item
                    n_shown += 1
        width = len(groups) * n_shown + n_offsets
        columns = np.empty(width, np.int64)  # of the local numbers in ``information``
        for g in range(len(groups)):
            for i in range(n_shown):
                columns[g * n_shown + i] = groups[g] * n_items + shown[i]
        for c in range(n_offsets):
            columns[width - n_offsets + c] = n_groups * n_items + c
        scores, weights = _add_hessians(
            block, s, favoured[s], sampled[s], covariates, theta, offsets, levels, groups, betas, nus,
            behaviors, posterior, place, n_shown, columns, information,
        )  # fmt: skip
        mean = np.zeros(width)
        for k in range(len(weights)):
            for i in range(width):
                mean[i] += weights[k] * scores[k, i]
        for k in range(len(weights)):
            for i in range(width):
                scores[k, i] -= mean[i]
            for i in range(width):
                by = sampled[s] * weights[k] * scores[k, i]
                for j in range(width):
                    information[columns[i], columns[j]] -= by * scores[k, j]
        for i in range(n_shown):
            place[shown[i]] = -1


@compiled
def _add_hessians(
    block: Any,
    s: int,
    favoured: int,
    sampled: float,
    covariates: Floats,
    theta: Floats,
    offsets: Floats,
    levels: StateLevels,
    groups: Codes,
    betas: Codes,
    nus: Codes,
    behaviors: Codes,
    posterior: Floats,
    place: Codes,
    n_shown: int,
    columns: Codes,
    information: Floats,
) -> tuple[Floats, Floats]:
    """Add the expected Hessians; return the scores of the likely states and their probabilities."""
    n_offsets = len(offsets)
    width = len(columns)
    number = np.full(posterior.shape, -1, np.int64)  # of the likely states
    n_likely = 0
    for g, j, t, k in np.ndindex(posterior.shape):
        if posterior[g, j, t, k] >= LIKELY:
            number[g, j, t, k] = n_likely
            n_likely += 1
    scores = np.zeros((n_likely, width))
    weights = np.zeros(n_likely)
    eps, flip = levels.eps[behaviors], levels.flip[behaviors]
    cells = np.empty(2 + n_offsets, np.int64)
    change = np.empty(2 + n_offsets)
    for g in range(len(groups)):
        for j in range(len(betas)):
            beta = levels.beta[betas[j]]
            for v in range(block.annotator_ptr[s], block.annotator_ptr[s + 1]):
                left, right, y = block.left[v], block.right[v], block.outcome[v]
                row = _kind(y, left, right, favoured)
                own = 0.5 if y == 0 else (-0.5 if y == 1 else 0.0)
                d = beta * (theta[groups[g], left] - theta[groups[g], right])
                a = _root_odds(d + _offset(v, covariates, offsets))
                cells[0] = g * n_shown + place[left]
                cells[1] = g * n_shown + place[right]
                change[0], change[1] = beta, -beta
                for c in range(n_offsets):
                    cells[2 + c] = width - n_offsets + c
                    change[2 + c] = 1.0 if c == 0 else covariates[v, c - 1]
                bend = 0.0
                for t in range(len(nus)):
                    p, mirrored, total = _davidson(y, a, levels.nu[nus[t]])
                    mean = 0.5 * (a - 1.0 / a) / total
                    variance = 0.25 * (a + 1.0 / a) / total - mean * mean
                    up, down = own - mean, own + mean
                    for k in range(len(behaviors)):
                        state = number[g, j, t, k]
                        if state < 0:
                            continue
                        weight = posterior[g, j, t, k]
                        weights[state] = weight
                        mixed = eps[k] * p + flip[k] * mirrored + levels.chance[row, behaviors[k]]
                        serious, inverted = eps[k] * p / mixed, flip[k] * mirrored / mixed
                        slope = serious * up - inverted * down
                        bend += weight * (
                            slope * slope
                            - serious * (up * up - variance)
                            - inverted * (down * down - variance)
                        )
                        for i in range(2 + n_offsets):
                            scores[state, cells[i]] += slope * change[i]
                for i in range(2 + n_offsets):
                    by = sampled * bend * change[i]
                    for i2 in range(2 + n_offsets):
                        information[columns[cells[i]], columns[cells[i2]]] += by * change[i2]
    return scores, weights


@compiled
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
    """Set each annotator's posterior of groups, sharpness, tie rates and behaviors, and evidence.

    ``evidence`` has pairs of an observed and an expected number: votes for the left item, ties,
    and votes for the item with the higher score, each expected of a serious annotator; then the
    votes for the favoured item, and how often it was shown. ``p_serious`` is the probability that
    each comparison was serious. ``totals`` gets the log-likelihood.
    """
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        groups, betas = _set_bits(active[s, 0]), _set_bits(active[s, 1])
        nus, behaviors = _set_bits(active[s, 2]), _set_bits(active[s, 3])
        posterior = _log_joint(
            block, s, favoured[s], leverage[s], covariates, theta, offsets, levels, groups, betas, nus,
            behaviors,
        )  # fmt: skip
        totals[0] += _normalise(posterior)
        by_group[s] = 0.0
        by_beta[s] = 0.0
        by_nu[s] = 0.0
        by_behavior[s] = 0.0
        evidence[s] = 0.0
        p_serious[first:last] = 0.0
        for g in range(len(groups)):
            for j in range(len(betas)):
                for t in range(len(nus)):
                    for k in range(len(behaviors)):
                        weight = posterior[g, j, t, k]
                        by_group[s, groups[g]] += weight
                        by_beta[s, betas[j]] += weight
                        by_nu[s, nus[t]] += weight
                        by_behavior[s, behaviors[k]] += weight
                    _add_evidence(
                        block, s, favoured[s], covariates, theta[groups[g]], offsets, levels,
                        levels.beta[betas[j]], levels.nu[nus[t]], behaviors, posterior[g, j, t],
                        evidence[s], p_serious,
                    )  # fmt: skip
        for v in range(first, last):
            left, right, y = block.left[v], block.right[v], block.outcome[v]
            evidence[s, 0] += y == 0
            evidence[s, 2] += y == 2
            if favoured[s] == left or favoured[s] == right:
                evidence[s, 6] += favoured[s] == (left if y == 0 else right) and y != 2
                evidence[s, 7] += 1.0


@compiled
def _add_evidence(
    block: Any,
    s: int,
    favoured: int,
    covariates: Floats,
    scores: Floats,
    offsets: Floats,
    levels: StateLevels,
    beta: float,
    nu: float,
    behaviors: Codes,
    weights: Floats,
    evidence: Floats,
    p_serious: Floats,
) -> None:
    """Add what a level of sharpness and of ties expects of a serious annotator, by its weight."""
    mass = weights.sum()
    if mass < NEGLIGIBLE:
        return
    for v in range(block.annotator_ptr[s], block.annotator_ptr[s + 1]):
        left, right, y = block.left[v], block.right[v], block.outcome[v]
        row = _kind(y, left, right, favoured)
        difference = scores[left] - scores[right]
        a = _root_odds(beta * difference + _offset(v, covariates, offsets))
        p, mirrored, total = _davidson(y, a, nu)
        for k in range(len(behaviors)):
            state = behaviors[k]
            serious = levels.eps[state] * p
            mixed = serious + levels.flip[state] * mirrored + levels.chance[row, state]
            p_serious[v] += weights[k] * serious / mixed
        evidence[1] += mass * a / total
        evidence[3] += mass * nu / total
        higher_left = difference > 0.0
        evidence[4] += mass * ((y == 0) if higher_left else (y == 1))
        evidence[5] += mass * (a if higher_left else 1.0 / a) / total


@compiled
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
    """Set each annotator's side bias and the precision of it, by Newton's method.

    It takes the place of gamma, around which it has a normal prior; sharpness, tie rate and group
    are given.
    """
    for s in range(lo, hi):
        scores = theta[group[s]]
        value = offsets[0]
        information = precision
        for _ in range(20):
            slope = -precision * (value - offsets[0])
            information = precision
            for v in range(block.annotator_ptr[s], block.annotator_ptr[s + 1]):
                d = sharpness[s] * (scores[block.left[v]] - scores[block.right[v]])
                d += _offset(v, covariates, offsets) - offsets[0] + value
                a = _root_odds(d)
                total = a + 1.0 / a + tie[s]
                mean = 0.5 * (a - 1.0 / a) / total
                y = block.outcome[v]
                slope += (0.5 if y == 0 else (-0.5 if y == 1 else 0.0)) - mean
                information += 0.25 * (a + 1.0 / a) / total - mean * mean
            move = min(max(slope / information, -1.0), 1.0)
            value += move
            if abs(move) < 1e-6:
                break
        bias[s, 0] = value
        bias[s, 1] = information


@compiled
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
        if new_ptr[s] == new_ptr[s + 1]:
            continue
        groups, betas = _set_bits(active[s, 0]), _set_bits(active[s, 1])
        nus, behaviors = _set_bits(active[s, 2]), _set_bits(active[s, 3])
        posterior = _log_joint(
            block, s, favoured[s], leverage[s], covariates, theta, offsets, levels, groups, betas, nus,
            behaviors,
        )  # fmt: skip
        _normalise(posterior)
        mass = posterior.sum(axis=3)
        for g in range(len(groups)):
            for j in range(len(betas)):
                for t in range(len(nus)):
                    if mass[g, j, t] < NEGLIGIBLE:
                        continue
                    eps = 0.0
                    flip = 0.0
                    chance = np.zeros(9)
                    for k in range(len(behaviors)):
                        weight = posterior[g, j, t, k]
                        eps += weight * levels.eps[behaviors[k]]
                        flip += weight * levels.flip[behaviors[k]]
                        for row in range(9):
                            chance[row] += weight * levels.chance[row, behaviors[k]]
                    for v in range(new_ptr[s], new_ptr[s + 1]):
                        left, right = new_left[v], new_right[v]
                        d = levels.beta[betas[j]] * (
                            theta[groups[g], left] - theta[groups[g], right]
                        )
                        a = _root_odds(d + _offset(v, new_covariates, offsets))
                        for y in range(3):
                            p, mirrored, _ = _davidson(y, a, levels.nu[nus[t]])
                            row = _kind(y, left, right, favoured[s])
                            probability[v, y] += eps * p + flip * mirrored + chance[row]


@compiled
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
        groups, betas = _set_bits(active[s, 0]), _set_bits(active[s, 1])
        nus, behaviors = _set_bits(active[s, 2]), _set_bits(active[s, 3])
        posterior = _log_joint(
            block, s, favoured[s], leverage[s], covariates, theta, offsets, levels, groups, betas, nus,
            behaviors,
        )  # fmt: skip
        _normalise(posterior)
        mass = posterior.sum(axis=3)
        active[s, 0] = _mask(groups, mass.sum(axis=2).sum(axis=1), prune)
        active[s, 1] = _mask(betas, mass.sum(axis=2).sum(axis=0), prune)
        active[s, 2] = _mask(nus, mass.sum(axis=0).sum(axis=0), prune)
        active[s, 3] = _mask(behaviors, posterior.sum(axis=0).sum(axis=0).sum(axis=0), prune)
