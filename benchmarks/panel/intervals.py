"""Whether 95% intervals hold the truth 95% of the time, in simulated crowds."""

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
from benchmarks.panel.parts import Case, Part, Trial, trial_on

BEHAVIORS = ("random", "repeated", "inverted", "mixed")
SPARSE = {
    "300 x 60, 3 labels": {"n_items": 300, "n_annotators": 60, "labels_per_item": 3},
    "600 x 40, 4 labels": {"n_items": 600, "n_annotators": 40, "labels_per_item": 4},
    "150 x 10, all": {"n_annotators": 10},
}
GAUSSIAN = "continuous scores"


def parts() -> list[Part]:
    cases = [
        Case((behavior, f"150 x 25, {'all' if few is None else f'{few} labels'}"), trial)
        for few in (None, 5)
        for behavior in BEHAVIORS
        for trial in (partial(_crowd, behavior, {"labels_per_item": few, "mixing": "annotator"}),)
    ]
    cases += [
        Case(("mixed", name), partial(_crowd, "mixed", size)) for name, size in SPARSE.items()
    ]
    return [
        Part(
            title="(g) Intervals",
            about=(
                "The share of true values within 95% intervals, and the intervals' mean width: of "
                "annotators' reliabilities and items' scores, then how often the true leading "
                "category is among those that may lead, and how many these are. Items x "
                "annotators, and labels an item. With continuous scores the true score is the "
                "mean of serious votes, which the ends of the scale draw inward."
            ),
            heads=("behavior", "labels"),
            measures=(
                Measure("reliability", "reliability"),
                Measure("reliability_width", "width", "lower"),
                Measure("score", "score"),
                Measure("score_width", "width", "lower"),
                Measure("leader", "leader"),
                Measure("leaders", "may lead", "lower"),
            ),
            cases=(*cases, Case(("mixed", GAUSSIAN), _gaussian)),
        )
    ]


def _crowd(behavior: str, size: dict[str, Any], seed: int) -> Trial:
    made = simulate.crowd(behavior=behavior, seed=seed, **size)
    return trial_on(made.labels, partial(_coverage, made, made.score, made.label))


def _gaussian(seed: int) -> Trial:
    made = simulate.gaussian(seed=seed)
    return trial_on(made.labels, partial(_coverage, made, _mean_vote(made.score, 5), None))


def _mean_vote(score: Floats, n_categories: int) -> Floats:
    """Average the nearest category over the noise: precisions are Gamma(10, 5), so a Student t."""
    edges = np.arange(1.5, n_categories)
    above = stats.t.sf((edges - score[:, np.newaxis]) / np.sqrt(5 / 10), df=20)
    votes: Floats = 1.0 + above.sum(axis=1)
    return votes


def _coverage(made: Simulation, score: Floats, leader: Codes | None, fit: Fit) -> Measured:
    found: Measured = {}
    if fit.low is not None and fit.high is not None:
        found |= _held("reliability", made.reliability, fit.low, fit.high)
    items = fit.item_columns
    if "score_low" in items:
        found |= _held("score", score, items["score_low"], items["score_high"])
    if leader is not None and "may_lead" in items:
        sets = [told.split("|") for told in items["may_lead"].to_pylist()]
        names = [fit.data.scale.names[n] for n in leader]
        found["leader"] = float(np.mean([n in s for n, s in zip(names, sets, strict=True)]))
        found["leaders"] = float(np.mean([len(s) for s in sets]))
    return found


def _held(name: str, truth: Floats, low: Any, high: Any) -> Measured:
    return {
        name: float(((low <= truth) & (truth <= high)).mean()),
        f"{name}_width": float((high - low).mean()),
    }
