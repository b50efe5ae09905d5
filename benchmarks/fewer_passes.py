"""Passes over the labels to the optimum, with and without acceleration, in one run."""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from annotruth.engines.background import BackgroundSession

from annotruth import simulate
from annotruth.engines import Pass, Session, get_engine
from annotruth.errors import ConvergenceWarning
from annotruth.io.readers import read_labels
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.models.em import Progress
from annotruth.models.registry import get_model
from annotruth.models.result import Fit

MODELS = ("gpm", "dawid-skene", "glad", "ordinal-binary", "ordinal-mixture", "subject-bias")
REAL = ("face", "dog", "duck", "product", "rte", "web", "adult", "ftv", "movielens-100k")
SIMULATED: dict[str, dict[str, Any]] = {
    "dense, random": {"n_items": 200, "n_annotators": 30},
    "sparse, mixed": {
        "n_items": 2_000,
        "n_annotators": 150,
        "labels_per_item": 4,
        "behavior": "mixed",
        "spammer_share": 0.25,
    },
    "repeated": {
        "n_items": 1_000,
        "n_annotators": 60,
        "n_categories": 4,
        "labels_per_item": 8,
        "behavior": "repeated",
        "spammer_share": 0.3,
    },
    "inverted": {
        "n_items": 500,
        "n_annotators": 80,
        "n_categories": 7,
        "labels_per_item": 12,
        "behavior": "inverted",
    },
    "large, random": {
        "n_items": 10_000,
        "n_annotators": 500,
        "n_categories": 3,
        "labels_per_item": 6,
        "spammer_share": 0.4,
    },
}
# Other crowds: items, annotators, categories, labels an item.
OTHER_SIZES = ((300, 40, 5, 10), (1_500, 100, 3, 5), (4_000, 250, 4, 3))
OTHER_BEHAVIORS = ("random", "mixed", "repeated", "inverted")
OTHER_SPAMMERS = (0.1, 0.3, 0.5)
NEAR = 1e-6  # a label
LONG = {"tol": 1e-12, "max_iter": 20_000}  # tol is that of a label
TARGET = 4.0


class Run(NamedTuple):
    """A fit: after every step the objective, the passes over the labels so far, and the seconds."""

    height: Floats
    passes: Codes
    seconds: Floats


class Pair(NamedTuple):
    """Two long fits: passes to near the end of the plain one, and what the other has more."""

    plain: Run
    fast: Run
    passes: tuple[float, float]
    more: float

    @property
    def ratio(self) -> float:
        return self.passes[0] / self.passes[1]


class Counted(BackgroundSession):
    """A session that counts its sweeps over the labels; those of leaps read none."""

    n_passes = 0

    def run_pass(self, sweep: Pass, *shared: Any) -> tuple[Floats, ...]:
        self.n_passes += not sweep.kernel.startswith("acceleration.")
        return super().run_pass(sweep, *shared)


class Counting:
    """The engine in memory, with a session that counts."""

    name: ClassVar[str] = "memory"

    def open(self, labels: LabelSummary) -> Session:
        self.session = Counted(get_engine("memory").open(labels), {})
        return self.session


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fewer_passes", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder of real labels, to add them")
    parser.add_argument("--models", nargs="*", default=MODELS, help="default: every one")
    parser.add_argument("--rounds", type=int, default=3, help="fits timed (default: 3)")
    parser.add_argument(
        "--others", action="store_true", help="36 other simulated crowds instead, in short"
    )
    options = parser.parse_args()

    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.others:
        tell_of_others(options.models)
        return 0
    crowds = tables(options.data_dir)
    for model in options.models:
        print(
            f"\n**{model}**: passes to within {NEAR:g} a label of the end of a long plain fit; what "
            "the end of a long accelerated fit has more, and what fits of the default tolerance "
            f"leave below the higher end, in {NEAR:g} a label.\n\n"
            "| labels | plain | accelerated | ratio | time | end | left, plain | accelerated |\n"
            "|---|--:|--:|--:|--:|--:|--:|--:|"
        )
        ratios = [compare(model, name, labels, options.rounds) for name, labels in crowds.items()]
        passes, times = (median(column) for column in zip(*ratios, strict=True))
        verdict = "met" if passes >= TARGET else "NOT met"
        print(
            f"\nMedian {passes:.2f} (time {times:.2f}); target {TARGET:g}: {verdict}.", flush=True
        )
    return 0


