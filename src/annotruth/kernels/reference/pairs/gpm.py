"""NumPy twins of `annotruth.kernels.pairs.gpm`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.levels import LIKELY, PairModel
from annotruth.kernels.reference.pairs.gpm_states import (
    likely_levels,
    marginals,
    slopes,
    state_posterior,
    votes_of,
)


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
    """Add up the gradient and the expected curvature of the log-likelihood, and expected counts."""
    levels = model.levels
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        by_level[s] = 0.0
        if first == last or active[s, 0] == 0:
            continue
        votes = votes_of(block, s, favoured, covariates, model)
        posterior, log_likelihood = state_posterior(votes, active[s], levels)
        by = marginals(posterior)
        group_count += by[0]
        nu_count += by[2]
        behavior_count += by[3]
        by_level[s] = np.concatenate([by[0], by[2], by[3]])
        totals[0] += log_likelihood
        totals[1] += by[1] @ np.log(levels.beta)

        posterior = np.where(posterior > max(prune, LIKELY), posterior, 0.0)
        slope, serious, inverted = slopes(votes, levels)
        by_sharpness = (posterior * slope).sum(axis=(3, 4))  # comparison, group, sharpness
        curves = (posterior * (serious + inverted) * votes.variance[..., np.newaxis]).sum(
            axis=(3, 4)
        )
        beta_slope, beta_curve = by_sharpness @ levels.beta, curves @ levels.beta
        np.add.at(gradient.T, votes.left, beta_slope)
        np.add.at(gradient.T, votes.right, -beta_slope)
        np.add.at(curvature.T, pair[first:last], curves @ levels.beta**2)
        by_offset = beta_curve[:, :, np.newaxis] * votes.x[:, np.newaxis]
        np.add.at(cross.transpose(1, 0, 2), votes.left, by_offset)
        np.add.at(cross.transpose(1, 0, 2), votes.right, -by_offset)
        offset_gradient += by_sharpness.sum(axis=(1, 2)) @ votes.x
        offset_curvature += (votes.x * curves.sum(axis=(1, 2))[:, np.newaxis]).T @ votes.x
        if prune > 0.0:
            active[s] = likely_levels(by, active[s], prune)


def add_counts(
    block: Any, lo: int, hi: int, by_level: Floats, ratio: Floats, n_levels: Codes, counts: Floats
) -> None:
    """Add up the expected counts of levels if their prior probabilities are multiplied by ``ratio``."""
    scaled = by_level[lo:hi] * ratio
    scaled = scaled[scaled.any(axis=1)]
    parts = np.split(scaled, np.cumsum(n_levels)[:-1], axis=1)
    shares = [part / part.sum(axis=1, keepdims=True) for part in parts]
    counts += np.concatenate(shares, axis=1).sum(axis=0)


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
    for s in range(lo, hi):
        votes = votes_of(block, s, favoured, covariates, model, n_votes)
        posterior, _ = state_posterior(votes, active[s], model.levels)
        active[s] = likely_levels(marginals(posterior), active[s], prune)


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
