"""Coverage of the 95% intervals of scores and ranks, on simulated crowds with 20% spammers."""

from __future__ import annotations

import numpy as np

from annotruth import simulate
from annotruth.paper.tables import mean_with_error
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure
from benchmarks.pairs.fits import fit_votes

DEFAULT_RUNS = 60
RANKS = Target(low=0.93)
# annotators, votes each, spread of the logarithm of sharpness, target
CROWDS = (
    (100, 40, 0.0, Target(0.93, 0.97)),
    (100, 40, 0.5, Target(0.93, 0.97)),
    (100, 15, 0.0, Target(low=0.92)),
    (100, 15, 0.5, Target(low=0.92)),
    (30, 40, 0.0, Target(low=0.92)),
    (30, 40, 0.5, Target(low=0.92)),
)


def coverage(options: PartOptions) -> list[PartTable]:
    """Measure how often the true scores and ranks lie within their intervals."""
    seeds = range(options.seed, options.seed + options.runs_or(DEFAULT_RUNS))
    rows = []
    for n_annotators, n_votes, sharpness, target in CROWDS:
        scores: list[float] = []
        ranks: list[float] = []
        reference: list[float] = []
        for seed in seeds:
            made = simulate.comparers(
                n_items=30,
                n_annotators=n_annotators,
                comparisons_per_annotator=n_votes,
                sharpness_spread=sharpness,
                seed=seed,
            )
            for model, into in ((options.model, scores), ("bradley-terry", reference)):
                fit = fit_votes(made.comparisons, model)
                low, high = fit.scores.interval.T
                into.append(float(((low <= made.scores) & (made.scores <= high)).mean()))
                if model == options.model:
                    true_rank = 1 + (made.scores > made.scores[:, np.newaxis]).sum(axis=1)
                    low, high = fit.scores.rank_interval.T
                    ranks.append(float(((low <= true_rank) & (true_rank <= high)).mean()))
        of_scores, of_ranks = mean_with_error(scores), mean_with_error(ranks)
        rows.append(
            (
                (str(n_annotators), str(n_votes), f"{sharpness:g}"),
                [
                    TargetFigure(of_scores.mean or 0.0, target),
                    TargetFigure(of_scores.error or 0.0),
                    TargetFigure(of_ranks.mean or 0.0, RANKS),
                    TargetFigure(of_ranks.error or 0.0),
                    TargetFigure(float(np.mean(reference))),
                ],
            )
        )
    description = (
        f"Share of true values within 95% intervals of {options.model}, mean over {len(seeds)} seeds: "
        "30 items with scores of standard deviation 1, 20% of the annotators spammers of mixed "
        "behaviors; the spread is that of the logarithm of sharpness."
    )
    heads = ("annotators", "votes each", "spread")
    columns = ("scores", "±", "ranks", "±", "scores, bradley-terry")
    return [PartTable("Coverage", description, heads, columns, rows)]
