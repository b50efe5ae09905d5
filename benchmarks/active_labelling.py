"""How many labels `annotruth next` saves, compared with equally many labels per item.

The labels of all items by all annotators are simulated once per crowd and revealed as they are
acquired. All policies start with the same labels and use the same model.
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

import annotruth as at
from annotruth import metrics, simulate
from annotruth.errors import ConvergenceWarning
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels, Scale
from annotruth.paper.tables import markdown_table

ITEMS, ANNOTATORS, CATEGORIES = 150, 25, 5
FIRST_SEED = 1000  # lower seeds were used while the advice was developed
START = 2  # labels per item at the start
UNIFORM_END = 10  # labels per item at the end of the uniform policy
ADVISED_END = 14  # labels per item at which the advised policy stops at the latest
COMPARED = (6, 8, 10)  # labels per item of the uniform policy whose distance is to be reached
PLANNED_AT, PLANNED_FOR = 4, 8
POLICIES = ("items", "items and annotators")


class Pool(NamedTuple):
    """The labels of all items by all annotators, and the truth."""

    labels: Codes  # items x annotators
    truth: Floats  # items x categories
    scale: Scale

    @property
    def truth_kind(self) -> Literal["class", "opinions"]:
        return "opinions" if self.scale.is_ordinal else "class"

    def revealed(self, mask: NDArray[np.bool_]) -> tuple[Labels, Codes]:
        """Return the acquired labels and the codes of their annotators."""
        item, annotator = np.nonzero(mask)
        active, code = np.unique(annotator, return_inverse=True)
        labels = Labels.from_codes(
            item,
            code,
            self.labels[item, annotator],
            items=pa.array(np.arange(len(mask))),
            annotators=pa.array(active),
            scale=self.scale,
        )
        return labels, active

    def distance(self, fit: Fit) -> float:
        assert fit.distribution is not None
        distribution = fit.distribution.dense(self.truth.shape[1])
        return float(metrics.hellinger(self.truth, distribution).mean())

    def accuracy(self, fit: Fit) -> float:
        assert fit.label is not None
        return metrics.accuracy(self.truth.argmax(axis=1), fit.label)


def opinions(behavior: str, seed: int) -> Pool:
    """Return a crowd of `simulate.crowd`."""
    simulation = simulate.crowd(
        n_items=ITEMS, n_annotators=ANNOTATORS, behavior=behavior, mixing="annotator", seed=seed
    )
    assert simulation.distribution is not None
    data = simulation.labels
    cell = data.cell_of_label()
    labels = np.empty((ITEMS, ANNOTATORS), dtype=np.int64)
    labels[data.item_of_cell()[cell], data.annotator] = data.cell_category[cell]
    return Pool(labels, simulation.distribution, data.scale)


def mixture(seed: int) -> Pool:
    """Return a crowd with half of the items unanimous, a fifth evenly divided, the others Betas."""
    rng = np.random.default_rng(seed)
    beta = simulate.crowd(n_items=ITEMS, n_annotators=1, labels_per_item=1, seed=seed).distribution
    assert beta is not None
    indicator = np.eye(CATEGORIES)
    top, low = rng.integers(CATEGORIES, size=ITEMS), rng.integers(CATEGORIES - 1, size=ITEMS)
    noise = 0.04 / CATEGORIES
    unanimous, divided = (
        0.96 * indicator[top] + noise,
        0.48 * (indicator[low] + indicator[low + 1]) + noise,
    )
    item_type = rng.choice(3, size=(ITEMS, 1), p=[0.5, 0.2, 0.3])
    truth = np.choose(item_type, [unanimous, divided, beta])
    scale = Scale.ordinal(list(range(1, CATEGORIES + 1)))
    return Pool(_draw_labels(rng, truth), truth, scale)


def classes(share_hard: float, seed: int) -> Pool:
    """Return a crowd with one true class of four; serious labels are right, of hard items 70%."""
    rng = np.random.default_rng(seed)
    truth = np.eye(4)[rng.integers(4, size=ITEMS)]
    ease = np.where(rng.random((ITEMS, 1)) < share_hard, 0.6, 1.0)
    labels = _draw_labels(rng, ease * truth + (1.0 - ease) / 4)
    return Pool(labels, truth, Scale.nominal(["a", "b", "c", "d"]))


def _draw_labels(rng: np.random.Generator, serious: Floats) -> Codes:
    """Draw labels by annotators as in `simulate.crowd`: serious ones, or uniform ones."""
    reliability = rng.random(ANNOTATORS) / 2.0
    reliability[ANNOTATORS // 5 :] += 0.5
    shape = (len(serious), ANNOTATORS)
    below = np.cumsum(serious, axis=1)[:, np.newaxis, :-1]
    label = (rng.random((*shape, 1)) >= below).sum(axis=2)
    uniform = rng.integers(serious.shape[1], size=shape)
    return np.where(rng.random(shape) < reliability, label, uniform)


CROWDS: dict[str, Callable[[int], Pool]] = {
    "opinions, random clickers": lambda seed: opinions("random", seed),
    "opinions, mixed spammers": lambda seed: opinions("mixed", seed),
    "unanimous, divided and broad items": mixture,
    "classes, all easy": lambda seed: classes(0.0, seed),
    "classes, 4 of 10 hard": lambda seed: classes(0.4, seed),
}


@dataclass(frozen=True)
class Curve:
    """The distance by number of labels per item, one entry per round."""

    labels: Floats
    distance: Floats

    def best_at(self, labels: float) -> float:
        """Return the lowest distance with at most that many labels per item."""
        return float(self.distance[self.labels <= labels + 1e-9].min())

    def labels_for(self, distance: float) -> float | None:
        """Return the labels per item that reach a distance, linear between rounds."""
        lowest = np.minimum.accumulate(self.distance)
        if lowest[-1] > distance:
            return None
        return float(np.interp(-distance, -lowest, self.labels))


def start(pool: Pool, rng: np.random.Generator) -> NDArray[np.bool_]:
    mask = np.zeros(pool.labels.shape, dtype=bool)
    first = np.argsort(rng.random(mask.shape), axis=1)[:, :START]
    np.put_along_axis(mask, first, True, axis=1)
    return mask


def acquire_at_random(mask: NDArray[np.bool_], n_labels: Codes, rng: np.random.Generator) -> None:
    """Acquire labels by random annotators who have not labelled the item."""
    order = np.argsort(rng.random(mask.shape) + 2.0 * mask, axis=1)
    rank = np.argsort(order, axis=1)
    mask |= rank < np.minimum(n_labels, (~mask).sum(axis=1))[:, np.newaxis]


def acquire_uniformly(pool: Pool, seed: int) -> tuple[Curve, dict[int, Fit]]:
    rng = np.random.default_rng(seed)
    mask = start(pool, rng)
    fits = {}
    for per_item in range(START, UNIFORM_END + 1):
        fits[per_item] = at.fit(pool.revealed(mask)[0], truth=pool.truth_kind)
        acquire_at_random(mask, np.ones(ITEMS, dtype=np.int64), rng)
    distance = np.array([pool.distance(fit) for fit in fits.values()])
    return Curve(np.array(list(fits), dtype=np.float64), distance), fits


def acquire_as_advised(pool: Pool, policy: str, seed: int, until: float) -> Curve:
    rng = np.random.default_rng(seed)
    mask = start(pool, rng)
    points: list[tuple[float, float]] = []
    while True:
        labels, active = pool.revealed(mask)
        advice = at.next_labels(labels, budget=ITEMS, truth=pool.truth_kind)
        points.append((labels.n_labels / ITEMS, pool.distance(advice.fit)))
        if points[-1][1] <= until or labels.n_labels >= ADVISED_END * ITEMS:
            break
        if policy == "items":
            acquire_at_random(mask, advice.add, rng)
        else:
            item, annotator = advice.assigned()
            is_assigned = annotator >= 0
            mask[item[is_assigned], active[annotator[is_assigned]]] = True
            # Where no advised annotator is left, a random one.
            acquire_at_random(mask, np.bincount(item[~is_assigned], minlength=ITEMS), rng)
        if mask.sum() == labels.n_labels:
            break  # no more labels are advised, or no annotator is left
    counts, distance = np.array(points).T
    return Curve(counts, distance)


def plan(pool: Pool, fits: dict[int, Fit], target: str, reached: float) -> float | None:
    """Return the labels per item that a plan with few labels gives for a value really reached."""
    if not 0.0 < reached < 1.0:
        return None
    labels = fits[PLANNED_AT].data
    n_more = at.plan_labels(labels, target, reached, truth=pool.truth_kind).evenly.per_item
    return None if n_more is None else PLANNED_AT + n_more


def format_mean(values: Sequence[float | None], percent: bool) -> str:
    """Return mean and standard error; if some runs did not reach the goal, how many did."""
    reached = [value for value in values if value is not None]
    if len(reached) < len(values):
        return f"{len(reached)} of {len(values)} reach it"
    mean, error = np.mean(reached), np.std(reached, ddof=1) / np.sqrt(len(reached))
    return f"{mean:.1%} ± {error:.1%}" if percent else f"{mean:.3f} ± {error:.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.active_labelling", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=50, help="crowds per row (default: 50)")
    seeds = range(FIRST_SEED, FIRST_SEED + parser.parse_args().seeds)
    warnings.simplefilter("ignore", ConvergenceWarning)
    heads = [f"at {per_item}" for per_item in COMPARED]
    saved_rows, plan_rows = [], []
    for name, make in CROWDS.items():
        saved: dict[str, list[list[float | None]]] = {policy: [] for policy in POLICIES}
        plans: dict[str, list[float | None]] = {"hellinger": [], "accuracy": []}
        uniform = []
        for seed in seeds:
            pool = make(seed)
            curve, fits = acquire_uniformly(pool, seed)
            uniform.append([curve.best_at(per_item) for per_item in COMPARED])
            for policy in POLICIES:
                advised = acquire_as_advised(pool, policy, seed, until=min(uniform[-1]))
                needed = [advised.labels_for(goal) for goal in uniform[-1]]
                saved[policy].append(
                    [
                        None if labels is None else 1.0 - labels / per_item
                        for labels, per_item in zip(needed, COMPARED, strict=True)
                    ]
                )
            last = fits[PLANNED_FOR]
            reached = {"hellinger": pool.distance(last), "accuracy": pool.accuracy(last)}
            for target, value in reached.items():
                plans[target].append(plan(pool, fits, target, value))
        row = [format_mean(list(column), percent=False) for column in zip(*uniform, strict=True)]
        saved_rows.append([name, "uniform: distance", *row])
        for policy, by_seed in saved.items():
            row = [format_mean(list(column), percent=True) for column in zip(*by_seed, strict=True)]
            saved_rows.append([name, f"{policy}: fewer labels", *row])
        plan_rows += [_plan_row(name, target, planned) for target, planned in plans.items()]
        print(f"{name}: done", file=sys.stderr, flush=True)
    print(
        f"{ITEMS} items, {ANNOTATORS} annotators, from {START} labels per item, {ITEMS} labels per "
        f"round; means over seeds {seeds[0]} to {seeds[-1]} ± standard errors. Share of labels "
        "saved (those of the start included) for the mean Hellinger distance that the given number "
        "of labels per item reaches uniformly:\n"
    )
    print(markdown_table(["crowd", "policy", *heads], saved_rows, n_left=2))
    print(
        f"\nPlans made with {PLANNED_AT} labels per item for the value that {PLANNED_FOR} reach: "
        "planned labels per item (median and quartiles over seeds), and how often the target is "
        "reported as out of reach:\n"
    )
    print(
        markdown_table(
            ["crowd", "target", "median", "25%", "75%", "out of reach"], plan_rows, n_left=2
        )
    )
    return 0


def _plan_row(name: str, target: str, planned: list[float | None]) -> list[str]:
    per_item = [np.inf if labels is None else labels for labels in planned]
    low, middle, high = np.quantile(per_item, [0.25, 0.5, 0.75], method="nearest")
    out = np.mean(np.isinf(per_item))
    return [name, target, *(f"{labels:.1f}" for labels in (middle, low, high)), f"{out:.0%}"]


if __name__ == "__main__":
    sys.exit(main())
