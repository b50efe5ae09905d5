"""Taste groups: where their scores start.

Annotators of one taste deviate from the consensus in the same direction. Their votes less what the
consensus expects, added up by item, are projected on the leading singular vectors, where k-means finds
groups. Estimation ends in a local optimum, so the best of several starts after some rounds is continued.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.pairs.chance import deviations_by_item, leading_directions
from annotruth.models.pairs.pair_gpm.estimation import PairEstimate, one_round, start_estimate
from annotruth.models.pairs.pair_gpm.votes import PairVotes, Passes
from annotruth.observations.pairs.table import LEFT, TIE, Comparisons

_N_STARTS = 6
_ROUNDS_PER_START = 4
_SITES_PER_START = 8
_MEMBER = 0.9  # the probability of a start's group
_KMEANS_STEPS = 30


def start_with_groups(votes: PairVotes, passes: Passes, n_groups: int, seed: int) -> PairEstimate:
    """Return an estimate in which groups of annotators have scores of their own."""
    consensus = start_estimate(votes, passes)
    consensus.iterate(_SITES_PER_START)
    rng = np.random.default_rng(seed)
    coordinates = _deviations(votes.data, consensus.groups[0].theta, n_groups, rng)
    starts = _distinct([_k_means(coordinates, n_groups, rng) for _ in range(_N_STARTS)])
    best: PairEstimate | None = None
    for member in starts:
        now = start_estimate(votes, passes, n_groups)
        other = (1.0 - _MEMBER) / max(n_groups - 1, 1)
        p_member = np.where(member == np.arange(n_groups)[:, np.newaxis], _MEMBER, other)
        now.states.p_level *= n_groups * p_member[:, :, np.newaxis]
        now.iterate(_SITES_PER_START)
        for number in range(_ROUNDS_PER_START):
            one_round(now, number)
        if best is None or now.history[-1] > best.history[-1]:
            best = now
    assert best is not None
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
