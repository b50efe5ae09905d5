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
``model`` has the scores, the offsets gamma and c, and the levels. NumPy twins:
`annotruth.kernels.reference.pairs.gpm`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.pairs.gpm_derivatives import add_derivatives
from annotruth.kernels.pairs.gpm_states import (
    active_levels,
    keep_likely,
    marginals,
    state_posterior,
)
from annotruth.kernels.pairs.gpm_votes import vote_room
from annotruth.kernels.pairs.levels import LIKELY, PairModel


@compiled
def step(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    pair: NDArray[np.int32],
    covariates: Floats,
    by_level: Floats,
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
    gets the log-likelihood and the expected log sharpness. ``by_level`` gets
    each annotator's posterior of groups, tie rates and behaviors; 0 if they do not count. Levels whose
    posterior probability is below ``prune`` are no longer active afterwards, and states below it do
    not count for the derivatives.
    """
    room = vote_room(model)
    n_groups, n_nu = len(model.theta), len(model.levels.nu)
    for s in range(lo, hi):
        by_level[s] = 0.0
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        if first == last or active[s, 0] == 0:
            continue
        levels = active_levels(active[s])
        posterior, log_likelihood = state_posterior(
            room, block, first, last, favoured[s], covariates, model, levels
        )
        totals[0] += log_likelihood
        by = marginals(posterior)
        for g in range(len(levels.group)):
            group_count[levels.group[g]] += by[0][g]
            by_level[s, levels.group[g]] = by[0][g]
        for j in range(len(levels.beta)):
            totals[1] += by[1][j] * math.log(model.levels.beta[levels.beta[j]])
        for t in range(len(levels.nu)):
            nu_count[levels.nu[t]] += by[2][t]
            by_level[s, n_groups + levels.nu[t]] = by[2][t]
        for k in range(len(levels.behavior)):
            behavior_count[levels.behavior[k]] += by[3][k]
            by_level[s, n_groups + n_nu + levels.behavior[k]] = by[3][k]
        add_derivatives(
            block, s, favoured[s], pair, covariates, model, levels, room, posterior,
            max(prune, LIKELY), gradient, curvature, cross, offset_gradient, offset_curvature,
        )  # fmt: skip
        if prune > 0.0:
            keep_likely(active[s], levels, by, prune)


@compiled
def add_counts(
    block: Any, lo: int, hi: int, by_level: Floats, ratio: Floats, n_levels: Codes, counts: Floats
) -> None:
    """Add up the expected counts of levels if their prior probabilities are multiplied by ``ratio``.

    ``n_levels`` has the numbers of groups, tie rates and behaviors. Each of these is multiplied by
    itself, as if the ratios of the others were 1.
    """
    for s in range(lo, hi):
        if block.annotator_ptr[s] == block.annotator_ptr[s + 1]:
            continue  # a sample has many annotators without comparisons
        first = 0
        for n in n_levels:
            total = 0.0
            for i in range(first, first + n):
                total += by_level[s, i] * ratio[i]
            if total > 0.0:
                for i in range(first, first + n):
                    counts[i] += by_level[s, i] * ratio[i] / total
            first += n


@compiled
def prune_states(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    covariates: Floats,
    model: PairModel,
    prune: float,
    n_votes: int,
) -> None:
    """Make levels inactive whose posterior probability after ``n_votes`` votes is below ``prune``."""
    room = vote_room(model)
    for s in range(lo, hi):
        first = block.annotator_ptr[s]
        last = min(first + n_votes, block.annotator_ptr[s + 1])
        levels = active_levels(active[s])
        posterior, _ = state_posterior(
            room, block, first, last, favoured[s], covariates, model, levels
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
