"""The pass of PairGPM that adds up the information about its scores.

`annotruth.kernels.pairs.gpm` has the equations. NumPy twins: `annotruth.kernels.reference.pairs.gpm_information`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.pairs.gpm_states import active_levels, state_posterior
from annotruth.kernels.pairs.gpm_votes import (
    davidson,
    half_sign,
    kind,
    moments,
    offset_of,
    regressor,
    root_odds,
    vote_room,
)
from annotruth.kernels.pairs.levels import LIKELY, ActiveLevels, PairModel


@compiled
def information(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    sampled: Floats,
    covariates: Floats,
    model: PairModel,
    information: Floats,
) -> None:
    r"""Add up the observed information of the scores and the offsets (Louis, 1982).

    With the score :math:`g_k` and the Hessian :math:`H_k` of an annotator's log-likelihood in state
    k, the information is :math:`-\sum_k w_k H_k - \operatorname{Cov}_w(g_k)`. Annotators count
    ``sampled[s]`` times; 0 leaves them out. ``information`` is (groups * items + offsets) squared.
    """
    n_groups, n_items = model.theta.shape
    n_offsets = len(model.offsets)
    place = np.full(n_items, -1, np.int64)
    room = vote_room(model)
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        if first == last or sampled[s] == 0.0 or active[s, 0] == 0:
            continue
        levels = active_levels(active[s])
        posterior, _ = state_posterior(
            room, block, first, last, favoured[s], covariates, model, levels
        )
        shown = np.empty(2 * (last - first), np.int64)
        n_shown = 0
        for v in range(first, last):
            for item in (block.left[v], block.right[v]):
                if place[item] < 0:
                    place[item] = n_shown
                    shown[n_shown] = item
                    n_shown += 1
        width = len(levels.group) * n_shown + n_offsets
        columns = np.empty(width, np.int64)  # of the local numbers in ``information``
        for g in range(len(levels.group)):
            for i in range(n_shown):
                columns[g * n_shown + i] = levels.group[g] * n_items + shown[i]
        for c in range(n_offsets):
            columns[width - n_offsets + c] = n_groups * n_items + c
        local = np.zeros((width, width))
        scores, weights = _add_hessians(
            block, s, favoured[s], covariates, model, levels, posterior, place, n_shown, local
        )
        mean = np.dot(weights, scores)
        for k in range(len(weights)):
            root = math.sqrt(weights[k])
            for i in range(width):
                scores[k, i] = root * (scores[k, i] - mean[i])
        local -= np.dot(scores.T, scores)
        for i in range(width):
            for j in range(width):
                information[columns[i], columns[j]] += sampled[s] * local[i, j]
        for i in range(n_shown):
            place[shown[i]] = -1


@compiled
def _add_hessians(
    block: Any,
    s: int,
    favoured: int,
    covariates: Floats,
    model: PairModel,
    active: ActiveLevels,
    posterior: Floats,
    place: Codes,
    n_shown: int,
    local: Floats,
) -> tuple[Floats, Floats]:
    """Subtract the expected Hessians; return the scores of the likely states and their probabilities."""
    theta, offsets, levels = model
    groups, betas, nus, behaviors = active
    n_offsets = len(offsets)
    width = len(local)
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
                row = kind(y, left, right, favoured)
                own = half_sign(y)
                d = beta * (theta[groups[g], left] - theta[groups[g], right])
                a = root_odds(d + offset_of(v, covariates, offsets))
                cells[0] = g * n_shown + place[left]
                cells[1] = g * n_shown + place[right]
                change[0], change[1] = beta, -beta
                for c in range(n_offsets):
                    cells[2 + c] = width - n_offsets + c
                    change[2 + c] = regressor(v, c, covariates)
                bend = 0.0
                for t in range(len(nus)):
                    p, mirrored, total = davidson(y, a, levels.nu[nus[t]])
                    mean, variance = moments(a, total)
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
                    by = bend * change[i]
                    for i2 in range(2 + n_offsets):
                        local[cells[i], cells[i2]] += by * change[i2]
    return scores, weights
