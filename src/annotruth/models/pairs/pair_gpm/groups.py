"""Taste groups: where their scores start.

Annotators of one taste deviate from the consensus in the same direction. Their votes less what the
consensus expects, added up by item, are projected on the leading singular vectors, where k-means finds
groups; Bradley and Terry's model of each group's votes is a start. EM ends in a local optimum, so the
best of several starts after some steps is continued.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import LEFT, TIE, Comparisons
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.directions import deviations_by_item, leading_directions
from annotruth.models.pairs.pair_gpm.parameters import PairGPMParameters
from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps

_N_STARTS = 6
_STEPS_PER_START = 8
_KMEANS_STEPS = 30


def split_into_groups(
    steps: PairGPMSteps, parameters: PairGPMParameters, seed: int
) -> PairGPMParameters:
    """Return parameters in which groups of annotators have scores of their own.

    ``parameters`` has the scores of the consensus in every group.
    """
    data, n_groups = steps.data, len(parameters.group)
    rng = np.random.default_rng(seed)
    coordinates = _deviations(data, parameters.theta[0], n_groups, rng)
    best, best_objective = parameters, -np.inf
    for member in _distinct([_k_means(coordinates, n_groups, rng) for _ in range(_N_STARTS)]):
        theta = [_scores_of(data, member == group) for group in range(n_groups)]
        current = parameters._replace(theta=np.stack(theta))
        steps.consider_all_states()
        for _ in range(_STEPS_PER_START):
            current, monitor = steps.step(current)
        if monitor.objective > best_objective:
            best, best_objective = current, monitor.objective
    steps.consider_all_states()
    return best


def _deviations(
    data: Comparisons, theta: Floats, n_groups: int, rng: np.random.Generator
) -> Floats:
    """Return each annotator's deviations from the consensus: annotators x leading directions."""
    won = np.where(data.outcome == TIE, 0.5, data.outcome == LEFT)
    deviation = won - 1.0 / (1.0 + np.exp(theta[data.right] - theta[data.left]))
    matrix = deviations_by_item(data, deviation)
    directions = leading_directions(matrix, n_groups, rng)
    n_votes = np.maximum(data.comparisons_per_annotator, 1)
    projected: Floats = (matrix @ directions) / np.sqrt(n_votes)[:, np.newaxis]
    return projected


def _k_means(points: Floats, n_groups: int, rng: np.random.Generator) -> Codes:
    """Return the group of each point after Lloyd's iterations from a random start."""
    center = points[rng.choice(len(points), n_groups, replace=len(points) < n_groups)]
    member = np.zeros(len(points), dtype=np.int64)
    for _ in range(_KMEANS_STEPS):
        distance = ((points[:, np.newaxis] - center) ** 2).sum(axis=2)
        member = distance.argmin(axis=1)
        for group in range(n_groups):
            if (member == group).any():
                center[group] = points[member == group].mean(axis=0)
    return member


def _distinct(assignments: Sequence[Codes]) -> list[Codes]:
    """Return the assignments to groups without repetitions, whatever the numbers of the groups."""
    found: dict[bytes, Codes] = {}
    for member in assignments:
        _, first, number = np.unique(member, return_index=True, return_inverse=True)
        in_order_of_appearance = np.argsort(np.argsort(first))[number]
        found.setdefault(in_order_of_appearance.tobytes(), member)
    return list(found.values())


def _scores_of(data: Comparisons, members: NDArray[np.bool_]) -> Floats:
    """Return the scores that Bradley and Terry's model estimates from some annotators' votes."""
    kept = members[data.annotator_of_comparison()]
    if not kept.any():
        return np.zeros(data.n_items)
    return BradleyTerry().fit(data.subset(kept)).result_.scores.mean
