"""`Plan`: how many labels a target needs, by simulating more labels from a fit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from annotruth.analyses.advice.advice import Advice, AdviceBasis, advise, basis_of
from annotruth.analyses.advice.items import share_out
from annotruth.analyses.advice.simulation import simulate
from annotruth.bindings import bound
from annotruth.errors import ComparisonsError, InputError
from annotruth.kernels.arrays import Floats
from annotruth.models.result import Fit
from annotruth.observations.validate import check_option, check_ordinal, check_seed

TARGETS = {
    "accuracy": "share of items whose top label is right",
    "hellinger": "mean Hellinger distance of distributions from the truth",
    "score": "half the width of a score's 95% interval, mean over items",
}

MAX_ADDED = 60
"""How many more labels per item are simulated; a target that needs more is out of reach."""

_RESAMPLES = 200
_ANY_GAIN = 1e-12


@dataclass(frozen=True)
class LabelsNeeded:
    """How many more labels per item a target needs, on average over items.

    Attributes
    ----------
    per_item
        The labels to add; None where `MAX_ADDED` are not enough.
    low, high
        Its 95% interval over items and over labels yet to come; None beyond `MAX_ADDED`.
    reached
        What `MAX_ADDED` labels are expected to reach.
    """

    per_item: float | None
    low: float | None
    high: float | None
    reached: float


@dataclass(frozen=True, eq=False)
class Plan:
    """How many labels a target needs.

    Attributes
    ----------
    target, value
        The target: "accuracy", "hellinger" or "score", and its value.
    now
        What is expected with the labels so far.
    advice
        The advice for the next round, by the same fit.
    evenly
        The labels needed if every item gets equally many, by all annotators as before.
    advised
        The labels needed if they go to the items that gain most, by the annotators to ask.

    Examples
    --------
    >>> import annotruth as at
    >>> made = at.simulate.crowd(n_items=40, n_annotators=12, labels_per_item=4, seed=1)
    >>> plan = at.plan_labels(made.labels, "hellinger", 0.15)
    >>> plan.advised.per_item < plan.evenly.per_item
    True
    """

    target: str
    value: float
    now: float
    advice: Advice
    evenly: LabelsNeeded
    advised: LabelsNeeded

    def __repr__(self) -> str:
        return f"Plan({self.target} {self.value:g}: {self._describe(self.advised)})"

    def _repr_html_(self) -> str:
        return str(bound("Plan.notebook")(self))

    def total_labels(self, needed: LabelsNeeded) -> int | None:
        """Return how many labels there will be in total; None where the target is out of reach."""
        data = self.advice.fit.data
        if needed.per_item is None:
            return None
        return data.n_labels + math.ceil(needed.per_item * data.n_items)

    def summary(self) -> str:
        """Return the plan in a few lines."""
        data = self.advice.fit.data
        *warning, _ = self.advice.fit.heading_lines()
        lines = [
            *warning,
            f"target: {self.target} {self.value:g} ({TARGETS[self.target]})",
            f"now: {self.now:.3f} expected, {data.n_labels / data.n_items:.1f} labels per item",
            f"evenly, by all annotators: {self._describe(self.evenly)}",
            f"where they gain most, by the annotators to ask: {self._describe(self.advised)}",
        ]
        if self.advised.per_item == 0.0:
            return "\n".join([*lines, "next round: this target needs no more labels"])
        if self.evenly.per_item is None and self.advised.per_item is None:
            lines.append(
                "these annotators cannot reach it: find more reliable ones, or lower the target"
            )
        return "\n".join([*lines, "next round:", *self.advice.lines()])

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as ``annotruth plan --json`` prints it."""
        data = self.advice.fit.data
        evenly, advised = (
            {**asdict(needed), "total_labels": self.total_labels(needed)}
            for needed in (self.evenly, self.advised)
        )
        return {
            "target": self.target,
            "value": self.value,
            "now": self.now,
            "n_items": data.n_items,
            "n_labels": data.n_labels,
            "n_annotators": data.n_annotators,
            "evenly": evenly,
            "advised": advised,
            "next": self.advice.to_dict(),
        }

    def _describe(self, needed: LabelsNeeded) -> str:
        data = self.advice.fit.data
        if needed.per_item is None:
            return f"out of reach, {MAX_ADDED} more labels per item give {needed.reached:.3f}"
        if needed.per_item == 0.0:
            return "reached already"
        low = f"{needed.low or 0.0:.1f}"
        high = f"{needed.high:.1f}" if needed.high is not None else f"more than {MAX_ADDED}"
        text = (
            f"{needed.per_item:.1f} more labels per item ({low} to {high}), "
            f"{self.total_labels(needed):,} labels in total"
        )
        if needed.per_item + data.n_labels / data.n_items > data.n_annotators:
            text += f"; that takes more people than these {data.n_annotators:,}"
        return text


