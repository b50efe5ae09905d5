"""Held-out log-likelihood per vote, paired on the same splits."""

from __future__ import annotations

import numpy as np

from annotruth.models.pairs.registry import get_pair_model
from annotruth.selection.heldout import assign_folds, score_folds
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure
from benchmarks.pairs.fits import compared
from benchmarks.pairs.sets import load_set

DEFAULT_RUNS = 3
AHEAD = {"pairs-llmfao": 0.095, "pairs-lightfield": 0.014, "pairs-passage": 0.010}
"""By how much the log-likelihood per vote should be above Bradley-Terry's."""


def held_out(options: PartOptions) -> list[PartTable]:
    """Compare a model with Bradley-Terry and CrowdBT on votes that they were not fitted to."""
    seeds = range(options.seed, options.seed + options.runs_or(DEFAULT_RUNS))
    names = compared(options.model)
    rows = []
    for set_name, goal in AHEAD.items():
        data = load_set(options.data() / set_name)
        scores: dict[str, list[float]] = {name: [] for name in names}
        errors = []
        for seed in seeds:
            fold = assign_folds(data, 5, seed)
            results = {n: score_folds(get_pair_model(n)(), data, fold) for n in names}
            for name, result in results.items():
                scores[name].append(result.score)
            errors.append(results[options.model].ahead_of(results[names[0]])[1])
        mean = {name: float(np.mean(values)) for name, values in scores.items()}
        ahead = mean[options.model] - mean[names[0]]
        figures = [TargetFigure(mean[name], digits=4) for name in names]
        figures += [
            TargetFigure(ahead, Target(low=goal), 4),
            TargetFigure(float(np.mean(errors)), digits=4),
        ]
        if "crowd-bt" in mean:
            figures.append(
                TargetFigure(ahead - (mean["crowd-bt"] - mean[names[0]]), Target(low=0.0), 4)
            )
        rows.append(((set_name,), figures))
    columns = (
        *names,
        f"ahead of {names[0]}",
        "±",
        *(["ahead of crowd-bt"] if "crowd-bt" in names else []),
    )
    description = (
        f"Log-likelihood per vote in nats, 5 folds, mean over {len(seeds)} seeds; differences are "
        "paired, with the standard error clustered by annotator and pair."
    )
    return [PartTable("Held-out votes", description, ("set",), columns, rows)]
