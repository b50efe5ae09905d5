"""`Plan`: how many labels a target needs, by simulating more labels from a fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.advice.advice import Advice, AdviceBasis, advise, basis_of
from annotruth.analyses.advice.generic import OpinionBasis, ScoreBasis
from annotruth.analyses.advice.items import share_out
from annotruth.analyses.advice.latent_classes import MAX_NUMBERS, ItemPosterior, LatentClassBasis
from annotruth.errors import ComparisonsError, InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Z_95
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

_ROWS = 1000  # items simulated, some of them several times where there are fewer
_LEAST_ROWS = 100


@dataclass(frozen=True)
class LabelsNeeded:
    """How many more labels per item a target needs, on average over items."""

    per_item: float | None  # the labels to add; None where `MAX_ADDED` are not enough
    # its 95% interval over items and over labels yet to come; None beyond `MAX_ADDED`
    low: float | None
    high: float | None
    reached: float  # what `MAX_ADDED` labels are expected to reach


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
    check_target(target, value)
    most = 1.0
    if target == "score":
        check_ordinal(fit.data.scale, "the target score")
        most = float(np.ptp(fit.data.scale.values))
    if not 0.0 < value < most:
        raise InputError(f"target {target} is {value:g}: give a number above 0 and below {most:g}")
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


def simulate(
    basis: AdviceBasis, target: str, ask: NDArray[np.bool_], rng: np.random.Generator
) -> SimulatedClasses | SimulatedOpinions | SimulatedScores:
    """Draw items and their truths from a basis; labels will be by those to ask."""
    if isinstance(basis, LatentClassBasis):
        return SimulatedClasses(basis, target, ask, rng)
    if isinstance(basis, OpinionBasis):
        return SimulatedOpinions(basis, target, ask, rng)
    assert isinstance(basis, ScoreBasis)
    if target != "score":
        raise InputError(
            f"{basis.fit.model} estimates scores, not distributions: choose the target score, or a "
            f"model that gives distributions for {target}"
        )
    return SimulatedScores(basis, rng)


class SimulatedClasses:
    """Items with a drawn latent class."""

    def __init__(
        self,
        basis: LatentClassBasis,
        target: str,
        ask: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> None:
        self._classes, self._rng = basis.classes, rng
        self._typical = basis.typical_confusion(ask)
        most = int(np.clip(MAX_NUMBERS // basis.classes.confusion[0].size, _LEAST_ROWS, _ROWS))
        chosen = _chosen_items(basis.fit.data.n_items, most, rng)
        parts = [
            posterior.take(chosen[(chosen >= lo) & (chosen < hi)] - lo)
            for lo, hi, posterior in basis.posteriors()
        ]
        halves = [part.halves for part in parts if part.halves is not None]
        self.posterior = ItemPosterior(
            np.concatenate([part.weights for part in parts]),
            basis.classes.opinions,
            np.concatenate(halves) if halves else None,
        )
        self._truth = _draw(self.posterior.weights, rng)
        self._measure = self._measure_of(target, basis.fit.data.scale.values)

    def gains(self) -> tuple[Floats, Floats]:
        """Return the uncertainty of each item and the gain of one more label."""
        return self.posterior.uncertainty(), self.posterior.gain(self._typical)

    def label(self, rows: Codes, annotators: Codes) -> None:
        """Draw labels by the annotators' confusion, and update the posterior."""
        confusion, truth = self._classes.confusion[annotators], self._truth[rows]
        some = self.posterior.take(rows)
        last = confusion.shape[2] - 1
        chances = confusion[np.arange(len(rows)), :, np.minimum(truth, last)]
        if some.halves is not None:
            divided = np.einsum("enk,ek->en", confusion, some.halves)
            chances = np.where((truth > last)[:, np.newaxis], divided, chances)
        label = _draw(chances, self._rng)
        counted = confusion[np.arange(len(rows)), label] ** self._classes.label_weight
        self.posterior.weights[rows] = some.updated(counted).weights

    def measure(self) -> Floats:
        """Return the target's measure of every item, expected by the posterior."""
        return self._measure(self.posterior)

    def _measure_of(self, target: str, values: Floats) -> Callable[[ItemPosterior], Floats]:
        if target == "hellinger":
            return ItemPosterior.expected_distance
        if target == "accuracy":
            return ItemPosterior.p_top_label
        inflation, within = self._classes.score_inflation, self._classes.score_variance
        return lambda now: Z_95 * np.sqrt(inflation * now.score_variance(values) + within)


