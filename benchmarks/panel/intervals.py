"""Coverage of 95% intervals in simulated crowds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from annotruth import simulate
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit
from annotruth.paper.experiment import Measure
from annotruth.paper.measures import Measured
from annotruth.simulate import Simulation
from benchmarks.panel.tables import Case, PanelTable, Trial, trial_on

BEHAVIORS = ("random", "repeated", "inverted", "mixed")
SPARSE = {
    "300 x 60, 3 labels": {"n_items": 300, "n_annotators": 60, "labels_per_item": 3},
    "600 x 40, 4 labels": {"n_items": 600, "n_annotators": 40, "labels_per_item": 4},
    "150 x 10, all": {"n_annotators": 10},
}
GAUSSIAN = "continuous scores"


def tables() -> list[PanelTable]:
    cases = [
        Case((behavior, f"150 x 25, {'all' if per_item is None else f'{per_item} labels'}"), trial)
        for per_item in (None, 5)
        for behavior in BEHAVIORS
        for trial in (
            partial(_crowd, behavior, {"labels_per_item": per_item, "mixing": "annotator"}),
        )
    ]
    cases += [
        Case(("mixed", name), partial(_crowd, "mixed", size)) for name, size in SPARSE.items()
    ]
    return [
        PanelTable(
            title="(g) Intervals",
            description=(
                "Share of true values within 95% intervals and mean width of the intervals: for "
                "annotators' reliabilities and items' scores, then how often the true top label is "
                "among the undecided top labels, and how many these are. Items x annotators, and "
                "labels per item. With continuous scores the true score is the mean of serious "
                "votes, which the ends of the scale shift inward."
            ),
            heads=("behavior", "labels"),
            measures=(
                Measure("reliability", "reliability"),
                Measure("reliability_width", "width", "lower"),
                Measure("score", "score"),
                Measure("score_width", "width", "lower"),
                Measure("leader", "top label"),
                Measure("leaders", "undecided", "lower"),
            ),
            cases=(*cases, Case(("mixed", GAUSSIAN), _gaussian)),
        )
    ]


def _crowd(behavior: str, size: dict[str, Any], seed: int) -> Trial:
    simulation = simulate.crowd(behavior=behavior, seed=seed, **size)
    measure = partial(_coverage, simulation, simulation.score, simulation.label)
    return trial_on(simulation.labels, measure)


def _gaussian(seed: int) -> Trial:
    simulation = simulate.gaussian(seed=seed)
    score = _mean_vote(simulation.score, 5)
    return trial_on(simulation.labels, partial(_coverage, simulation, score, None))


def _mean_vote(score: Floats, n_categories: int) -> Floats:
    """Return the mean of the nearest category; with Gamma(10, 5) precisions noise is Student t."""
    edges = np.arange(1.5, n_categories)
    above = stats.t.sf((edges - score[:, np.newaxis]) / np.sqrt(5 / 10), df=20)
    votes: Floats = 1.0 + above.sum(axis=1)
    return votes


def _coverage(simulation: Simulation, score: Floats, top_label: Codes | None, fit: Fit) -> Measured:
    measured: Measured = {}
    if fit.low is not None and fit.high is not None:
        measured |= covered("reliability", simulation.reliability, fit.low, fit.high)
    items = fit.item_columns
    if "score_low" in items:
        measured |= covered("score", score, items["score_low"], items["score_high"])
    if top_label is not None and "may_lead" in items:
        sets = [text.split("|") for text in np.asarray(items["may_lead"])]
        names = [fit.data.scale.names[n] for n in top_label]
        measured["leader"] = float(np.mean([n in s for n, s in zip(names, sets, strict=True)]))
        measured["leaders"] = float(np.mean([len(s) for s in sets]))
    return measured


def covered(name: str, truth: Floats, low: Any, high: Any) -> Measured:
    """Return the share of true values within intervals, and the mean width of these."""
    return {
        name: float(((low <= truth) & (truth <= high)).mean()),
        f"{name}_width": float((high - low).mean()),
    }
