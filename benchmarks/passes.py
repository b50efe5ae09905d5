"""Time of one EM pass over the labels: annotruth compared with other packages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
import pandas as pd
from crowdkit.aggregation import MACE, DawidSkene
from threadpoolctl import threadpool_limits

from annotruth.engines import Engine, Session
from annotruth.engines.memory import MemoryEngine, ReferenceEngine
from annotruth.models.confusion import dawid_skene
from annotruth.models.gpm import GPM
from annotruth.models.robust_gpm.opinions import OpinionShapes, OpinionSteps
from annotruth.observations import Labels
from benchmarks import machine, peerannot, scaling
from benchmarks.crowds import peer_frame, simulated
from benchmarks.timing import Sample, Timings, measure_in_turn, time_difference, time_steps

AGREE_TO = 1e-12
TARGET = 100  # minimum ratio of another package's pass to annotruth's
ROBUST = 4  # maximum ratio of RobustGPM's pass to GPM's
READS = 5  # maximum ratio of a pass to a bare read of its bytes
GAIN = 1.6  # minimum speed-up by two threads, from ten million labels on
POWER = 1.1  # maximum power of the number of labels with which time grows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--labels", type=int, default=1_000_000, help="default: 1,000,000")
    parser.add_argument(
        "--rounds", type=int, default=7, help="measurements per contender (default: 7)"
    )
    parser.add_argument(
        "--max-labels", type=int, default=10_000_000, help="largest size (default: 10,000,000)"
    )
    options = parser.parse_args()

    labels = simulated(options.labels)
    print(f"{labels}\n{machine.describe()}\n")

    differences = kernel_differences(labels)
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(limits=1, user_api="blas"))  # as in fits of RobustGPM
        contenders = {**own_passes(labels, stack), **peer_passes(peer_frame(labels))}
        measured = measure_in_turn(contenders, options.rounds)

    print(table(measured, labels.n_labels))
    print(
        f"\nPasses of annotruth in the time of one of crowd-kit; the target is {TARGET} with the default engine.\n"
    )
    print(ratios(measured))

    print(f"\n{compare_dawid_skene(options.labels, options.rounds)}")

    robust, plain = (measured[f"annotruth {name}, default"].median for name in ("RobustGPM", "GPM"))
    print(
        f"\nA pass of RobustGPM takes {robust / plain:.1f} of GPM; the target is at most {ROBUST}."
    )

    results = scaling.measure_sizes(options.max_labels, options.rounds)
    print(f"\nGrowth. Targets: {READS} bare reads, a gain of {GAIN}, a power of {POWER}.\n")
    print(scaling.table(results))
    print(f"\n{scaling.describe_growth(results)}")

    is_equal = all(value <= AGREE_TO for value in differences.values())
    print(
        f"\nCompiled and NumPy kernel after 3 steps {'agree' if is_equal else 'DISAGREE'} to {AGREE_TO:g}:"
    )
    print(", ".join(f"{name} {value:.1e}" for name, value in differences.items()))
    return 0 if is_equal else 1


def own_passes(labels: Labels, stack: ExitStack) -> dict[str, Sample]:
    """Return the EM steps of annotruth's models: pass over the labels, update of the parameters."""

    def passes(make: Callable[[Session], Any], engine: Engine, n_steps: int) -> Sample:
        steps = make(stack.enter_context(closing(engine.open(labels))))
        return time_steps(steps.step, steps.start(), n_steps)

    def of_gpm(session: Session) -> Any:
        return GPM()._steps(labels, session)

    def of_dawid_skene(session: Session) -> Any:
        return dawid_skene.DawidSkene()._steps(labels, session)

    def of_robust_gpm(session: Session) -> OpinionSteps:
        return OpinionSteps(OpinionShapes(labels), session)

    return {
        "annotruth GPM, 1 thread": passes(of_gpm, MemoryEngine(threads=1), 20),
        "annotruth GPM, default": passes(of_gpm, MemoryEngine(), 20),
        "annotruth GPM, NumPy reference": passes(of_gpm, ReferenceEngine(), 3),
        "annotruth DawidSkene, 1 thread": passes(of_dawid_skene, MemoryEngine(threads=1), 20),
        "annotruth DawidSkene, default": passes(of_dawid_skene, MemoryEngine(), 20),
        "annotruth RobustGPM, 1 thread": passes(of_robust_gpm, MemoryEngine(threads=1), 10),
        "annotruth RobustGPM, default": passes(of_robust_gpm, MemoryEngine(), 10),
    }


