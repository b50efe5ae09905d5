"""Passes over the labels to the optimum, with and without acceleration, in one run."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from annotruth import simulate
from annotruth.arrays import Floats
from annotruth.errors import ConvergenceWarning
from annotruth.io.readers import read_labels
from annotruth.labels import Labels
from annotruth.models.em import Progress
from annotruth.models.registry import model_named
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
NEAR = 1e-6  # a label
LONG = {"tol": 1e-12, "max_iter": 20_000}  # tol is that of a label
TARGET = 4.0


class Run(NamedTuple):
    """A fit with the objective, and the seconds since the first, of every pass."""

    height: Floats
    seconds: Floats


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fewer_passes", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder of real labels, to add them")
    parser.add_argument("--models", nargs="*", default=MODELS, help="default: every one")
    parser.add_argument("--rounds", type=int, default=3, help="fits timed (default: 3)")
    options = parser.parse_args()

    warnings.simplefilter("ignore", ConvergenceWarning)
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


def compare(model: str, name: str, labels: Labels, rounds: int) -> tuple[float, float]:
    """Print a row, and return how many times fewer passes and seconds there were."""
    n = labels.n_labels
    tol = LONG["tol"] * (1 if model == "dawid-skene" else n)
    long: dict[str, Any] = {"tol": tol, "max_iter": LONG["max_iter"]}
    plain, fast = (run(model, labels, acceleration=on, **long) for on in (False, True))
    goal = plain.height[-1] - NEAR * n
    steps, seconds = [], []
    for on, found in ((False, plain), (True, fast)):
        near = found.height >= goal
        steps.append(int(near.argmax()) + 1 if near.any() else np.inf)
        enough = {**long, "max_iter": int(min(steps[-1], len(found.height)))}
        again = [run(model, labels, acceleration=on, **enough) for _ in range(rounds)]
        seconds.append(min(other.seconds[-1] for other in again))
    top = max(plain.height[-1], fast.height[-1])
    left = [
        (top - run(model, labels, acceleration=on).height[-1]) / (NEAR * n) for on in (False, True)
    ]
    ratio, time = steps[0] / steps[1], seconds[0] / seconds[1]
    more = (fast.height[-1] - plain.height[-1]) / (NEAR * n)
    print(
        f"| {name} | {steps[0]} | {steps[1]} | {ratio:.2f} | {time:.2f} | {more:+.2f} "
        f"| {left[0]:.2f} | {left[1]:.2f} |",
        flush=True,
    )
    return ratio, time


def run(model: str, labels: Labels, **options: Any) -> Run:
    """Fit, and look at the clock after every pass."""
    times: list[float] = []

    def look(progress: Progress) -> None:
        times.append(perf_counter())

    fit = model_named(model)(**options).fit(labels, progress=look).result_
    return Run(height(fit), np.array(times) - times[0])


def height(fit: Fit) -> Floats:
    """Return what rises, over all labels, at every pass."""
    if fit.model == "gpm":  # whose objective may be Q
        return fit.trace.log_likelihood[:-1]
    return fit.trace.objective * (fit.data.n_labels if fit.model == "dawid-skene" else 1)


if __name__ == "__main__":
    sys.exit(main())
