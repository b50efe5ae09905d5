"""NumPy twins of `annotruth.kernels.pairs.gpm_results`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.levels import LIKELY, MAX_LOG_ODDS, PairModel
from annotruth.kernels.reference.pairs.gpm_states import (
    HALF_SIGN,
    make_votes,
    marginals,
    multiply_prior,
    slopes,
    state_posterior,
    votes_of,
)


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
    """Set each annotator's posterior of groups, sharpness, tie rates and behaviors, and evidence."""
    for s in range(lo, hi):
        votes = votes_of(block, s, favoured, covariates, model)
        posterior, log_likelihood = state_posterior(votes, active[s], model.levels)
        totals[0] += log_likelihood
        by_group[s], by_beta[s], by_nu[s], by_behavior[s] = marginals(posterior)
        posterior = multiply_prior(posterior, beta_ratio, behavior_ratio)
        given_scores[s] = marginals(posterior)[3]
        mass = posterior.sum(axis=3)
        _, serious, _ = slopes(votes, model.levels)
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        likely = np.where(posterior > LIKELY, posterior, 0.0)
        p_serious[first:last] = (likely * serious).sum(axis=(1, 2, 3, 4))
        y = votes.outcome
        both = 4.0 * (votes.variance + votes.mean**2)  # of left and of right together
        p_left, p_right = both / 2.0 + votes.mean, both / 2.0 - votes.mean
        higher_left = (model.theta[:, votes.left] > model.theta[:, votes.right]).T[
            :, :, np.newaxis, np.newaxis
        ]
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
    for s in range(lo, hi):
        votes = votes_of(block, s, favoured, covariates, model)
        posterior, _ = state_posterior(votes, active[s], model.levels)
        joint[s] = posterior.sum(axis=(0, 2))


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
    """Set each annotator's side bias and the precision of it, by Newton's method."""
    theta, offsets, _ = model
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
            slope = (HALF_SIGN[block.outcome[of]] - mean).sum() - precision * (value - offsets[0])
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
    own_side_bias: Floats,
    covariates: Floats,
    model: PairModel,
    new_ptr: Codes,
    new_left: Codes,
    new_right: Codes,
    new_covariates: Floats,
    probability: Floats,
) -> None:
    """Set the probabilities of left, right and tie of new comparisons, sorted by annotator."""
    for s in range(lo, hi):
        offsets = np.append(own_side_bias[s], model.offsets[1:])
        own = PairModel(model.theta, offsets, model.levels)
        votes = votes_of(block, s, favoured, covariates, own)
        posterior, _ = state_posterior(votes, active[s], own.levels)
        of = slice(new_ptr[s], new_ptr[s + 1])
        for y in range(3):
            outcome = np.full(len(new_left[of]), y)
            item, x = int(favoured[s]), new_covariates[of]
            new = make_votes(new_left[of], new_right[of], outcome, item, x, own)
            probability[of, y] = (posterior * new.mixed).sum(axis=(1, 2, 3, 4))
