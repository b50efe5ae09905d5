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
``model`` has the scores, the offsets gamma and c, and the levels. ``leverage[s]`` is the part of the scores' degrees of freedom that s's
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
from annotruth.kernels.pairs.gpm_states import (
    ActiveLevels,
    active_levels,
    davidson,
    half_sign,
    keep_likely,
    kind,
    marginals,
    moments,
    offset_of,
    regressor,
    root_odds,
    state_posterior,
)
from annotruth.kernels.pairs.levels import NEGLIGIBLE, PairModel


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
    model: PairModel,
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
        levels = active_levels(active[s])
        posterior, log_likelihood = state_posterior(
            block, s, favoured[s], leverage[s], covariates, model, levels
        )
        totals[0] += log_likelihood
        by = marginals(posterior)
        for g in range(len(levels.group)):
            group_count[levels.group[g]] += by[0][g]
        for j in range(len(levels.beta)):
            totals[1] += by[1][j] * math.log(model.levels.beta[levels.beta[j]])
        for t in range(len(levels.nu)):
            nu_count[levels.nu[t]] += by[2][t]
        for k in range(len(levels.behavior)):
            behavior_count[levels.behavior[k]] += by[3][k]
            totals[2] += leverage[s] * by[3][k] * model.levels.eps[levels.behavior[k]]
        _add_derivatives(
            block, s, favoured[s], pair, covariates, model, levels, posterior, gradient, curvature,
            cross, offset_gradient, offset_curvature,
        )  # fmt: skip
        if prune > 0.0:
            keep_likely(active[s], levels, by, prune)


@compiled
def _add_derivatives(
    block: Any,
    s: int,
    favoured: int,
    pair: NDArray[np.int32],
    covariates: Floats,
    model: PairModel,
    active: ActiveLevels,
    posterior: Floats,
    gradient: Floats,
    curvature: Floats,
    cross: Floats,
    offset_gradient: Floats,
    offset_curvature: Floats,
) -> None:
    """Add annotator s's part of the gradient and of the expected curvature."""
    theta, offsets, levels = model
    groups, betas, nus, behaviors = active
    mass = posterior.sum(axis=3)
    by_beta = mass.sum(axis=2)
    n_states = len(behaviors)
    eps, flip = levels.eps[behaviors], levels.flip[behaviors]
    for v in range(block.annotator_ptr[s], block.annotator_ptr[s + 1]):
        left, right, y = block.left[v], block.right[v], block.outcome[v]
        row = kind(y, left, right, favoured)
        own = half_sign(y)
        offset = offset_of(v, covariates, offsets)
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
                a = root_odds(beta * difference + offset)
                slope = 0.0
                curve = 0.0
                for t in range(len(nus)):
                    if mass[g, j, t] < NEGLIGIBLE:
                        continue
                    p, mirrored, total = davidson(y, a, levels.nu[nus[t]])
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
                    mean, variance = moments(a, total)
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
                x = regressor(v, c, covariates)
                cross[groups[g], left, c] += curve_of_both * x
                cross[groups[g], right, c] -= curve_of_both * x
        for c in range(len(offsets)):
            x = regressor(v, c, covariates)
            offset_gradient[c] += slope_of_offset * x
            for c2 in range(len(offsets)):
                x2 = regressor(v, c2, covariates)
                offset_curvature[c, c2] += curve_of_offset * x * x2


@compiled
def prune_states(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    leverage: Floats,
    covariates: Floats,
    model: PairModel,
    prune: float,
) -> None:
    """Make levels inactive whose posterior probability is below ``prune``."""
    for s in range(lo, hi):
        levels = active_levels(active[s])
        posterior, _ = state_posterior(
            block, s, favoured[s], leverage[s], covariates, model, levels
        )
        keep_likely(active[s], levels, marginals(posterior), prune)


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
