"""`PairPlan`: how many comparisons a target needs, by simulating further votes from a fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from annotruth.analyses.advice.pairs.advice import PairAdvice, advise_pairs, order_of
from annotruth.analyses.advice.pairs.annotators import typical_voter
from annotruth.analyses.advice.pairs.order import OrderPosterior, Voters
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes
from annotruth.models.distribution import Z_95
from annotruth.models.result import RankFit
from annotruth.observations.validate import check_option, check_seed

PAIR_TARGETS = {
    "tau": "expected Kendall tau between the ranking and the true one",
    "score": "half the width of a score's 95% interval, mean over items",
}

MAX_ADDED = 60
"""How many more comparisons per item are considered; a target that needs more is out of reach."""

MAX_ITEMS = 150
"""Of more items, so many of the ranking, at equal distances, stand for all."""

_AT_ONCE = 1 / 4
_DRAWS = 8  # of true scores from the posterior


@dataclass(frozen=True)
class ComparisonsNeeded:
    """How many more comparisons a target needs; None beyond `MAX_ADDED` per item."""

    per_item: float | None
    low: float | None  # the fewest and the most that were needed in several simulations
    high: float | None
    reached: float  # in the end, on average


@dataclass(frozen=True, eq=False)
class PairPlan:
    """How many comparisons a target needs.

    Attributes
    ----------
    target, value
        The target: "tau" or "score", and its value.
    now
        What is expected with the comparisons so far.
    advice
        The advice for the next round, by the same fit.
    evenly
        The comparisons needed if they are spread over all pairs, by all annotators as before.
    advised
        The comparisons needed if they go to the pairs that gain most, by the annotators to ask.
    """

    target: str
    value: float
    now: float
    advice: PairAdvice
    evenly: ComparisonsNeeded
    advised: ComparisonsNeeded

    def __repr__(self) -> str:
        return f"PairPlan({self.target} {self.value:g}: {self._describe(self.advised)})"

    def total_comparisons(self, needed: ComparisonsNeeded) -> int | None:
        """Return how many comparisons there will be in total; None where it is out of reach."""
        data = self.advice.fit.data
        if needed.per_item is None:
            return None
        return data.n_comparisons + math.ceil(needed.per_item * data.n_items)

    def summary(self) -> str:
        """Return the plan in a few lines."""
        data = self.advice.fit.data
        per_item = data.n_comparisons / data.n_items
        lines = [
            f"target: {self.target} {self.value:g} ({PAIR_TARGETS[self.target]})",
            f"now: {self.now:.3f} expected, {per_item:.1f} comparisons per item",
            f"evenly, by all annotators: {self._describe(self.evenly)}",
            f"where they gain most, by the annotators to ask: {self._describe(self.advised)}",
        ]
        if self.advised.per_item == 0.0:
            return "\n".join([*lines, "next round: this target needs no more comparisons"])
        return "\n".join([*lines, "next round:", *self.advice.summary().splitlines()[1:]])

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types, as ``annotruth plan --json`` prints it."""
        return {
            "target": self.target,
            "value": self.value,
            "now": self.now,
            "evenly": asdict(self.evenly) | {"total": self.total_comparisons(self.evenly)},
            "advised": asdict(self.advised) | {"total": self.total_comparisons(self.advised)},
            "next": self.advice.to_dict(),
        }

    def _describe(self, needed: ComparisonsNeeded) -> str:
        total = self.total_comparisons(needed)
        if total is None:
            return f"out of reach, {MAX_ADDED} more comparisons per item give {needed.reached:.3f}"
        if needed.per_item == 0.0:
            return "reached already"
        high = f"more than {MAX_ADDED}" if needed.high is None else f"{needed.high:.1f}"
        return (
            f"{needed.per_item:.1f} more comparisons per item ({needed.low:.1f} to {high}), "
            f"{total:,} comparisons in total"
        )


