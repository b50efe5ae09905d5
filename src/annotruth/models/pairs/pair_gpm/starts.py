"""Where estimation starts: a second time, with taste groups, or from a sample of many votes.

Estimation ends in a local optimum. Annotators of one taste deviate from the consensus in the same direction:
their votes less what the consensus expects, added up by item, are projected on the leading singular
vectors, where k-means finds groups, and the best of several starts after some rounds is continued. Of many
votes, what is common to the crowd comes from a sample of annotators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import Progress, ProgressCallback
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.chance import deviations_by_item, leading_directions
from annotruth.models.pairs.graph import sums_at
from annotruth.models.pairs.pair_gpm.estimation import (
    PairEstimate,
    estimate,
    finish,
    one_round,
    start_estimate,
    update_scale,
)
from annotruth.models.pairs.pair_gpm.scores import Prior
from annotruth.models.pairs.pair_gpm.votes import PairVotes, Passes, make_votes
from annotruth.observations.encode import id_ranks
from annotruth.observations.pairs.table import LEFT, TIE, Comparisons
from annotruth.observations.pairs.votes import covariates_in_order_of_codes, in_order_of_codes

_SITES_PER_START = 8
_TRIMMED = 0.05  # what annotators count who are left out of a start


def trimmed_start(first: PairEstimate) -> PairEstimate:
    """Return another start: the half that agrees least with all votes counted alike hardly counts."""
    plain, now = (start_estimate(first.votes, first.passes) for _ in range(2))
    plain.iterate(_SITES_PER_START)
    plain.leave_out()
    chosen = np.array([1.0, -1.0, 0.0])[plain.outcomes.outcome]
    n_votes = np.maximum(first.votes.data.comparisons_per_annotator, 1)
    agreed = chosen * np.sign(plain.left_out[0].mean)
    agreement = sums_at(first.votes.annotator, agreed, len(n_votes)) / n_votes
    now.states.p_class[agreement < np.median(agreement), 0] = _TRIMMED
    return now


def better_estimate(first: PairEstimate, other: PairEstimate) -> PairEstimate:
    """Return the estimate with the higher log-likelihood.

    Where nearly as many annotators are inverted as are not, the votes may be more likely with all
    scores mirrored; an order that is the reverse of the one of the first start is not taken.
    """
    same_order = float(first.groups[0].theta @ other.groups[0].theta) > 0.0
    better = other.states.log_likelihood > first.states.log_likelihood
    return other if better and same_order else first


_N_STARTS, _ROUNDS_PER_START = 6, 4
_MEMBER = 0.9  # the probability of a start's group
_KMEANS_STEPS = 30


def start_with_groups(votes: PairVotes, passes: Passes, n_groups: int, seed: int) -> PairEstimate:
    """Return an estimate in which groups of annotators have scores of their own."""
    consensus = start_estimate(votes, passes)
    consensus.iterate(_SITES_PER_START)
    rng = np.random.default_rng(seed)
    coordinates = _deviations(votes.data, consensus.groups[0].theta, n_groups, rng)
    # Sorted, so that names and the order of rows do not matter.
    order = np.lexsort(coordinates.T)
    place = np.argsort(order)
    drawn = [_k_means(coordinates[order], n_groups, rng)[place] for _ in range(_N_STARTS)]
    starts = _distinct(drawn)
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
    matrix = matrix[:, np.argsort(-theta, kind="stable")]  # whatever the order of items was
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


LARGE = 400_000
"""Comparisons without contexts; with more, the crowd is estimated from a sample."""

_SAMPLE, _MOST = 40_000, 100  # votes, and the most of one annotator
_SAMPLE_TOL, _SAMPLE_ROUNDS = 0.01, 12
_SITES = 2
_MOST_RESCALED = 4.0


def estimate_large(
    votes: PairVotes, passes: Passes, seed: int, progress: ProgressCallback | None
) -> PairEstimate:
    """Return an estimate: one round over all votes, with the crowd of a sample of the annotators.

    Scores start from those of Bradley and Terry's model, on the scale of the sample's.
    """
    drawn = make_votes(sample_votes(votes.data, _SAMPLE, seed, _MOST))
    small = start_estimate(drawn, Passes(drawn, reference=passes.reference))
    estimate(small, tol=_SAMPLE_TOL, max_rounds=_SAMPLE_ROUNDS)
    now = start_estimate(votes, passes)
    now.is_large = True
    now.prior = Prior(small.prior.precision, 0.0)
    states, crowd = now.states, small.states.crowd
    states.crowd = crowd
    states.habits.side[:], states.habits.tie[:] = crowd.habits.side, crowd.habits.tie
    now.plain = BradleyTerry().fit(votes.data).result_.scores.mean
    group, of_sample = now.groups[0], small.groups[0].theta
    group.start_at(now.plain, now.outcomes, states.voters(0))
    slope = float(now.plain @ of_sample) / max(float(now.plain @ now.plain), 1e-300)
    group.rescale(float(np.clip(slope, 1.0 / _MOST_RESCALED, _MOST_RESCALED)))
    group.solve(now.prior)
    now.leave_out()
    evaluated = now.evaluated()
    states.evaluate(evaluated.outcomes, passes, evaluated.left_out)
    states.choose_levels()
    states.evaluate(evaluated.outcomes, passes, evaluated.left_out)
    states.update(now.outcomes)
    update_scale(now)
    now.history.append(states.log_likelihood)
    if progress is not None:
        progress(Progress(1, 2, now.history[-1], 1.0))
    finish(now, _SITES)
    now.history.append(states.log_likelihood)
    now.converged = True
    return now


_MAX_SORTED = 1_000_000  # comparisons of one annotator: more take too long to sort


def sample_votes(
    data: Comparisons, n_comparisons: int, seed: int, most: int | None = None
) -> Comparisons:
    """Return the comparisons of annotators drawn at random, about as many as asked for.

    An annotator with more comparisons than ``most`` (or else than that) takes part with as many of
    them, drawn at random from the first million. Otherwise the order of rows does not matter.
    """
    most = n_comparisons if most is None else most
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.permutation(data.n_annotators)[id_ranks(data.annotators)])
    n_votes = np.minimum(data.comparisons_per_annotator, most)[order].cumsum()
    drawn = order[: int(np.searchsorted(n_votes, n_comparisons)) + 1]
    keep = np.zeros(data.n_comparisons, dtype=np.bool_)
    for first, last in zip(data.annotator_ptr[drawn], data.annotator_ptr[drawn + 1], strict=True):
        if last - first <= most:
            keep[first:last] = True
        else:
            votes = slice(first, min(last, first + _MAX_SORTED))
            keep[votes.start + _draw_votes(data, votes, most, rng)] = True
    sample = data.subset(keep)
    return sample.of_annotators(sample.comparisons_per_annotator > 0)


def _draw_votes(data: Comparisons, votes: slice, n: int, rng: np.random.Generator) -> Codes:
    """Return the positions of n of an annotator's comparisons, which are drawn in sorted order."""
    rank = id_ranks(data.items)
    left, right, outcome = rank[data.left[votes]], rank[data.right[votes]], data.outcome[votes]
    covariates = {name: values[votes] for name, values in data.covariates.items()}
    if not data.sides_known:
        covariates = covariates_in_order_of_codes(left, right, covariates)
        left, right, outcome = in_order_of_codes(left, right, outcome)
    keys: list[NDArray[Any]] = [*covariates.values(), outcome, right, left]
    order = np.lexsort(keys)
    drawn: Codes = order[rng.choice(len(order), n, replace=False)]
    return drawn
