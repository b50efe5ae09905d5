"""Passes of PairGPM with its final parameters: results about annotators, and predictions.

`annotruth.kernels.pairs.gpm` has the equations. NumPy twins: `annotruth.kernels.reference.pairs.gpm_results`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled, compiled_in_any_order
from annotruth.kernels.pairs.gpm_derivatives import set_shares
from annotruth.kernels.pairs.gpm_states import (
    active_levels,
    marginals,
    multiply_prior,
    state_posterior,
)
from annotruth.kernels.pairs.gpm_votes import (
    BLOCK,
    GAP,
    INVERSE,
    OWN,
    SERIOUS,
    TOTAL,
    VoteRoom,
    any_above,
    any_inverted,
    davidson,
    half_sign,
    kind,
    moments,
    offset_of,
    root_odds,
    set_odds,
    set_probabilities,
    set_votes,
    vote_room,
)
from annotruth.kernels.pairs.levels import LIKELY, ActiveLevels, PairModel, StateLevels


@compiled
def posteriors(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    covariates: Floats,
    by_group: Floats,
    by_beta: Floats,
    by_nu: Floats,
    by_behavior: Floats,
    given_scores: Floats,
    evidence: Floats,
    p_serious: Floats,
    model: PairModel,
    beta_ratio: Floats,
    behavior_ratio: Floats,
    totals: Floats,
) -> None:
    """Set each annotator's posterior of groups, sharpness, tie rates and behaviors, and evidence.

    ``given_scores`` is the posterior of behaviors if the prior probabilities of the levels of
    sharpness and of the behaviors are multiplied by ``beta_ratio`` and ``behavior_ratio``; evidence
    and ``p_serious`` are of that posterior. ``evidence`` has pairs of an observed and an expected
    number: votes for the left item, ties, and votes for the item with the higher score, each expected
    of a serious annotator; then the votes for the favoured item, and how often it was shown.
    ``p_serious`` is the probability that each comparison was serious. ``totals`` gets the
    log-likelihood, before the priors are multiplied.
    """
    room = vote_room(model)
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        levels = active_levels(active[s])
        posterior, log_likelihood = state_posterior(
            room, block, first, last, favoured[s], covariates, model, levels
        )
        totals[0] += log_likelihood
        by_group[s] = 0.0
        by_beta[s] = 0.0
        by_nu[s] = 0.0
        by_behavior[s] = 0.0
        given_scores[s] = 0.0
        evidence[s] = 0.0
        p_serious[first:last] = 0.0
        by = marginals(posterior)
        by_group[s, levels.group] = by[0]
        by_beta[s, levels.beta] = by[1]
        by_nu[s, levels.nu] = by[2]
        by_behavior[s, levels.behavior] = by[3]
        multiply_prior(posterior, levels, beta_ratio, behavior_ratio)
        given_scores[s, levels.behavior] = marginals(posterior)[3]
        for start in range(first, last, BLOCK):
            end = min(start + BLOCK, last)
            set_votes(room, block, start, end, favoured[s], covariates, model, levels)
            _add_evidence(
                room, end - start, model.levels, levels, posterior, p_serious[start:end],
                evidence[s],
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
    room: VoteRoom,
    n: int,
    levels: StateLevels,
    active: ActiveLevels,
    posterior: Floats,
    p_serious: Floats,
    evidence: Floats,
) -> None:
    """Add what is expected of a serious annotator in n comparisons, and their ``p_serious``."""
    mirror = any_inverted(levels, active.behavior)
    for g in range(len(active.group)):
        for j in range(len(active.beta)):
            is_set = False
            for t in range(len(active.nu)):
                if not any_above(posterior, g, j, t, LIKELY):
                    continue
                if not is_set:
                    set_odds(room, n, g, levels.beta[active.beta[j]])
                    is_set = True
                nu = levels.nu[active.nu[t]]
                set_probabilities(room, n, nu, mirror)
                set_shares(room, n, levels, active.behavior, posterior, g, j, t, LIKELY)
                for i in range(n):
                    p_serious[i] += room.rows[SERIOUS + i]
                _add_expected(room, n, g, nu, posterior[g, j, t].sum(), evidence)


@compiled_in_any_order
def _add_expected(room: VoteRoom, n: int, g: int, nu: float, mass: float, evidence: Floats) -> None:
    """Add the expected votes in n comparisons at one sharpness and tie rate, times a probability."""
    left = 0.0
    tie = 0.0
    agreed = 0.0
    higher = 0.0
    rows, difference = room.rows, room.difference[g]
    for i in range(n):
        inverse = rows[INVERSE + i]
        left += 0.5 * (rows[TOTAL + i] + rows[GAP + i]) * inverse
        tie += inverse
        sign = 1.0 if difference[i] > 0.0 else -1.0
        higher += 0.5 * (rows[TOTAL + i] + sign * rows[GAP + i]) * inverse
        agreed += 1.0 if sign * rows[OWN + i] > 0.0 else 0.0
    evidence[1] += mass * left
    evidence[3] += mass * nu * tie
    evidence[4] += mass * agreed
    evidence[5] += mass * higher


@compiled
def joint_posteriors(
    block: Any,
    lo: int,
    hi: int,
    active: Codes,
    favoured: NDArray[np.int32],
    covariates: Floats,
    joint: Floats,
    model: PairModel,
) -> None:
    """Set each annotator's joint posterior of sharpness and behavior; 0 at levels not active."""
    room = vote_room(model)
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        levels = active_levels(active[s])
        posterior, _ = state_posterior(
            room, block, first, last, favoured[s], covariates, model, levels
        )
        joint[s] = 0.0
        for g in range(len(levels.group)):
            for j in range(len(levels.beta)):
                for t in range(len(levels.nu)):
                    for k in range(len(levels.behavior)):
                        joint[s, levels.beta[j], levels.behavior[k]] += posterior[g, j, t, k]


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
    model: PairModel,
    precision: float,
) -> None:
    """Set each annotator's side bias and the precision of it, by Newton's method.

    It takes the place of gamma, around which it has a normal prior; sharpness, tie rate and group
    are given.
    """
    theta, offsets, _ = model
    for s in range(lo, hi):
        scores = theta[group[s]]
        value = offsets[0]
        information = precision
        for _ in range(20):
            slope = -precision * (value - offsets[0])
            information = precision
            for v in range(block.annotator_ptr[s], block.annotator_ptr[s + 1]):
                d = sharpness[s] * (scores[block.left[v]] - scores[block.right[v]])
                d += offset_of(v, covariates, offsets) - offsets[0] + value
                a = root_odds(d)
                total = a + 1.0 / a + tie[s]
                mean, variance = moments(a, total)
                slope += half_sign(block.outcome[v]) - mean
                information += variance
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
    own_side_bias: Floats,
    covariates: Floats,
    model: PairModel,
    new_ptr: Codes,
    new_left: Codes,
    new_right: Codes,
    new_covariates: Floats,
    probability: Floats,
) -> None:
    """Set the probabilities of left, right and tie of new comparisons, sorted by annotator.

    Each annotator has a side bias of their own in place of gamma.
    """
    theta, offsets, levels = model.theta, model.offsets.copy(), model.levels
    own = PairModel(theta, offsets, levels)
    room = vote_room(model)
    for s in range(lo, hi):
        if new_ptr[s] == new_ptr[s + 1]:
            continue
        offsets[0] = own_side_bias[s]
        considered = active_levels(active[s])
        posterior, _ = state_posterior(
            room, block, block.annotator_ptr[s], block.annotator_ptr[s + 1], favoured[s],
            covariates, own, considered,
        )  # fmt: skip
        groups, betas, nus, behaviors = considered
        mass = posterior.sum(axis=3)
        for g in range(len(groups)):
            for j in range(len(betas)):
                for t in range(len(nus)):
                    if mass[g, j, t] < LIKELY:
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
                        a = root_odds(d + offset_of(v, new_covariates, offsets))
                        for y in range(3):
                            p, mirrored, _ = davidson(y, a, levels.nu[nus[t]])
                            row = kind(y, left, right, favoured[s])
                            probability[v, y] += eps * p + flip * mirrored + chance[row]
