"""Passes over the labels to the optimum, with and without acceleration (SQUAREM)."""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from annotruth import simulate
from annotruth.engines import Pass
from annotruth.engines.memory import MemoryEngine, MemorySession, check_local
from annotruth.errors import ConvergenceWarning
from annotruth.io.readers import read_labels
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import Progress
from annotruth.models.registry import make_estimator
from annotruth.models.result import Fit
from annotruth.observations import Labels

MODELS = ("gpm", "dawid-skene", "glad", "ordinal-binary", "ordinal-mixture", "subject-bias")
DATASETS = ("face", "dog", "duck", "product", "rte", "web", "adult", "ftv", "movielens-100k")
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
# Other crowds: items, annotators, categories, labels per item.
OTHER_SIZES = ((300, 40, 5, 10), (1_500, 100, 3, 5), (4_000, 250, 4, 3))
OTHER_BEHAVIORS = ("random", "mixed", "repeated", "inverted")
OTHER_SPAMMERS = (0.1, 0.3, 0.5)
CLOSE = 1e-6  # in the objective, per label
LONG = {"tol": 1e-12, "max_iter": 20_000}  # tol per label
TARGET = 4.0


class FitTrace(NamedTuple):
    """The objective, the number of passes and the seconds after every step of a fit."""

    objective: Floats
    passes: Codes
    seconds: Floats


class FitPair(NamedTuple):
    """Long fits without and with acceleration.

    ``passes`` are those to within `CLOSE` of the plain fit's end; ``gain`` is the difference of
    the objectives at the ends, in units of `CLOSE`.
    """

    plain: FitTrace
    accelerated: FitTrace
    passes: tuple[float, float]
    gain: float

    @property
    def ratio(self) -> float:
        return self.passes[0] / self.passes[1]


class CountingSession(MemorySession):
    """A session that counts its passes over the labels; those of SQUAREM read no labels."""

    n_passes = 0

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        self.n_passes += not one.kernel.startswith("squarem.")
        return super().run_pass(one, **inputs)


class CountingEngine(MemoryEngine):
    """The engine in memory, with a session that counts passes."""

    def open(self, data: Any) -> CountingSession:
        self.session = CountingSession(check_local(data), self.threads)
        return self.session


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.acceleration", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder of real labels, to include them")
    parser.add_argument("--models", nargs="*", default=MODELS, help="default: all")
    parser.add_argument("--rounds", type=int, default=3, help="timed fits (default: 3)")
    parser.add_argument(
        "--other-crowds", action="store_true", help="summarize 36 other simulated crowds instead"
    )
    options = parser.parse_args()

    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.other_crowds:
        print_other_crowds(options.models)
        return 0
    crowds = read_crowds(options.data_dir)
    for model in options.models:
        print(
            f"\n**{model}**: passes to within {CLOSE:g} per label of the objective at the end of a "
            "long plain fit; the gain at the end of a long accelerated fit, and what fits with the "
            f"default tolerance leave to the higher end, in units of {CLOSE:g} per label.\n\n"
            "| labels | plain | accelerated | ratio | time | gain | left, plain | accelerated |\n"
            "|---|--:|--:|--:|--:|--:|--:|--:|"
        )
        ratios = [print_row(model, name, labels, options.rounds) for name, labels in crowds.items()]
        passes, times = (median(column) for column in zip(*ratios, strict=True))
        verdict = "met" if passes >= TARGET else "NOT met"
        print(
            f"\nMedian {passes:.2f} (time {times:.2f}); target {TARGET:g}: {verdict}.", flush=True
        )
    return 0


def print_other_crowds(models: list[str]) -> None:
    """Print one row per model that summarizes other crowds."""
    crowds = other_crowds()
    print(
        f"{len(crowds)} other crowds; numbers of ends that differ by more than {CLOSE:g} per label.\n\n"
        "| model | plain | accelerated | median ratio | range | lower | lowest | higher |\n"
        "|---|--:|--:|--:|---|--:|--:|--:|"
    )
    for model in models:
        pairs = [fit_pair(model, labels) for labels in crowds]
        plain, accelerated = (
            median(column) for column in zip(*(p.passes for p in pairs), strict=True)
        )
        ratios, gain = [p.ratio for p in pairs], np.array([p.gain for p in pairs])
        print(
            f"| {model} | {plain:g} | {accelerated:g} | {median(ratios):.2f} "
            f"| {min(ratios):.1f} to {max(ratios):.1f} | {(gain < -1).sum()} "
            f"| {min(gain.min(), 0.0):.1f} | {(gain > 1).sum()} |",
            flush=True,
        )