class SimulatedOrder(OrderPosterior):
    """A posterior of scores whose truth was drawn from it, and which learns from simulated votes.

    A vote is taken as a normal observation of the true difference of scores whose precision is the
    vote's Fisher information.
    """

    def __init__(self, first: OrderPosterior, rng: np.random.Generator) -> None:
        super().__init__(first.mean, first.covariance, first.comparable)
        values, vectors = np.linalg.eigh(first.covariance)
        # The symmetric root is unique, whatever the signs of the vectors.
        root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        self._truth = first.mean + root @ rng.standard_normal(len(values))
        self._rng = rng

    def add_vote(self, a: int, b: int, kappa: float) -> None:
        """Draw what a vote on two items says, and add it."""
        column = self.covariance[a] - self.covariance[b]
        # The observation less its expectation has variance 1 / I + s^2 = 1 / kappa, of which
        # 1 / I is noise.
        variance = column[a] - column[b]
        noise = np.sqrt(max(1.0 / kappa - variance, 0.0)) * self._rng.standard_normal()
        observed = self._truth[a] - self._truth[b] + noise
        surprise = observed - (self.mean[a] - self.mean[b])
        super().add_vote(a, b, kappa)
        self.mean = self.mean + kappa * surprise * column

    def add_random(self, voter: Voters, n_votes: int) -> None:
        """Add votes on pairs drawn from all that can be compared."""
        first, second = np.nonzero(self.comparable)
        for place in self._rng.integers(len(first), size=n_votes):
            a, b = int(first[place]), int(second[place])
            column = self.covariance[a] - self.covariance[b]
            variance = np.maximum(column[a] - column[b], 1e-12)
            information = voter.expected_information(self.mean[a] - self.mean[b], variance)
            self.add_vote(a, b, float(information / (1.0 + information * variance)))


def plan_pairs(fit: RankFit, target: str, value: float, *, seed: int = 0) -> PairPlan:
    """Return how many comparisons a target needs, by a fit of any model of pair comparisons.

    True scores are drawn from the posterior, and votes from what the fit says of the annotators.
    The same seed gives the same plan.
    """
    check_pair_target(target, value)
    check_seed(seed)
    advice = advise_pairs(fit)
    items = _sample(fit)
    everybody = typical_voter(fit, np.ones(fit.data.n_annotators, dtype=np.bool_))
    asked = typical_voter(fit, advice.of_annotators.ask)
    at_once = max(1, round(_AT_ONCE * len(items)))
    first = order_of(fit, items)

    def needed(add: Callable[[SimulatedOrder], object]) -> ComparisonsNeeded:
        return _needed(first, add, target, value, seed)

    evenly = needed(lambda order: order.add_random(everybody, len(items)))
    advised = needed(lambda order: order.choose(asked, len(items), at_once=at_once))
    if advised.per_item and not advice.n_add:  # without a target, they would not be worth while
        advice = advise_pairs(fit, fit.data.n_items)
    return PairPlan(target, value, _MEASURES[target](first), advice, evenly, advised)


def check_pair_target(target: str, value: float) -> None:
    """Refuse a target that is none, or a value that it cannot have."""
    if target not in PAIR_TARGETS:
        raise InputError(
            f"target is {target!r}: for comparisons, choose one of {', '.join(PAIR_TARGETS)}"
        )
    check_option(target, "float", value)
    most = 1.0 if target == "tau" else math.inf
    if not 0.0 < value < most:
        limit = f" and below {most:g}" if math.isfinite(most) else ""
        raise InputError(f"target {target} is {value:g}: give a number above 0{limit}")


def _sample(fit: RankFit) -> Codes:
    """Return the items, or so many of them that they can be simulated, from all over the ranking."""
    ranking = np.argsort(-fit.scores.mean, kind="stable")
    some = np.linspace(0, len(ranking) - 1, min(len(ranking), MAX_ITEMS)).astype(np.int64)
    return ranking[some]


def _needed(
    first: OrderPosterior,
    add: Callable[[SimulatedOrder], object],
    target: str,
    value: float,
    seed: int,
) -> ComparisonsNeeded:
    """Return where the target is reached, in several simulations."""
    if not first.comparable.any():
        return ComparisonsNeeded(0.0, 0.0, 0.0, _MEASURES[target](first))
    draws = np.random.default_rng(seed).spawn(_DRAWS)
    runs = [_crossing(SimulatedOrder(first, rng), add, target, value) for rng in draws]
    crossings = [crossing for crossing, _ in runs]
    per_item, low, high = (
        each if math.isfinite(each) else None
        for each in (float(np.median(crossings)), min(crossings), max(crossings))
    )
    return ComparisonsNeeded(per_item, low, high, float(np.mean([reached for _, reached in runs])))


def _crossing(
    order: SimulatedOrder, add: Callable[[SimulatedOrder], object], target: str, value: float
) -> tuple[float, float]:
    """Add rounds of one comparison per item; return how many reach the target, and what is reached."""
    sign = 1.0 if target == "tau" else -1.0
    measure = _MEASURES[target]
    before = measure(order)
    if sign * before >= sign * value:
        return 0.0, before
    for added in range(MAX_ADDED):
        add(order)
        after = measure(order)
        if sign * after >= sign * value:
            return added + (value - before) / (after - before), after
        before = after
    return math.inf, before


def _half_width(order: OrderPosterior) -> float:
    return float(Z_95 * np.sqrt(np.maximum(np.diag(order.covariance), 0.0)).mean())


_MEASURES: dict[str, Callable[[OrderPosterior], float]] = {
    "tau": OrderPosterior.expected_tau,
    "score": _half_width,
}