def plan(fit: Fit, target: str, value: float, *, seed: int = 0) -> Plan:
    """Return how many labels a target needs, by simulating more labels from a fit.

    Truths are drawn from what the fit says of the items, labels from what it says of the
    annotators; what these labels then say of the items gives the expected measure. So the plan is
    as good as the model, and its interval says nothing about the model being wrong.
    """
    _check(fit, target, value)
    check_seed(seed)
    basis = basis_of(fit)
    advice = advise(fit, basis=basis)
    sign = 1.0 if target == "accuracy" else -1.0
    evenly, advised = (
        sign
        * _simulated_rounds(basis, advice, target, np.random.default_rng(seed), advised=advised)
        for advised in (False, True)
    )
    return Plan(
        target=target,
        value=value,
        now=float(sign * evenly[0].mean()),
        advice=advice,
        evenly=_labels_needed(evenly, sign * value, sign, np.random.default_rng(seed)),
        advised=_labels_needed(advised, sign * value, sign, np.random.default_rng(seed)),
    )


def check_target(target: str, value: float) -> None:
    """Refuse an unknown target, and a value that is no number."""
    if target == "tau":
        raise ComparisonsError(
            f"the target tau is for comparisons: for labels, choose {', '.join(TARGETS)}"
        )
    if target not in TARGETS:
        raise InputError(
            f"unknown target {target!r}: choose {', '.join(TARGETS)}; for comparisons, tau or score"
        )
    check_option(target, "float", value)


def _check(fit: Fit, target: str, value: float) -> None:
    check_target(target, value)
    most = 1.0
    if target == "score":
        check_ordinal(fit.data.scale, "the target score")
        most = float(np.ptp(fit.data.scale.values))
    if not 0.0 < value < most:
        raise InputError(f"target {target} is {value:g}: give a number above 0 and below {most:g}")


def _simulated_rounds(
    basis: AdviceBasis, advice: Advice, target: str, rng: np.random.Generator, *, advised: bool
) -> Floats:
    """Return the measure of items after 0, 1, .. labels per item on average: rounds x items."""
    people, labels = advice.of_annotators, advice.fit.data
    items = simulate(basis, target, people.ask, rng)
    measures = [items.measure()]
    chances = labels.labels_per_annotator.astype(np.float64)
    if advised and people.ask.any():
        chances = people.ask.astype(np.float64)
    chances /= chances.sum()
    n_rows = len(measures[0])
    for _ in range(MAX_ADDED):
        add = np.ones(n_rows, dtype=np.int64)
        if advised:
            add = share_out(n_rows, *items.gains(), _ANY_GAIN)
        for turn in range(int(add.max())):
            rows = np.flatnonzero(add > turn)
            items.label(rows, rng.choice(len(chances), size=len(rows), p=chances))
        measures.append(items.measure())
    return np.array(measures)


def _labels_needed(
    measures: Floats, goal: float, sign: float, rng: np.random.Generator
) -> LabelsNeeded:
    """Return where the mean over items crosses the goal, and where it does in resampled items."""
    n_rows = measures.shape[1]
    crossings = [_crossing(measures.mean(axis=1), goal)]
    for _ in range(_RESAMPLES):
        resampled = rng.integers(n_rows, size=n_rows)
        crossings.append(_crossing(measures[:, resampled].mean(axis=1), goal))
    low, high = np.quantile(crossings[1:], [0.025, 0.975], method="nearest")
    per_item, low, high = (
        float(m) if math.isfinite(m) else None for m in (crossings[0], low, high)
    )
    return LabelsNeeded(per_item, low, high, float(sign * measures[-1].mean()))


def _crossing(curve: Floats, goal: float) -> float:
    """Return how many labels bring the curve to the goal, interpolating between rounds."""
    reached = np.flatnonzero(curve >= goal)
    if not len(reached):
        return math.inf
    last = int(reached[0])
    if last == 0:
        return 0.0
    before, after = curve[last - 1], curve[last]
    return float(last - 1 + (goal - before) / (after - before))
