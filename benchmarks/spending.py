"""Spend labels evenly, or as `annotruth next` advises: how many fewer reach the same distance.

Every crowd's labels are drawn once, of all items by all annotators, and are revealed as they are
bought. All ways start with the same labels and are fitted by the same model.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth import api, metrics, simulate
from annotruth.errors import ConvergenceWarning
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, Scale
from annotruth.models.result import Fit
from annotruth.paper.tables import markdown_table

ITEMS, ANNOTATORS, CATEGORIES = 150, 25, 5
FIRST_SEED = 1000  # what was tried while the advice was made used seeds below
START = 2  # labels an item
EVENLY = 10  # labels an item, spent evenly at the end
MOST = 14  # labels an item after which an advised way is called off
COMPARED = (6, 8, 10)  # labels an item, spent evenly, whose distance is to be reached
PLANNED_AT, PLANNED_FOR = 4, 8
WAYS = ("items", "items and annotators")


class Pool(NamedTuple):
    """Labels of all items by all annotators, and the truth."""

    labels: Codes  # items x annotators
    truth: Floats  # items x categories
    scale: Scale

    @property
    def kind(self) -> Literal["class", "opinions"]:
        return "opinions" if self.scale.is_ordinal else "class"

    def revealed(self, mask: NDArray[np.bool_]) -> tuple[Labels, Codes]:
        """Make Labels of what was bought, and say who their annotators are."""
        item, annotator = np.nonzero(mask)
        who, code = np.unique(annotator, return_inverse=True)
        labels = Labels.from_codes(
            item,
            code,
            self.labels[item, annotator],
            items=pa.array(np.arange(len(mask))),
            annotators=pa.array(who),
            scale=self.scale,
        )
        return labels, who

    def distance(self, fit: Fit) -> float:
        assert fit.distribution is not None
        found = fit.distribution.dense(self.truth.shape[1])
        return float(metrics.hellinger(self.truth, found).mean())

    def accuracy(self, fit: Fit) -> float:
        return metrics.accuracy(self.truth.argmax(axis=1), fit.label)


def opinions(behavior: str, seed: int) -> Pool:
    """`simulate.crowd` as it is."""
    made = simulate.crowd(
        n_items=ITEMS, n_annotators=ANNOTATORS, behavior=behavior, mixing="annotator", seed=seed
    )
    assert made.distribution is not None
    data = made.labels
    cell = data.cell_of_label()
    labels = np.empty((ITEMS, ANNOTATORS), dtype=np.int64)
    labels[data.item_of_cell()[cell], data.annotator] = data.cell_category[cell]
    return Pool(labels, made.distribution, data.scale)


def mixture(seed: int) -> Pool:
    """Half of the items unanimous, a fifth divided in the middle of two, the others Betas."""
    rng = np.random.default_rng(seed)
    beta = simulate.crowd(n_items=ITEMS, n_annotators=1, labels_per_item=1, seed=seed).distribution
    assert beta is not None
    one = np.eye(CATEGORIES)
    top, low = rng.integers(CATEGORIES, size=ITEMS), rng.integers(CATEGORIES - 1, size=ITEMS)
    noise = 0.04 / CATEGORIES
    unanimous, divided = 0.96 * one[top] + noise, 0.48 * (one[low] + one[low + 1]) + noise
    which = rng.choice(3, size=(ITEMS, 1), p=[0.5, 0.2, 0.3])
    truth = np.choose(which, [unanimous, divided, beta])
    scale = Scale.ordinal(list(range(1, CATEGORIES + 1)))
    return Pool(_said(rng, truth), truth, scale)


def classes(share_hard: float, seed: int) -> Pool:
    """One right answer of four; serious people name it always, or of hard items 7 times in 10."""
    rng = np.random.default_rng(seed)
    truth = np.eye(4)[rng.integers(4, size=ITEMS)]
    ease = np.where(rng.random((ITEMS, 1)) < share_hard, 0.6, 1.0)
    said = _said(rng, ease * truth + (1.0 - ease) / 4)
    return Pool(said, truth, Scale.nominal(["a", "b", "c", "d"]))


def _said(rng: np.random.Generator, serious: Floats) -> Codes:
    """Let annotators as `simulate.crowd` has them say serious labels, or any."""
    reliability = rng.random(ANNOTATORS) / 2.0
    reliability[ANNOTATORS // 5 :] += 0.5
    shape = (len(serious), ANNOTATORS)
    below = np.cumsum(serious, axis=1)[:, np.newaxis, :-1]
    label = (rng.random((*shape, 1)) >= below).sum(axis=2)
    anything = rng.integers(serious.shape[1], size=shape)
    return np.where(rng.random(shape) < reliability, label, anything)


CROWDS: dict[str, Callable[[int], Pool]] = {
    "opinions, random clickers": lambda seed: opinions("random", seed),
    "opinions, mixed spammers": lambda seed: opinions("mixed", seed),
    "unanimous, divided and broad items": mixture,
    "classes, all easy": lambda seed: classes(0.0, seed),
    "classes, 4 of 10 hard": lambda seed: classes(0.4, seed),
}


@dataclass(frozen=True)
class Curve:
    """The distance after so many labels an item, round by round."""

    labels: Floats
    distance: Floats

    def best_at(self, labels: float) -> float:
        """Return the lowest distance with at most that many labels an item."""
        return float(self.distance[self.labels <= labels + 1e-9].min())

    def labels_for(self, distance: float) -> float | None:
        """Return how many labels an item reach a distance, between two rounds on a line."""
        lowest = np.minimum.accumulate(self.distance)
        if lowest[-1] > distance:
            return None
        return float(np.interp(-distance, -lowest, self.labels))


def start(pool: Pool, rng: np.random.Generator) -> NDArray[np.bool_]:
    mask = np.zeros(pool.labels.shape, dtype=bool)
    first = np.argsort(rng.random(mask.shape), axis=1)[:, :START]
    np.put_along_axis(mask, first, True, axis=1)
    return mask


def add_anybody(mask: NDArray[np.bool_], add: Codes, rng: np.random.Generator) -> None:
    """Buy labels by people drawn from those who have not labelled the item."""
    order = np.argsort(rng.random(mask.shape) + 2.0 * mask, axis=1)
    rank = np.argsort(order, axis=1)
    mask |= rank < np.minimum(add, (~mask).sum(axis=1))[:, np.newaxis]


def spend_evenly(pool: Pool, seed: int) -> tuple[Curve, dict[int, Fit]]:
    rng = np.random.default_rng(seed)
    mask = start(pool, rng)
    fits = {}
    for per_item in range(START, EVENLY + 1):
        fits[per_item] = api.fit(pool.revealed(mask)[0], truth=pool.kind)
        add_anybody(mask, np.ones(ITEMS, dtype=np.int64), rng)
    distance = np.array([pool.distance(fit) for fit in fits.values()])
    return Curve(np.array(list(fits), dtype=np.float64), distance), fits


def spend_as_advised(pool: Pool, way: str, seed: int, until: float) -> Curve:
    rng = np.random.default_rng(seed)
    mask = start(pool, rng)
    found: list[tuple[float, float]] = []
    while True:
        labels, who = pool.revealed(mask)
        advice = api.next_labels(labels, budget=ITEMS, truth=pool.kind)
        found.append((labels.n_labels / ITEMS, pool.distance(advice.fit)))
        if found[-1][1] <= until or labels.n_labels >= MOST * ITEMS:
            break
        if way == "items":
            add_anybody(mask, advice.add, rng)
        else:
            item, annotator = advice.assigned()
            some = annotator >= 0
            mask[item[some], who[annotator[some]]] = True
            # Where none of those to ask is left, anybody else.
            add_anybody(mask, np.bincount(item[~some], minlength=ITEMS), rng)
        if mask.sum() == labels.n_labels:
            break  # it advises no more, or nobody is left
    counts, distance = np.array(found).T
    return Curve(counts, distance)


def planned(pool: Pool, fits: dict[int, Fit], target: str, truly: float) -> float | None:
    """Ask, with few labels, for what more labels have truly given: how many does plan say?"""
    if not 0.0 < truly < 1.0:
        return None
    labels = fits[PLANNED_AT].data
    need = api.plan_labels(labels, target, truly, truth=pool.kind).evenly.per_item
    return None if need is None else PLANNED_AT + need


def figure(values: Sequence[float | None], percent: bool) -> str:
    """Write mean and standard error; where some never got there, how many did instead."""
    some = [value for value in values if value is not None]
    if len(some) < len(values):
        return f"{len(some)} of {len(values)} get there"
    mean, error = np.mean(some), np.std(some, ddof=1) / np.sqrt(len(some))
    return f"{mean:.1%} ± {error:.1%}" if percent else f"{mean:.3f} ± {error:.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spending", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="crowds a row (default: 50)")
    seeds = range(FIRST_SEED, FIRST_SEED + parser.parse_args().seeds)
    warnings.simplefilter("ignore", ConvergenceWarning)
    heads = [f"at {per_item}" for per_item in COMPARED]
    saved_rows, plan_rows = [], []
    for name, make in CROWDS.items():
        saved: dict[str, list[list[float | None]]] = {way: [] for way in WAYS}
        plans: dict[str, list[float | None]] = {"hellinger": [], "accuracy": []}
        even = []
        for seed in seeds:
            pool = make(seed)
            curve, fits = spend_evenly(pool, seed)
            even.append([curve.best_at(per_item) for per_item in COMPARED])
            for way in WAYS:
                advised = spend_as_advised(pool, way, seed, until=min(even[-1]))
                needed = [advised.labels_for(goal) for goal in even[-1]]
                saved[way].append(
                    [
                        None if labels is None else 1.0 - labels / per_item
                        for labels, per_item in zip(needed, COMPARED, strict=True)
                    ]
                )
            last = fits[PLANNED_FOR]
            truly = {"hellinger": pool.distance(last), "accuracy": pool.accuracy(last)}
            for target, value in truly.items():
                plans[target].append(planned(pool, fits, target, value))
        row = [figure(list(column), percent=False) for column in zip(*even, strict=True)]
        saved_rows.append([name, "evenly: distance", *row])
        for way, by_seed in saved.items():
            row = [figure(list(column), percent=True) for column in zip(*by_seed, strict=True)]
            saved_rows.append([name, f"{way}: fewer labels", *row])
        plan_rows += [_plan_row(name, target, found) for target, found in plans.items()]
        print(f"{name}: done", file=sys.stderr, flush=True)
    print(
        f"{ITEMS} items, {ANNOTATORS} annotators, from {START} labels an item, {ITEMS} labels a "
        f"round; means over seeds {seeds[0]} to {seeds[-1]} ± standard errors. Fewer labels, those of the start "
        "counted, for the mean Hellinger distance that so many labels an item reach evenly:\n"
    )
    print(markdown_table(["crowd", "spent", *heads], saved_rows, n_left=2))
    print(
        f"\nPlans made with {PLANNED_AT} labels an item, for what {PLANNED_FOR} have truly "
        "reached: labels an item they say; the middle half of the seeds, and how often it is "
        "called out of reach:\n"
    )
    print(markdown_table(["crowd", "target", "median", "from", "to", "out"], plan_rows, n_left=2))
    return 0


def _plan_row(name: str, target: str, found: list[float | None]) -> list[str]:
    said = [np.inf if labels is None else labels for labels in found]
    low, middle, high = np.quantile(said, [0.25, 0.5, 0.75], method="nearest")
    out = np.mean(np.isinf(said))
    return [name, target, *(f"{labels:.1f}" for labels in (middle, low, high)), f"{out:.0%}"]


if __name__ == "__main__":
    sys.exit(main())
