"""`Plan`: how many labels a target needs, by labels simulated from what is believed so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from annotruth.advice.beliefs import MOST_NUMBERS, Beliefs, share_counted
from annotruth.advice.crowd import Crowd, judge
from annotruth.advice.spending import share_out
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.labels.validate import check_option, check_ordinal, check_seed
from annotruth.models.em import ProgressCallback
from annotruth.models.intervals import Z_95
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.models.robust_gpm.steps import MEANS

TARGETS = {
    "accuracy": "share of items whose leading label is right",
    "hellinger": "mean Hellinger distance of distributions from the truth",
    "score": "half the width of a score's 95% interval, in the mean over items",
}

MOST_ADDED = 60
"""As many labels an item are tried; what needs more is called out of reach."""

_ROWS = 1000  # items simulated, some of them several times where there are fewer
_RESAMPLES = 200
_ANY_GAIN = 1e-12


@dataclass(frozen=True)
class Need:
    """How many more labels an item a way of spending needs, in the mean over items.

    Attributes
    ----------
    per_item
        The labels to add; None where `MOST_ADDED` do not suffice.
    low, high
        Its 95% interval over items and over labels yet to come; None beyond `MOST_ADDED`.
    reached
        What `MOST_ADDED` labels are expected to reach.
    """

    per_item: float | None
    low: float | None
    high: float | None
    reached: float


@dataclass(frozen=True, eq=False)
class Plan:
    """What a target needs.

    Attributes
    ----------
    target, value
        What is to be reached.
    now
        What is expected of the labels so far.
    n_items, n_labels, n_annotators
        What there is so far.
    evenly
        With as many labels for every item, by the crowd as it is.
    advised
        With labels spent as `Advice` has it: on the items that gain most, by those to ask.
    """

    target: str
    value: float
    now: float
    n_items: int
    n_labels: int
    n_annotators: int
    evenly: Need
    advised: Need

    def in_all(self, need: Need) -> int | None:
        """Return how many labels there will be in all; None where that is out of reach."""
        return (
            None
            if need.per_item is None
            else self.n_labels + math.ceil(need.per_item * self.n_items)
        )

    def summary(self) -> str:
        """Tell the plan in a few lines."""
        lines = [
            f"target: {self.target} {self.value:g} ({TARGETS[self.target]})",
            f"now: {self.now:.3f} expected, {self.n_labels / self.n_items:.1f} labels an item",
            f"evenly, by everybody: {self._told(self.evenly)}",
            f"as next advises: {self._told(self.advised)}",
        ]
        if self.evenly.per_item is None and self.advised.per_item is None:
            lines.append(
                "these annotators cannot reach it: find more reliable ones, or lower the target"
            )
        return "\n".join(lines)

    def _told(self, need: Need) -> str:
        if need.per_item is None:
            return f"out of reach, {MOST_ADDED} more labels an item give {need.reached:.3f}"
        if need.per_item == 0.0:
            return "reached already"
        low = f"{need.low or 0.0:.1f}"
        high = f"{need.high:.1f}" if need.high is not None else f"more than {MOST_ADDED}"
        told = f"{need.per_item:.1f} more labels an item ({low} to {high}), {self.in_all(need):,} in all"
        if need.per_item + self.n_labels / self.n_items > self.n_annotators:
            told += f"; that takes more people than these {self.n_annotators:,}"
        return told


def plan(
    labels: Labels,
    target: str,
    value: float,
    *,
    model: RobustGPM | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Plan:
    """Fit the labels, then simulate more of them until the target is met.

    Truths are drawn from what is believed of the items, labels from the annotators' rates; the
    beliefs that these labels lead to say what is then expected. So the answer is as good as the
    model, and its interval says nothing of that.
    """
    _check(labels, target, value)
    check_seed(seed)
    crowd = judge(labels, model, progress)
    measure = _measure(target, crowd)
    sign = 1.0 if target == "accuracy" else -1.0
    needs = []
    now = 0.0
    for advised in (False, True):
        found = sign * _simulated(crowd, measure, np.random.default_rng(seed), advised=advised)
        needs.append(_need(found, sign * value, sign, np.random.default_rng(seed)))
        now = float(sign * found[0].mean())
    return Plan(
        target=target,
        value=value,
        now=now,
        n_items=labels.n_items,
        n_labels=labels.n_labels,
        n_annotators=labels.n_annotators,
        evenly=needs[0],
        advised=needs[1],
    )


def _check(labels: Labels, target: str, value: float) -> None:
    if target not in TARGETS:
        raise InputError(f"unknown target {target!r}: choose {', '.join(TARGETS)}")
    check_option(target, "float", value)
    most = 1.0
    if target == "score":
        check_ordinal(labels.scale, "the target score")
        most = float(np.ptp(labels.scale.values))
    if not 0.0 < value < most:
        raise InputError(f"target {target} is {value:g}: give a number above 0 and below {most:g}")


def _simulated(
    crowd: Crowd, measure: Callable[[Beliefs], Floats], rng: np.random.Generator, *, advised: bool
) -> Floats:
    """Return the measure of items after 0, 1, .. labels each in the mean: rounds x items."""
    rates = crowd.kinds.rates
    now = _some_items(crowd, rng)
    n_rows = len(now.weights)
    truth = _drawn(now.weights, rng)
    may = crowd.may_ask if advised else np.ones(len(rates), dtype=bool)
    often = np.where(may, 1.0 if advised else crowd.fit.data.labels_per_annotator, 0.0)
    typical, counted = crowd.typical_rates(), share_counted(crowd.fit.data)
    found = [measure(now)]
    for _ in range(MOST_ADDED):
        add = np.ones(n_rows, dtype=np.int64)
        if advised:
            add = share_out(n_rows, now.uncertainty(), now.gain(typical), _ANY_GAIN)
        for turn in range(int(add.max())):
            rows = np.flatnonzero(add > turn)
            asked = rng.choice(len(rates), size=len(rows), p=often / often.sum())
            part = now.take(rows)
            label = _drawn(_chances(rates[asked], truth[rows], part.halves), rng)
            now.weights[rows] = part.after(rates[asked, label] ** counted).weights
        found.append(measure(now))
    return np.array(found)


def _some_items(crowd: Crowd, rng: np.random.Generator) -> Beliefs:
    """Draw the items to simulate, and what is believed of them now."""
    labels = crowd.fit.data
    most = int(np.clip(MOST_NUMBERS // crowd.kinds.rates[0].size, 100, _ROWS))
    if labels.n_items >= most:
        chosen = np.sort(rng.choice(labels.n_items, size=most, replace=False))
    else:
        chosen = np.sort(np.arange(most) % labels.n_items)
    parts = [
        part.take(chosen[(chosen >= lo) & (chosen < hi)] - lo) for lo, hi, part in crowd.beliefs()
    ]
    halves = [part.halves for part in parts if part.halves is not None]
    return Beliefs(
        np.concatenate([part.weights for part in parts]),
        crowd.kinds.opinions,
        np.concatenate(halves) if halves else None,
    )


def _chances(rates: Floats, truth: Codes, halves: Floats | None) -> Floats:
    """Return how likely each label is for items of the kinds drawn: items x labels."""
    last = rates.shape[2] - 1
    chances = rates[np.arange(len(truth)), :, np.minimum(truth, last)]
    if halves is not None:
        divided = np.einsum("enk,ek->en", rates, halves)
        chances = np.where((truth > last)[:, np.newaxis], divided, chances)
    return chances


def _drawn(weights: Floats, rng: np.random.Generator) -> Codes:
    """Draw one place in every row by its weights."""
    reached = np.cumsum(weights, axis=1)
    at = rng.random((len(weights), 1)) * reached[:, -1:]
    place: Codes = np.minimum((reached <= at).sum(axis=1), weights.shape[1] - 1)
    return place


def _measure(target: str, crowd: Crowd) -> Callable[[Beliefs], Floats]:
    """Make the function that says how near the target each item is expected to be."""
    if target == "hellinger":
        return Beliefs.distance
    if target == "accuracy":
        return Beliefs.p_leads
    values = crowd.fit.data.scale.values
    # Between two shapes lies a bin; classes are what they are.
    bin_width = 0.0 if crowd.kinds.one_truth else float(np.ptp(values)) / MEANS
    # Labels that count less widen scores already; the fit may find the crowd less sure still.
    more = crowd.kinds.wider**2 * share_counted(crowd.fit.data)
    return lambda now: Z_95 * np.sqrt(more * now.variance_of_score(values) + bin_width**2 / 12.0)


def _need(found: Floats, goal: float, sign: float, rng: np.random.Generator) -> Need:
    """Find where the mean over items crosses the goal, and where it does in resampled items."""
    n_rows = found.shape[1]
    crossings = [_crossing(found.mean(axis=1), goal)]
    for _ in range(_RESAMPLES):
        some = rng.integers(n_rows, size=n_rows)
        crossings.append(_crossing(found[:, some].mean(axis=1), goal))
    low, high = np.quantile(crossings[1:], [0.025, 0.975], method="nearest")
    per_item, low, high = (
        float(m) if math.isfinite(m) else None for m in (crossings[0], low, high)
    )
    return Need(per_item, low, high, float(sign * found[-1].mean()))


def _crossing(curve: Floats, goal: float) -> float:
    """Return how many labels bring the curve to the goal, between two rounds on a line."""
    there = np.flatnonzero(curve >= goal)
    if not len(there):
        return math.inf
    last = int(there[0])
    if last == 0:
        return 0.0
    before, after = curve[last - 1], curve[last]
    return float(last - 1 + (goal - before) / (after - before))
