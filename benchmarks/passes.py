"""One EM pass over the labels: annotruth beside its peers, in one run on one machine."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack, closing

import numpy as np
import pandas as pd
from crowdkit.aggregation import MACE, DawidSkene

from annotruth.engines import Engine
from annotruth.engines.memory import MemoryEngine, ReferenceEngine
from annotruth.labels import Labels
from annotruth.models.gpm import _Steps
from benchmarks import machine
from benchmarks.crowds import peer_frame, simulated
from benchmarks.timing import Sample, Seconds, by_difference, by_steps, interleaved

AGREE_TO = 1e-12
TARGET = 50  # a MACE pass should take at least this many of ours

ONE_THREAD = "annotruth GPM"
ALL_THREADS = "annotruth GPM, all threads"
TWIN = "annotruth GPM, NumPy twin"
MACE_PASS = "crowd-kit MACE"
DAWID_SKENE_PASS = "crowd-kit DawidSkene"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--labels", type=int, default=1_000_000, help="default: 1,000,000")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each (default: 7)")
    options = parser.parse_args()

    labels = simulated(options.labels)
    print(f"{labels}\n{machine.describe()}\n")

    apart = disagreement(labels)
    with ExitStack() as stack:
        contenders = {**ours(labels, stack), **peers(peer_frame(labels))}
        measured = interleaved(contenders, options.rounds)

    print(table(measured, labels.n_labels))
    print(f"\nTarget: a GPM pass takes at most 1/{TARGET} of a MACE pass.")
    for name in (ONE_THREAD, ALL_THREADS):
        ratio = measured[MACE_PASS].median / measured[name].median
        print(f"- {name}: 1/{ratio:.1f}, {'met' if ratio >= TARGET else 'NOT met'}")
    agrees = all(value <= AGREE_TO for value in apart.values())
    print(f"\nKernel and twin after 3 steps {'agree' if agrees else 'DISAGREE'} to {AGREE_TO:g}:")
    print(", ".join(f"{name} {value:.1e}" for name, value in apart.items()))
    return 0 if agrees else 1


def ours(labels: Labels, stack: ExitStack) -> dict[str, Sample]:
    """GPM's own step: the sweep of the labels and the update of what annotators share."""

    def passes(engine: Engine, n_steps: int) -> Sample:
        session = stack.enter_context(closing(engine.open(labels)))
        steps = _Steps(labels, session, learned=False)
        return by_steps(steps.step, steps.start(), n_steps)

    return {
        ONE_THREAD: passes(MemoryEngine(threads=1), 20),
        ALL_THREADS: passes(MemoryEngine(), 20),
        TWIN: passes(ReferenceEngine(), 3),
    }


def peers(frame: pd.DataFrame) -> dict[str, Sample]:
    """One EM iteration of each peer, without its early stop and restarts."""

    def mace(n_iter: int) -> None:
        MACE(n_iter=n_iter, n_restarts=1).fit(frame)

    def dawid_skene(n_iter: int) -> None:
        fitted = DawidSkene(n_iter=n_iter, tol=-np.inf).fit(frame)
        assert len(fitted.loss_history_) == n_iter

    return {
        MACE_PASS: by_difference(mace, few=1, many=4),
        DAWID_SKENE_PASS: by_difference(dawid_skene, few=1, many=4),
    }


def disagreement(labels: Labels, n_steps: int = 3) -> dict[str, float]:
    """How far the compiled kernel is from its twin after some steps."""
    eps, theta, log_likelihood = [], [], []
    for engine in (MemoryEngine(), ReferenceEngine()):
        with closing(engine.open(labels)) as session:
            steps = _Steps(labels, session, learned=False)
            parameters = steps.start()
            for _ in range(n_steps):
                parameters, monitor = steps.step(parameters)
            eps.append(parameters.eps)
            theta.append(session.gather("theta"))
            log_likelihood.append(monitor.log_likelihood)
    return {
        "eps": float(np.abs(eps[0] - eps[1]).max()),
        "theta": float(np.abs(theta[0] - theta[1]).max()),
        "log-likelihood (relative)": abs(log_likelihood[0] / log_likelihood[1] - 1.0),
    }


def table(measured: dict[str, Seconds], n_labels: int) -> str:
    """A Markdown table; the ratios say how many of annotruth's passes fit into one."""
    one, every = measured[ONE_THREAD].median, measured[ALL_THREADS].median
    head = ["who", "threads", "ms per pass", "lowest to highest", "ns per label"]
    head += ["x annotruth's pass", "x annotruth's on all threads"]
    lines = [f"| {' | '.join(head)} |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for name, seconds in measured.items():
        ms = [1e3 * value for value in (seconds.median, *seconds.samples)]
        threads = MemoryEngine().threads if name == ALL_THREADS else 1
        lines.append(
            f"| {name} | {threads} | {ms[0]:.2f} | {min(ms):.2f} to {max(ms):.2f} "
            f"| {1e9 * seconds.median / n_labels:.2f} "
            f"| {seconds.median / one:.2f} | {seconds.median / every:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
