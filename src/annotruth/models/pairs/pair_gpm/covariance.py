"""The covariance of PairGPM's scores, and the prior of the scores, which depends on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.models.pairs.graph import MAX_DENSE_ITEMS, center_in_parts
from annotruth.models.pairs.pair_gpm.equations import OFFSET_PRECISION
from annotruth.models.pairs.pair_gpm.parameters import PairGPMParameters
from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps

_MAX_INFORMATION = 2e7  # squared numbers of items per annotator, added up


class ScoreCovariance(NamedTuple):
    """The covariance of the scores, with mean 0 in every part, and that of the offsets.

    Examples
    --------
    >>> few = ScoreCovariance(np.ones((1, 3, 1, 3)), np.ones((1, 1)))
    >>> few.score_variances.shape
    (1, 3)
    """

    scores: Floats  # groups x items x groups x items; of many items the variances, groups x items
    offsets: Floats

    @property
    def score_variances(self) -> Floats:
        """The variances of the scores, groups x items."""
        return np.einsum("gigi->gi", self.scores) if self.scores.ndim == 4 else self.scores


def score_covariance(steps: PairGPMSteps, parameters: PairGPMParameters) -> ScoreCovariance:
    """Return the inverse of the information and that of the priors.

    Where the observed information would take long, it is the expected curvature; if there are
    also too many items for a matrix, without covariances.
    """
    shown = np.minimum(2 * steps.data.comparisons_per_annotator, steps.data.n_items).astype(
        np.float64
    )
    if parameters.theta.size > MAX_DENSE_ITEMS or inner(shown, shown) > _MAX_INFORMATION:
        sums = steps.sums(parameters)
        systems = steps.equations.systems(sums, steps.precision)
        inverses = np.stack([system.centered_inverse for system in systems])
        offsets = _inverse(steps.equations.offset_curvature(sums))
        if inverses.ndim == 2:
            return ScoreCovariance(inverses, offsets)
        blocks = np.zeros(parameters.theta.shape * 2)
        for g, inverse in enumerate(inverses):
            blocks[g, :, g] = inverse
        return ScoreCovariance(blocks, offsets)
    information = steps.information(parameters)
    size = parameters.theta.size
    information[np.diag_indices(size)] += steps.precision
    information[size:, size:] += OFFSET_PRECISION * np.eye(len(parameters.offsets))
    covariance = _inverse(steps.equations.without_sides(information, size))
    # The prior's precision is estimated, too: the variance of its log is about 2 / n.
    move = steps.precision * covariance[:, :size] @ parameters.theta.ravel()
    covariance += np.outer(move, move) * 2.0 / max(steps.n_determined, 2.0)
    return ScoreCovariance(
        _centered(covariance[:size, :size].reshape(*parameters.theta.shape, -1), steps.part),
        covariance[size:, size:],
    )


def prior_covariance(steps: PairGPMSteps, parameters: PairGPMParameters) -> ScoreCovariance:
    """Return the covariance of scores of which only the prior is known, and that of the offsets."""
    n_groups, n_items = shape = parameters.theta.shape
    offsets = _inverse(steps.equations.offset_curvature(steps.sums(parameters)))
    if parameters.theta.size > MAX_DENSE_ITEMS:
        return ScoreCovariance(np.full(shape, 1.0 / steps.precision), offsets)
    scores = np.eye(parameters.theta.size) / steps.precision
    return ScoreCovariance(_centered(scores.reshape(n_groups, n_items, -1), steps.part), offsets)


def _centered(covariance: Floats, part: Codes) -> Floats:
    """Return the covariance of scores with mean 0 in every part; items alone have the prior's."""
    n_groups, n_items, _ = covariance.shape
    blocks = covariance.reshape(n_groups, n_items, n_groups, n_items).copy()
    for g, h in np.ndindex(n_groups, n_groups):
        block = center_in_parts(blocks[g, :, h], part)
        blocks[g, :, h] = center_in_parts(block.T, part).T
    return blocks


def update_prior(steps: PairGPMSteps, parameters: PairGPMParameters) -> float:
    """Set the precision of the scores' prior by the marginal likelihood (MacKay, 1992).

    Returns the absolute change of its logarithm.
    """
    size = parameters.theta.size
    n_free = size - len(parameters.group) * (int(steps.part.max()) + 1)
    trace = score_covariance(steps, parameters).score_variances.sum()
    n_determined = float(np.clip(n_free - steps.precision * trace, 0.0, n_free))
    sums = steps.sums(parameters)
    log_sharpness = sums["totals"][1] / steps.data.counted_annotators()
    square = inner(parameters.theta, parameters.theta) * np.exp(2.0 * log_sharpness)
    new = (1.0 + n_determined) / (1.0 + square)
    change = abs(np.log(new / steps.precision))
    steps.set_prior(float(new), n_determined)
    return float(change)


def _inverse(information: Floats) -> Floats:
    """Return the inverse; components with next to no information have that of the least ridge."""
    values, vectors = np.linalg.eigh(information)
    least = 1e-3 * np.median(np.abs(values))
    inverse: Floats = (vectors / np.maximum(values, least)) @ vectors.T
    return inverse
