"""Estimation from many votes: what is common to the crowd comes from a sample of annotators."""

from __future__ import annotations

from annotruth.models.em import Progress, ProgressCallback
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.pair_gpm.estimation import (
    PairEstimate,
    estimate,
    finish,
    start_estimate,
)
from annotruth.models.pairs.pair_gpm.passes import Passes
from annotruth.models.pairs.pair_gpm.sample import sample_votes
from annotruth.models.pairs.pair_gpm.scores import Prior
from annotruth.models.pairs.pair_gpm.votes import PairVotes, make_votes

LARGE = 400_000
"""Comparisons without contexts; with more, the crowd is estimated from a sample."""

_SAMPLE, _MOST = 40_000, 100  # votes, and the most of one annotator
_SAMPLE_TOL, _SAMPLE_ROUNDS = 0.01, 12
_SITES = 2
_FIRST_HABITS = 3


def estimate_large(
    votes: PairVotes, passes: Passes, package: str, seed: int, progress: ProgressCallback | None
) -> PairEstimate:
    """Return an estimate: one round over all votes, with the crowd of a sample of the annotators.

    Scores start from those of Bradley and Terry's model.
    """
    of_sample = make_votes(sample_votes(votes.data, _SAMPLE, seed, _MOST))
    small = start_estimate(of_sample, Passes(of_sample, package))
    estimate(small, tol=_SAMPLE_TOL, max_rounds=_SAMPLE_ROUNDS)
    now = start_estimate(votes, passes)
    now.is_large = True
    now.prior = Prior(small.prior.precision, 0.0)
    states, crowd = now.states, small.states.crowd
    states.crowd = crowd
    states.side[:], states.tie[:] = crowd.habits.side, crowd.habits.tie
    scores = BradleyTerry().fit(votes.data).result_.scores.mean
    now.groups[0].start_at(scores, now.outcomes, states.voters(0))
    now.iterate(_SITES - 1)
    now.leave_out()
    evaluated = now.evaluated()
    states.evaluate(evaluated.outcomes, passes, evaluated.left_out)
    states.choose_levels()
    states.evaluate(evaluated.outcomes, passes, evaluated.left_out, n_steps=_FIRST_HABITS - 1)
    states.update(now.outcomes)
    now.history.append(states.log_likelihood)
    if progress is not None:
        progress(Progress(1, 2, now.history[-1], 1.0))
    finish(now, _SITES)
    now.history.append(states.log_likelihood)
    now.converged = True
    return now
