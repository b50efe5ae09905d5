"""Votes saved by asking as `next_comparisons` advises instead of at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth import simulate
from annotruth.analyses.advice.annotators import NOBODY
from annotruth.analyses.advice.pairs.advice import advise_pairs
from annotruth.kernels.arrays import Codes
from annotruth.metrics import kendall_tau
from annotruth.models.result import RankFit
from annotruth.observations import Comparisons
from annotruth.paper.tables import mean_with_error
from annotruth.simulate import ComparisonSimulation
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure
from benchmarks.pairs.fits import fit_votes

DEFAULT_RUNS = 50
N_ITEMS, N_ANNOTATORS, ROUND, MAX_VOTES = 50, 40, 50, 5000
GOALS = (0.85, 0.9)
SAVED = Target(low=0.40)
# spread of the scores, share of spammers, model, target
CASES = (
    (2.0, 0.0, "bradley-terry", SAVED),
    (2.0, 0.2, None, SAVED),
    (1.5, 0.2, None, None),
    (1.0, 0.2, None, None),
)


class Votes(NamedTuple):
    """Votes that were asked for, in order."""

    left: Codes
    right: Codes
    annotator: Codes
    outcome: Codes

    def plus(self, more: Votes) -> Votes:
        """Return these votes and more."""
        return Votes(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))


def next_votes(options: PartOptions) -> list[PartTable]:
    """Measure how many votes reach a Kendall tau, with random and with advised pairs."""
    seeds = range(options.seed, options.seed + options.runs_or(DEFAULT_RUNS))
    rows = []
    for spread, spammers, named, target in CASES:
        model = named or options.model
        at_random, advised = (
            np.array(
                [votes_needed(model, spread, spammers, seed, advised=is_advised) for seed in seeds]
            )
            for is_advised in (False, True)
        )
        for n, goal in enumerate(GOALS):
            saved = 1.0 - advised[:, n].mean() / at_random[:, n].mean()
            paired = mean_with_error((1.0 - advised[:, n] / at_random[:, n]).tolist())
            figures = [
                TargetFigure(at_random[:, n].mean(), digits=0),
                TargetFigure(advised[:, n].mean(), digits=0),
                TargetFigure(float(saved), target, 3),
                TargetFigure(paired.error or 0.0),
            ]
            rows.append(((model, f"{spread:g}", f"{spammers:.0%}", f"{goal:g}"), figures))
    description = (
        f"{N_ITEMS} items, {N_ANNOTATORS} annotators; after {ROUND} random votes, rounds of {ROUND} votes "
        "on random pairs by random annotators, or as advised, with a fit after each round: mean votes "
        f"over {len(seeds)} seeds until the scores reach a Kendall tau with the true ones, and the "
        f"share saved. At most {MAX_VOTES:,} votes. Spammers vote at random."
    )
    heads = ("model", "spread of scores", "spammers", "tau")
    return [PartTable("Next pairs", description, heads, ("random", "advised", "saved", "±"), rows)]


def votes_needed(
    model: str, spread: float, spammers: float, seed: int, *, advised: bool
) -> list[float]:
    """Return how many votes reach each of `GOALS`, interpolated within a round."""
    crowd = simulate.comparers(
        n_items=N_ITEMS,
        n_annotators=N_ANNOTATORS,
        comparisons_per_annotator=1,
        behavior="random",
        spammer_share=spammers,
        score_spread=spread,
        seed=seed,
    )
    rng = np.random.default_rng([seed, 1])
    votes = random_votes(crowd, rng)
    reached: list[float] = []
    before = -1.0
    while len(reached) < len(GOALS):
        fit = fit_votes(_comparisons(crowd, votes), model)
        now = max(kendall_tau(crowd.scores, fit.scores.mean), before)
        n_votes = len(votes.left)
        for goal in GOALS[len(reached) :]:
            if now >= goal:
                reached.append(n_votes - ROUND * (now - goal) / (now - before))
        if n_votes >= MAX_VOTES:
            reached += [float(MAX_VOTES)] * (len(GOALS) - len(reached))
        before = now
        votes = votes.plus(advised_votes(crowd, fit, rng) if advised else random_votes(crowd, rng))
    return reached


def random_votes(crowd: ComparisonSimulation, rng: np.random.Generator) -> Votes:
    """Return a round of votes on random pairs by random annotators."""
    left = rng.integers(N_ITEMS, size=ROUND)
    right = (left + rng.integers(1, N_ITEMS, size=ROUND)) % N_ITEMS
    return _vote(crowd, left, right, rng.integers(N_ANNOTATORS, size=ROUND), rng)


def advised_votes(crowd: ComparisonSimulation, fit: RankFit, rng: np.random.Generator) -> Votes:
    """Return a round of votes as advised; where nobody is left to ask, anybody votes."""
    advice = advise_pairs(fit, ROUND)
    annotator = np.where(
        advice.assigned == NOBODY, rng.integers(N_ANNOTATORS, size=ROUND), advice.assigned
    )
    return _vote(crowd, advice.left, advice.right, annotator, rng)


def _vote(
    crowd: ComparisonSimulation,
    left: Codes,
    right: Codes,
    annotator: Codes,
    rng: np.random.Generator,
) -> Votes:
    difference = crowd.scores[left] - crowd.scores[right]
    p_left = 1.0 / (1.0 + np.exp(-crowd.sharpness[annotator] * difference))
    serious = rng.random(len(left)) < crowd.reliability[annotator]
    outcome = rng.random(len(left)) >= np.where(serious, p_left, 0.5)
    return Votes(left, right, annotator, outcome.astype(np.int64))


def _comparisons(crowd: ComparisonSimulation, votes: Votes) -> Comparisons:
    data = crowd.comparisons
    return Comparisons.from_codes(*votes, items=data.items, annotators=data.annotators)
