"""Where estimation starts: a second time, or from a sample of many votes.

Estimation ends in a local optimum, which a second start may find to be another. Of many votes, what is common
to the crowd comes from a sample of annotators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes
from annotruth.models.em import Progress, ProgressCallback
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.graph import sums_at
from annotruth.models.pairs.pair_gpm.estimation import (
    PairEstimate,
    estimate,
    finish,
    start_estimate,
    update_scale,
)
from annotruth.models.pairs.pair_gpm.scores import Prior
from annotruth.models.pairs.pair_gpm.votes import PairVotes, make_votes
from annotruth.models.pairs.passes import Passes
from annotruth.observations.encode import id_ranks
from annotruth.observations.pairs.table import Comparisons
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
    agreed = chosen * np.sign(plain.left_out.mean)
    agreement = sums_at(first.votes.annotator, agreed, len(n_votes)) / n_votes
    now.states.p_class[agreement < np.median(agreement), 0] = _TRIMMED
    return now


def better_estimate(first: PairEstimate, other: PairEstimate) -> PairEstimate:
    """Return the estimate with the higher log-likelihood.

    Where nearly as many annotators are inverted as are not, the votes may be more likely with all
    scores mirrored; an order that is the reverse of the one of the first start is not taken.
    """
    same_order = float(first.scores.theta @ other.scores.theta) > 0.0
    better = other.states.log_likelihood > first.states.log_likelihood
    return other if better and same_order else first


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
    small = start_estimate(drawn, drawn.passes(reference=passes.reference))
    estimate(small, tol=_SAMPLE_TOL, max_rounds=_SAMPLE_ROUNDS)
    now = start_estimate(votes, passes)
    now.is_large = True
    now.prior = Prior(small.prior.precision, 0.0)
    states, crowd = now.states, small.states.crowd
    states.crowd = crowd
    states.habits.side[:], states.habits.tie[:] = crowd.habits.side, crowd.habits.tie
    now.plain = BradleyTerry().fit(votes.data).result_.scores.mean
    scores, of_sample = now.scores, small.scores.theta
    scores.start_at(now.plain, now.outcomes, states.voters())
    slope = float(now.plain @ of_sample) / max(float(now.plain @ now.plain), 1e-300)
    scores.rescale(float(np.clip(slope, 1.0 / _MOST_RESCALED, _MOST_RESCALED)))
    scores.solve(now.prior)
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
