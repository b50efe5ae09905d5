"""NumPy twins of `annotruth.kernels.pairs.gpm_information`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.levels import LIKELY, PairModel
from annotruth.kernels.reference.pairs.gpm_states import (
    HALF_SIGN,
    slopes,
    state_posterior,
    votes_of,
)


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
    """Add up the observed information of the scores and the offsets (Louis, 1982)."""
    levels = model.levels
    n_groups, n_items = model.theta.shape
    for s in range(lo, hi):
        if block.annotator_ptr[s] == block.annotator_ptr[s + 1] or active[s, 0] == 0:
            continue
        votes = votes_of(block, s, favoured, covariates, model)
        posterior, _ = state_posterior(votes, active[s], levels)
        posterior = np.where(posterior >= LIKELY, posterior, 0.0)
        slope, serious, inverted = slopes(votes, levels)
        own = HALF_SIGN[votes.outcome].reshape(-1, 1, 1, 1, 1)
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
