"""Estimation from many votes: what is common to the crowd comes from a sample of annotators."""

from __future__ import annotations

from annotruth.models.em import Progress, ProgressCallback
from annotruth.models.pairs.pair_gpm.estimation import Estimate, estimate, finish, start_estimate
from annotruth.models.pairs.pair_gpm.passes import Passes
from annotruth.models.pairs.pair_gpm.sample import sample_votes
from annotruth.models.pairs.pair_gpm.scores import Prior
from annotruth.models.pairs.pair_gpm.votes import PairVotes, make_votes

LARGE = 400_000
"""Comparisons without contexts; with more, the crowd is estimated from a sample."""

_SAMPLE = 40_000
_SAMPLE_TOL, _SAMPLE_ROUNDS = 0.01, 20
_FIRST_SITES, _SITES = 6, 3
_FIRST_HABITS = 3


def estimate_large(
    votes: PairVotes, passes: Passes, package: str, seed: int, progress: ProgressCallback | None
) -> Estimate:
    """Return an estimate: one round over all votes, with the crowd of a sample of the annotators."""
    of_sample = make_votes(sample_votes(votes.data, _SAMPLE, seed))
    small = start_estimate(of_sample, Passes(of_sample, package))
    estimate(small, tol=_SAMPLE_TOL, max_rounds=_SAMPLE_ROUNDS)
    now = start_estimate(votes, passes)
    now.prior = Prior(small.prior.precision, 0.0)
    now.states.crowd = small.states.crowd
    now.states.side[:], now.states.tie[:] = (
        small.states.crowd.habits.side,
        small.states.crowd.habits.tie,
    )
    now.iterate(_FIRST_SITES)
    now.leave_out()
    now.states.evaluate(now.outcomes, passes, now.left_out, n_steps=1)
    now.states.choose_levels()
    now.states.evaluate(now.outcomes, passes, now.left_out, n_steps=_FIRST_HABITS - 1)
    now.states.update(now.outcomes)
    now.history.append(now.states.log_likelihood)
    if progress is not None:
        progress(Progress(1, 2, now.history[-1], 1.0))
    now.iterate(_SITES)
    finish(now)
    now.history.append(now.states.log_likelihood)
    now.converged = True
    return now