def read_crowds(folder: Path | None) -> dict[str, Labels]:
    """Return simulated labels and, if there is a folder, real ones."""
    real = {
        # adult has repeated labels of one annotator on one item.
        name: read_labels(folder / name / "labels.csv", scale="ordinal", duplicates="last")
        for name in (DATASETS if folder else ())
        if folder
    }
    simulated = {
        name: simulate.crowd(**options, seed=seed).labels
        for seed, (name, options) in enumerate(SIMULATED.items(), start=1)
    }
    return {**real, **simulated}


def other_crowds() -> list[Labels]:
    """Return crowds of other seeds, sizes, behaviors and shares of spammers."""
    combinations = product(OTHER_BEHAVIORS, OTHER_SIZES, OTHER_SPAMMERS)
    return [
        simulate.crowd(
            n_items=items,
            n_annotators=annotators,
            n_categories=categories,
            labels_per_item=per_item,
            behavior=behavior,
            spammer_share=spammers,
            seed=seed,
        ).labels
        for seed, (behavior, (items, annotators, categories, per_item), spammers) in enumerate(
            combinations, start=101
        )
    ]


def fit_pair(model: str, labels: Labels) -> FitPair:
    """Fit to convergence at a very small tolerance, without and with acceleration."""
    plain, accelerated = (
        trace_fit(model, labels, acceleration=on, **long_options(model, labels))
        for on in (False, True)
    )
    close = CLOSE * labels.n_labels
    passes = []
    for trace in (plain, accelerated):
        is_close = trace.objective >= plain.objective[-1] - close
        passes.append(float(trace.passes[is_close.argmax()]) if is_close.any() else np.inf)
    gain = float(accelerated.objective[-1] - plain.objective[-1]) / close
    return FitPair(plain, accelerated, (passes[0], passes[1]), gain)


def long_options(model: str, labels: Labels) -> dict[str, Any]:
    """Return the options of a fit with a very small tolerance."""
    tol = LONG["tol"] * (1 if model == "dawid-skene" else labels.n_labels)
    return {"tol": tol, "max_iter": LONG["max_iter"]}


def print_row(model: str, name: str, labels: Labels, rounds: int) -> tuple[float, float]:
    """Print a row; return the ratio of passes and of seconds without and with acceleration."""
    pair = fit_pair(model, labels)
    traces = (pair.plain, pair.accelerated)
    seconds = []
    for on, trace, passes in zip((False, True), traces, pair.passes, strict=True):
        n_steps = int((trace.passes <= passes).sum())
        options = {**long_options(model, labels), "max_iter": n_steps}
        timed = [trace_fit(model, labels, acceleration=on, **options) for _ in range(rounds)]
        seconds.append(min(each.seconds[-1] for each in timed))
    highest = max(trace.objective[-1] for trace in traces)
    ends = [trace_fit(model, labels, acceleration=on).objective[-1] for on in (False, True)]
    left = [(highest - end) / (CLOSE * labels.n_labels) for end in ends]
    time = seconds[0] / seconds[1]
    print(
        f"| {name} | {pair.passes[0]:g} | {pair.passes[1]:g} | {pair.ratio:.2f} | {time:.2f} "
        f"| {pair.gain:+.2f} | {left[0]:.2f} | {left[1]:.2f} |",
        flush=True,
    )
    return pair.ratio, time


def trace_fit(model: str, labels: Labels, **options: Any) -> FitTrace:
    """Fit a model; store the objective, the passes and the time after every step."""
    engine = CountingEngine()
    times: list[float] = []
    passes: list[int] = []

    def observe(progress: Progress) -> None:
        times.append(perf_counter())
        passes.append(engine.session.n_passes)

    fit = make_estimator(model, {**options, "engine": engine}).fit(labels, progress=observe).result_
    # The initialization and the first step together count as one pass.
    return FitTrace(objective_of(fit), np.array(passes) - passes[0] + 1, np.array(times) - times[0])


def objective_of(fit: Fit) -> Floats:
    """Return the objective that EM increases, summed over all labels, after every step."""
    if fit.model == "gpm":  # whose history may be of Q
        return fit.history.log_likelihood[:-1]
    return fit.history.objective * (fit.data.n_labels if fit.model == "dawid-skene" else 1)


if __name__ == "__main__":
    sys.exit(main())