def tell_of_others(models: list[str]) -> None:
    """Print a row a model of how it does on other crowds."""
    crowds = other_crowds()
    print(
        f"{len(crowds)} other crowds; ends that differ by more than {NEAR:g} a label.\n\n"
        "| model | plain | accelerated | median ratio | range | lower | lowest | higher |\n"
        "|---|--:|--:|--:|---|--:|--:|--:|"
    )
    for model in models:
        pairs = [pair(model, labels) for labels in crowds]
        plain, fast = (median(column) for column in zip(*(p.passes for p in pairs), strict=True))
        ratios, more = [p.ratio for p in pairs], np.array([p.more for p in pairs])
        print(
            f"| {model} | {plain:g} | {fast:g} | {median(ratios):.2f} "
            f"| {min(ratios):.1f} to {max(ratios):.1f} | {(more < -1).sum()} "
            f"| {min(more.min(), 0.0):.1f} | {(more > 1).sum()} |",
            flush=True,
        )


def tables(folder: Path | None) -> dict[str, Labels]:
    """The labels to fit: real ones if there is a folder, and simulated ones."""
    real = {
        # In adult some annotators labelled an item again.
        name: read_labels(folder / name / "labels.csv", scale="ordinal", duplicates="last")
        for name in (REAL if folder else ())
        if folder
    }
    made = {
        name: simulate.crowd(**how, seed=seed).labels
        for seed, (name, how) in enumerate(SIMULATED.items(), start=1)
    }
    return {**real, **made}


def other_crowds() -> list[Labels]:
    """Crowds of other seeds, sizes, behaviors and shares of spammers."""
    kinds = product(OTHER_BEHAVIORS, OTHER_SIZES, OTHER_SPAMMERS)
    return [
        simulate.crowd(
            n_items=items,
            n_annotators=people,
            n_categories=categories,
            labels_per_item=each,
            behavior=behavior,
            spammer_share=spammers,
            seed=seed,
        ).labels
        for seed, (behavior, (items, people, categories, each), spammers) in enumerate(
            kinds, start=101
        )
    ]


def pair(model: str, labels: Labels) -> Pair:
    """Fit at length, with and without acceleration."""
    plain, fast = (
        run(model, labels, acceleration=on, **long(model, labels)) for on in (False, True)
    )
    goal = plain.height[-1] - NEAR * labels.n_labels
    passes = []
    for found in (plain, fast):
        near = found.height >= goal
        passes.append(float(found.passes[near.argmax()]) if near.any() else np.inf)
    more = float(fast.height[-1] - plain.height[-1]) / (NEAR * labels.n_labels)
    return Pair(plain, fast, (passes[0], passes[1]), more)


def long(model: str, labels: Labels) -> dict[str, Any]:
    """Options of a fit to the very end."""
    tol = LONG["tol"] * (1 if model == "dawid-skene" else labels.n_labels)
    return {"tol": tol, "max_iter": LONG["max_iter"]}


def compare(model: str, name: str, labels: Labels, rounds: int) -> tuple[float, float]:
    """Print a row, and return how many times fewer passes and seconds there were."""
    n = labels.n_labels
    both = pair(model, labels)
    seconds = []
    for on, found, passes in zip((False, True), both[:2], both.passes, strict=True):
        steps = int((found.passes <= passes).sum())
        enough = {**long(model, labels), "max_iter": steps}
        again = [run(model, labels, acceleration=on, **enough) for _ in range(rounds)]
        seconds.append(min(other.seconds[-1] for other in again))
    top = max(found.height[-1] for found in both[:2])
    left = [
        (top - run(model, labels, acceleration=on).height[-1]) / (NEAR * n) for on in (False, True)
    ]
    time = seconds[0] / seconds[1]
    print(
        f"| {name} | {both.passes[0]:g} | {both.passes[1]:g} | {both.ratio:.2f} | {time:.2f} "
        f"| {both.more:+.2f} | {left[0]:.2f} | {left[1]:.2f} |",
        flush=True,
    )
    return both.ratio, time


def run(model: str, labels: Labels, **options: Any) -> Run:
    """Fit, and count the passes and look at the clock after every step."""
    engine = Counting()
    times: list[float] = []
    passes: list[int] = []

    def look(progress: Progress) -> None:
        times.append(perf_counter())
        passes.append(engine.session.n_passes)

    fit = get_model(model)(**options, engine=engine).fit(labels, progress=look).result_
    # What the start takes is not known apart from the first step: together they count as one.
    return Run(height(fit), np.array(passes) - passes[0] + 1, np.array(times) - times[0])


def height(fit: Fit) -> Floats:
    """Return what rises, over all labels, at every pass."""
    if fit.model == "gpm":  # whose objective may be Q
        return fit.history.log_likelihood[:-1]
    return fit.history.objective * (fit.data.n_labels if fit.model == "dawid-skene" else 1)


if __name__ == "__main__":
    sys.exit(main())