class SimulatedOpinions:
    """Items with a drawn distribution of serious opinion."""

    def __init__(
        self, basis: OpinionBasis, target: str, ask: NDArray[np.bool_], rng: np.random.Generator
    ) -> None:
        labels, theta = basis.fit.data, basis.fit.distribution
        assert theta is not None
        n = labels.n_categories
        rows = _chosen_items(labels.n_items, min(_ROWS, max(MAX_NUMBERS // n, _LEAST_ROWS)), rng)
        # Items that stand in several rows are made dense once.
        some, place = np.unique(rows, return_inverse=True)
        entries = np.isin(theta.item(), some)
        counts = np.full((len(some), n), basis.prior_count)
        item = np.searchsorted(some, theta.item()[entries])
        counts[item, theta.category[entries]] = basis.pseudo_counts()[entries]
        self._basis, self._target, self._ask, self._rng = basis, target, ask, rng
        self._values = labels.scale.values
        self.counts = counts[place]
        drawn = np.maximum(rng.standard_gamma(self.counts), 1e-300)
        self._truth = drawn / drawn.sum(axis=1, keepdims=True)

    def gains(self) -> tuple[Floats, Floats]:
        """Return the uncertainty of each item and the gain of one more label."""
        return self._basis.gains_of_counts(self.counts, self._ask)

    def label(self, rows: Codes, annotators: Codes) -> None:
        """Draw serious labels from the truth, others at random; count them as GPM would."""
        reliability = self._basis.label_gain[annotators]
        n = self.counts.shape[1]
        chances = reliability[:, np.newaxis] * self._truth[rows]
        label = _draw(chances + (1.0 - reliability[:, np.newaxis]) / n, self._rng)
        share = self.counts[rows, label] / self.counts[rows].sum(axis=1)
        serious = reliability * share
        self.counts[rows, label] += serious / (serious + (1.0 - reliability) / n)

    def measure(self) -> Floats:
        """Return the target's measure of every item, against the drawn truth."""
        total = self.counts.sum(axis=1, keepdims=True)
        mean = self.counts / total
        if self._target == "hellinger":
            affinity = np.sqrt(self._truth * mean).sum(axis=1)
            distance: Floats = np.sqrt(np.maximum(1.0 - affinity, 0.0))
            return distance
        if self._target == "accuracy":
            right: Floats = np.equal(mean.argmax(axis=1), self._truth.argmax(axis=1)).astype(float)
            return right
        variance = mean @ self._values**2 - (mean @ self._values) ** 2
        half: Floats = Z_95 * np.sqrt(np.maximum(variance, 0.0) / (total[:, 0] + 1.0))
        return half


class SimulatedScores:
    """Items whose scores' standard errors fall with the number of labels."""

    def __init__(self, basis: ScoreBasis, rng: np.random.Generator) -> None:
        rows = _chosen_items(basis.fit.data.n_items, _ROWS, rng)
        self._basis = basis
        self._first = basis.fit.data.labels_per_item[rows].astype(np.float64)
        self._error = basis.standard_error[rows]
        self.n_labels = self._first.copy()

    def gains(self) -> tuple[Floats, Floats]:
        """Return the uncertainty of each item and the gain of one more label."""
        uncertainty = self._basis.uncertainty_of_errors(self.measure() / Z_95)
        return uncertainty, uncertainty / (self.n_labels + 1.0)

    def label(self, rows: Codes, annotators: Codes) -> None:
        """Count one more label."""
        self.n_labels[rows] += 1.0

    def measure(self) -> Floats:
        """Return half the width of every score's 95% interval."""
        half: Floats = Z_95 * self._error * np.sqrt(self._first / self.n_labels)
        return half


def _chosen_items(n_items: int, n_rows: int, rng: np.random.Generator) -> Codes:
    """Draw items without replacement; of fewer items, take each about as often."""
    if n_items >= n_rows:
        return np.sort(rng.choice(n_items, size=n_rows, replace=False))
    return np.sort(np.arange(n_rows) % n_items)


def _draw(weights: Floats, rng: np.random.Generator) -> Codes:
    """Draw one index per row by its weights."""
    reached = np.cumsum(weights, axis=1)
    threshold = rng.random((len(weights), 1)) * reached[:, -1:]
    index: Codes = np.minimum((reached <= threshold).sum(axis=1), weights.shape[1] - 1)
    return index