def peer_passes(frame: pd.DataFrame) -> dict[str, Sample]:
    """Return one EM iteration of each other package, without early stopping and restarts."""

    def mace(n_iter: int) -> None:
        MACE(n_iter=n_iter, n_restarts=1).fit(frame)

    def of_dawid_skene(n_iter: int) -> None:
        model = DawidSkene(n_iter=n_iter, tol=-np.inf).fit(frame)
        assert len(model.loss_history_) == n_iter

    return {
        "crowd-kit MACE": time_difference(mace, few=1, many=4),
        "crowd-kit DawidSkene": time_difference(of_dawid_skene, few=1, many=4),
    }


def compare_dawid_skene(n_labels: int, rounds: int) -> str:
    """Return a table of Dawid-Skene's passes over as many labels as peerannot can process."""
    if not peerannot.installed():
        return peerannot.MISSING
    labels = simulated(min(n_labels, peerannot.MAX_LABELS))
    frame = peer_frame(labels)
    with ExitStack() as stack:
        model = peerannot.make_model(peerannot.labels_by_task(frame))
        contenders = {
            **own_passes(labels, stack),
            **peer_passes(frame),
            peerannot.NAME: time_difference(model, few=1, many=3),
        }
        compared = {name: each for name, each in contenders.items() if "DawidSkene" in name}
        measured = measure_in_turn(compared, min(rounds, 3))
    return f"{labels.describe()}:\n\n{table(measured, labels.n_labels)}"


def ratios(measured: dict[str, Timings]) -> str:
    """Return a Markdown table of the ratios of crowd-kit's passes to annotruth's."""
    lines = ["| crowd-kit | annotruth | 1 thread | default engine | |", "|---|---|--:|--:|---|"]
    for peer, model in [("MACE", "GPM"), ("DawidSkene", "GPM"), ("DawidSkene", "DawidSkene")]:
        peer_median = measured[f"crowd-kit {peer}"].median
        one, default = (
            peer_median / measured[f"annotruth {model}, {threads}"].median
            for threads in ("1 thread", "default")
        )
        verdict = "met" if default >= TARGET else "NOT met"
        lines.append(f"| {peer} | {model} | {one:.1f} | {default:.1f} | {verdict} |")
    return "\n".join(lines)


def kernel_differences(labels: Labels, n_steps: int = 3) -> dict[str, float]:
    """Return the differences between compiled and NumPy kernel after some steps."""
    eps, theta, log_likelihood = [], [], []
    for engine in (MemoryEngine(), ReferenceEngine()):
        with closing(engine.open(labels)) as session:
            steps = GPM()._steps(labels, session)
            parameters = steps.start()
            for _ in range(n_steps):
                parameters, monitor = steps.step(parameters)
            eps.append(parameters.eps)
            theta.append(session.collect("theta"))
            log_likelihood.append(monitor.log_likelihood)
    return {
        "eps": float(np.abs(eps[0] - eps[1]).max()),
        "theta": float(np.abs(theta[0] - theta[1]).max()),
        "log-likelihood (relative)": abs(log_likelihood[0] / log_likelihood[1] - 1.0),
    }


def table(measured: dict[str, Timings], n_labels: int) -> str:
    """Return a Markdown table of the times."""
    lines = ["| model | ms per pass | lowest to highest | ns per label |", "|---|--:|--:|--:|"]
    for name, timings in measured.items():
        ms = [1e3 * value for value in (timings.median, *timings.samples)]
        lines.append(
            f"| {name} | {ms[0]:.2f} | {min(ms):.2f} to {max(ms):.2f} "
            f"| {1e9 * timings.median / n_labels:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
