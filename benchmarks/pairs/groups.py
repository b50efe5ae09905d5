"""Taste groups: who belongs where, and how often one consensus is chosen where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth import simulate
from annotruth.kernels.arrays import Codes
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.registry import get_pair_model
from annotruth.paper.tables import mean_with_error
from annotruth.selection.choose import choose_n_groups
from annotruth.simulate import ComparisonSimulation
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure
from benchmarks.pairs.fits import fit_votes

DEFAULT_RUNS = 100
SPREAD = 1.0  # of the scores
DEFAULT_CONSENSUS_RUNS = 100
REVERSED = (0.3, 0.4, 0.5)
BEHIND_ORACLE = Target(high=0.03)
CONSENSUS = Target(low=0.95)


def groups(options: PartOptions) -> list[PartTable]:
    """Measure the assignment to two taste groups beside that of an oracle who knows the scores."""
    seeds = range(options.seed, options.seed + options.runs_or(DEFAULT_RUNS))
    rows = []
    for share in REVERSED:
        right, oracle = [], []
        for seed in seeds:
            made = two_groups(share, seed)
            fit = fit_votes(made.comparisons, options.model, n_groups=2)
            right.append(assigned_right(made.group, np.asarray(fit.annotator_columns["group"])))
            oracle.append(float(np.mean(oracle_group(made) == made.group)))
        behind = mean_with_error(np.subtract(oracle, right).tolist())
        figures = [
            TargetFigure(float(np.mean(right))),
            TargetFigure(float(np.mean(oracle))),
            TargetFigure(behind.mean or 0.0, BEHIND_ORACLE),
            TargetFigure(behind.error or 0.0),
        ]
        rows.append(((f"{share:.0%}",), figures))
    description = (
        f"50 + 50 annotators with 40 votes each on 30 items: share assigned to their own group, mean "
        f"over {len(seeds)} seeds. The oracle assigns by the posterior with the true scores, "
        "sharpness and reliability; differences are paired, with their standard error."
    )
    columns = (options.model, "oracle", "behind", "±")
    return [PartTable("Taste groups", description, ("items reversed",), columns, rows)]


def consensus(options: PartOptions) -> list[PartTable]:
    """Count how often one consensus is chosen, in crowds with one and in crowds with two tastes."""
    runs = options.runs_or(DEFAULT_CONSENSUS_RUNS)
    estimator = get_pair_model(options.model)()
    rows = []
    crowds: dict[str, dict[str, Any]] = {
        "20% spammers": {"spammer_share": 0.2},
        "unequal sharpness": {"spammer_share": 0.0, "sharpness_spread": 0.5},
        "20% spammers, unequal sharpness": {"spammer_share": 0.2, "sharpness_spread": 0.5},
        "two tastes, 40% reversed": {"spammer_share": 0.0, "n_groups": 2},
    }
    for n, (name, kind) in enumerate(crowds.items()):
        # The runs are shared out among the crowds with one consensus.
        seeds = range(options.seed + n, options.seed + runs, len(crowds) - 1)
        chosen = []
        for seed in seeds:
            made = simulate.comparers(n_annotators=100, score_spread=SPREAD, seed=seed, **kind)
            chosen.append(choose_n_groups(estimator, made.comparisons).n_groups)
        share = float(np.mean(np.array(chosen) == 1))
        target = Target(high=0.05) if "n_groups" in kind else CONSENSUS
        figures = [TargetFigure(len(chosen), digits=0), TargetFigure(share, target)]
        rows.append(((name,), [*figures, TargetFigure(float(np.mean(chosen)), digits=2)]))
    description = (
        "100 annotators with 40 votes each on 30 items: in what share of the crowds one consensus "
        "(K = 1) is chosen by held-out likelihood, and the mean number of groups chosen."
    )
    columns = ("crowds", "K = 1", "mean K")
    return [PartTable("Number of taste groups", description, ("crowd",), columns, rows)]


def two_groups(share: float, seed: int) -> ComparisonSimulation:
    """Return 50 + 50 annotators, between whose groups a share of the items is reversed."""
    return simulate.comparers(
        n_annotators=100,
        spammer_share=0.0,
        score_spread=SPREAD,
        n_groups=2,
        reversed_share=share,
        seed=seed,
    )


def oracle_group(made: ComparisonSimulation) -> Codes:
    """Return each annotator's most probable group, given the true scores and parameters."""
    data = made.comparisons
    annotator = data.annotator_of_comparison()
    serious = made.reliability[annotator]
    log_p = []
    for score in made.scores:
        d = made.sharpness[annotator] * (score[data.left] - score[data.right])
        p = BradleyTerry.probabilities(d, None)[np.arange(data.n_comparisons), data.outcome]
        log_p.append(np.bincount(annotator, np.log(serious * p + (1.0 - serious) / 2.0)))
    best: Codes = np.argmax(log_p, axis=0)
    return best


def assigned_right(true: Codes, assigned: Codes) -> float:
    """Return the share of annotators in their own group, for the better naming of two groups."""
    same = float(np.mean((assigned == assigned.min()) == (true == 0)))
    return max(same, 1.0 - same)
