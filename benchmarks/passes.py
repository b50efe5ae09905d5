"""One EM pass over the labels: annotruth beside its peers, in one run on one machine."""

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
from annotruth.labels import Labels
from annotruth.models import dawid_skene, gpm_steps
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.models.robust_gpm.single_precision import opinions_of
from annotruth.models.robust_gpm.steps import Opinions
from benchmarks import growth, machine, peerannot
from benchmarks.crowds import peer_frame, simulated
from benchmarks.timing import Sample, Seconds, by_difference, by_steps, interleaved

AGREE_TO = 1e-12
TARGET = 100  # a peer's pass should take at least this many of ours
ROBUST = 4  # a pass of RobustGPM should take at most this many of GPM
READS = 5  # a pass should take at most this many bare reads of its bytes
GAIN = 1.6  # two threads should be at least this much faster than one, from ten million labels on
POWER = 1.1  # time should grow with at most this power of the number of labels


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--labels", type=int, default=1_000_000, help="default: 1,000,000")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each (default: 7)")
    parser.add_argument(
        "--most", type=int, default=10_000_000, help="labels to grow to (default: 10,000,000)"
    )
    options = parser.parse_args()

    labels = simulated(options.labels)
    print(f"{labels}\n{machine.describe()}\n")

    apart = disagreement(labels)
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(limits=1, user_api="blas"))  # as RobustGPM fits
        contenders = {**ours(labels, stack), **peers(peer_frame(labels))}
        measured = interleaved(contenders, options.rounds)

    print(table(measured, labels.n_labels))
    print(f"\nOur passes in one of the peer's; the target is {TARGET} with the default engine.\n")
    print(ratios(measured))

    print(f"\n{few(options.labels, options.rounds)}")

    robust, plain = (measured[f"annotruth {name}, default"].median for name in ("RobustGPM", "GPM"))
    print(f"\nA pass of RobustGPM takes {robust / plain:.1f} of GPM; the target is {ROBUST}.")

    grown = growth.sizes(options.most, options.rounds)
    print(f"\nGrowth. Targets: {READS} bare reads, a gain of {GAIN}, a power of {POWER}.\n")
    print(growth.table(grown))
    print(f"\n{growth.told(grown)}")

    agrees = all(value <= AGREE_TO for value in apart.values())
    print(f"\nKernel and twin after 3 steps {'agree' if agrees else 'DISAGREE'} to {AGREE_TO:g}:")
    print(", ".join(f"{name} {value:.1e}" for name, value in apart.items()))
    return 0 if agrees else 1


def ours(labels: Labels, stack: ExitStack) -> dict[str, Sample]:
    """The models' own steps: the sweep of the labels and the update of what annotators share."""

    def passes(make: Callable[[Session], Any], engine: Engine, n_steps: int) -> Sample:
        steps = make(stack.enter_context(closing(engine.open(labels))))
        return by_steps(steps.step, steps.start(), n_steps)

    def of_gpm(session: Session) -> gpm_steps.Steps:
        return gpm_steps.Steps(labels, session, learned=False)

    def of_dawid_skene(session: Session) -> dawid_skene.Steps:
        return dawid_skene.Steps(labels, session)

    def of_robust_gpm(session: Session) -> Opinions:
        return opinions_of(labels, session, RobustGPM.tol)

    return {
        "annotruth GPM, 1 thread": passes(of_gpm, MemoryEngine(threads=1), 20),
        "annotruth GPM, default": passes(of_gpm, MemoryEngine(), 20),
        "annotruth GPM, NumPy twin": passes(of_gpm, ReferenceEngine(), 3),
        "annotruth DawidSkene, 1 thread": passes(of_dawid_skene, MemoryEngine(threads=1), 20),
        "annotruth DawidSkene, default": passes(of_dawid_skene, MemoryEngine(), 20),
        "annotruth RobustGPM, 1 thread": passes(of_robust_gpm, MemoryEngine(threads=1), 10),
        "annotruth RobustGPM, default": passes(of_robust_gpm, MemoryEngine(), 10),
    }


def peers(frame: pd.DataFrame) -> dict[str, Sample]:
    """One EM iteration of each peer, without its early stop and restarts."""

    def mace(n_iter: int) -> None:
        MACE(n_iter=n_iter, n_restarts=1).fit(frame)

    def of_dawid_skene(n_iter: int) -> None:
        fitted = DawidSkene(n_iter=n_iter, tol=-np.inf).fit(frame)
        assert len(fitted.loss_history_) == n_iter

    return {
        "crowd-kit MACE": by_difference(mace, few=1, many=4),
        "crowd-kit DawidSkene": by_difference(of_dawid_skene, few=1, many=4),
    }


def few(most: int, rounds: int) -> str:
    """A Markdown table of passes over as many labels as peerannot can do, or why there is none."""
    if not peerannot.installed():
        return peerannot.MISSING
    labels = simulated(min(most, peerannot.MOST))
    frame = peer_frame(labels)
    with ExitStack() as stack:
        theirs = by_difference(peerannot.model_of(peerannot.answers_of(frame)), few=1, many=3)
        contenders = {**ours(labels, stack), **peers(frame), peerannot.NAME: theirs}
        kept = {name: one for name, one in contenders.items() if "DawidSkene" in name}
        measured = interleaved(kept, min(rounds, 3))
    return f"{labels.describe()}:\n\n{table(measured, labels.n_labels)}"


def ratios(measured: dict[str, Seconds]) -> str:
    """A Markdown table of how many of our passes fit into one of the peer's."""
    lines = ["| peer | ours | 1 thread | default engine | |", "|---|---|--:|--:|---|"]
    for peer, model in [("MACE", "GPM"), ("DawidSkene", "GPM"), ("DawidSkene", "DawidSkene")]:
        theirs = measured[f"crowd-kit {peer}"].median
        one, every = (
            theirs / measured[f"annotruth {model}, {how}"].median for how in ("1 thread", "default")
        )
        verdict = "met" if every >= TARGET else "NOT met"
        lines.append(f"| crowd-kit {peer} | {model} | {one:.1f} | {every:.1f} | {verdict} |")
    return "\n".join(lines)


def disagreement(labels: Labels, n_steps: int = 3) -> dict[str, float]:
    """How far the compiled kernel is from its twin after some steps."""
    eps, theta, log_likelihood = [], [], []
    for engine in (MemoryEngine(), ReferenceEngine()):
        with closing(engine.open(labels)) as session:
            steps = gpm_steps.Steps(labels, session, learned=False)
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


def table(measured: dict[str, Seconds], n_labels: int) -> str:
    """A Markdown table of the times."""
    lines = ["| who | ms per pass | lowest to highest | ns per label |", "|---|--:|--:|--:|"]
    for name, seconds in measured.items():
        ms = [1e3 * value for value in (seconds.median, *seconds.samples)]
        lines.append(
            f"| {name} | {ms[0]:.2f} | {min(ms):.2f} to {max(ms):.2f} "
            f"| {1e9 * seconds.median / n_labels:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
