"""Coverage of 95% intervals of reliability and score, on old and on new kinds of crowds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from annotruth.paper.measures import Measured
from annotruth.paper.tables import mean_with_error
from benchmarks.honesty.new_crowds import NEW_CROWDS, CrowdTruth
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure, fit_model
from benchmarks.panel import intervals
from benchmarks.panel.intervals import covered
from benchmarks.panel.tables import Case

DEFAULT_RUNS = 100
COVERAGE = Target(0.93, 0.97)

CoverageRun = Callable[[int], Measured]
"""From a seed to the coverage and mean width of the intervals of one fit."""


def coverage(options: PartOptions) -> list[PartTable]:
    """Measure the coverage of intervals on the crowds of the panel and on eight new kinds."""
    runs = options.runs_or(DEFAULT_RUNS)
    description = (
        f"Share of true values within 95% intervals (target {COVERAGE}), mean over {runs} runs and "
        "its standard error, and mean width. The reliability is an annotator's probability of a "
        "serious label; the score is the expectation of an item's serious labels."
    )
    groups = {
        f"Coverage, crowds of the panel: {options.model}": _panel_runs(options.model),
        f"Coverage, new kinds of crowds: {options.model}": _new_runs(options.model),
    }
    seeds = range(options.seed, options.seed + runs)
    return [
        PartTable(
            title=title,
            description=description,
            heads=("crowd",),
            columns=("reliability", "±", "width", "score", "±", "width"),
            rows=[((name,), _figures([run(seed) for seed in seeds])) for name, run in group],
        )
        for title, group in groups.items()
    ]


def _panel_runs(model: str) -> Iterator[tuple[str, CoverageRun]]:
    (table,) = intervals.tables()
    for case in table.cases:
        yield ", ".join(case.cells), partial(_panel_run, case, model)


def _new_runs(model: str) -> Iterator[tuple[str, CoverageRun]]:
    for name, make in NEW_CROWDS.items():
        yield name, partial(_new_run, make, model)


def _panel_run(case: Case, model: str, seed: int) -> Measured:
    return case.trial(seed)(model)


def _new_run(make: Callable[[int], CrowdTruth], model: str, seed: int) -> Measured:
    return measure_coverage(make(seed), model)


def measure_coverage(crowd: CrowdTruth, model: str) -> Measured:
    """Return coverage and width of the intervals that the model has."""
    fit = fit_model(crowd.labels, model)
    measured: Measured = {}
    if fit.low is not None and fit.high is not None:
        measured |= covered("reliability", crowd.reliability, fit.low, fit.high)
    low, high = (fit.item_columns.get(name) for name in ("score_low", "score_high"))
    if crowd.score is not None and low is not None and high is not None:
        measured |= covered("score", crowd.score, low, high)
    return measured


def _figures(results: Sequence[Measured]) -> list[TargetFigure | str]:
    figures: list[TargetFigure | str] = []
    for name in ("reliability", "score"):
        share = mean_with_error([run.get(name) for run in results])
        width = mean_with_error([run.get(f"{name}_width") for run in results])
        if share.mean is None or width.mean is None:
            figures += ["", "", ""]
            continue
        error = "" if share.error is None else f"{share.error:.4f}"
        figures += [TargetFigure(share.mean, COVERAGE, 4), error, TargetFigure(width.mean)]
    return figures
