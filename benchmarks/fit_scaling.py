"""Time and memory of a fit by number of labels: annotruth compared with other packages."""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from annotruth.report.charts.chart import Chart
from annotruth.report.charts.panels import LineAxes, line_chart
from benchmarks import machine, peerannot

N_ITER = 10  # of every model, so that the work is equal


class FitResult(NamedTuple):
    """Time and memory of one model on one number of labels."""

    model: str
    n_labels: int
    seconds: float
    peak: float  # GB


class Contender(NamedTuple):
    """A model, and the largest size, beyond which other packages take many minutes."""

    make: Callable[[str], Callable[[Any], object]]
    name: str
    max_labels: int


def of_annotruth(name: str) -> Callable[[Any], object]:
    import annotruth as at

    # No model converges in N_ITER iterations at this tolerance, and RobustGPM still uses single
    # precision, as with its default.
    return lambda frame: at.fit(frame, name, tol=1e-6, max_iter=N_ITER)


def of_crowdkit(name: str) -> Callable[[Any], object]:
    from crowdkit import aggregation

    of_models: dict[str, dict[str, Any]] = {"MACE": {"n_restarts": 1}, "DawidSkene": {"tol": -1.0}}
    options = of_models[name]
    return lambda frame: getattr(aggregation, name)(n_iter=N_ITER, **options).fit(frame)


def of_peerannot(_: str) -> Callable[[Any], object]:
    return lambda frame: peerannot.make_model(peerannot.labels_by_task(frame))(N_ITER)


CONTENDERS = {
    "annotruth gpm": Contender(of_annotruth, "gpm", 10**7),
    "annotruth robust-gpm": Contender(of_annotruth, "robust-gpm", 10**7),
    "annotruth dawid-skene": Contender(of_annotruth, "dawid-skene", 10**7),
    "crowd-kit MACE": Contender(of_crowdkit, "MACE", 10**6),
    "crowd-kit DawidSkene": Contender(of_crowdkit, "DawidSkene", 10**6),
    peerannot.NAME: Contender(of_peerannot, "DawidSkene", peerannot.MAX_LABELS),
}


def measure(model: str, n_labels: int) -> FitResult:
    """Measure a fit from a frame, after one fit of few labels to warm up."""
    import warnings

    from benchmarks.crowds import peer_frame, simulated

    warnings.simplefilter("ignore")  # models warn that ten iterations do not converge
    fit = CONTENDERS[model].make(CONTENDERS[model].name)
    fit(peer_frame(simulated(1_000)))
    frame = peer_frame(simulated(n_labels))
    start = perf_counter()
    fit(frame)
    seconds = perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return FitResult(model, n_labels, seconds, peak)


def measure_all(max_labels: int) -> list[FitResult]:
    """Measure every model on every size, each in a separate process."""
    results = []
    for model, contender in CONTENDERS.items():
        if model == peerannot.NAME and not peerannot.installed():
            print(peerannot.MISSING)
            continue
        for size in (10**power for power in range(4, 8)):
            if size > min(max_labels, contender.max_labels):
                break
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                results.append(process.submit(measure, model, size).result())
    return results


def table(results: list[FitResult]) -> str:
    """Return a Markdown table of seconds and peak memory, data included."""
    lines = ["| model | labels | seconds | peak GB |", "|---|--:|--:|--:|"]
    lines += [f"| {r.model} | {r.n_labels:,} | {r.seconds:.3g} | {r.peak:.2f} |" for r in results]
    return "\n".join(lines)


def plot(results: list[FitResult]) -> Chart:
    """Return a log-log chart of seconds by labels, one line per model."""
    rows = [{"panel": "", "series": r.model, "x": r.n_labels, "y": r.seconds} for r in results]
    axes = LineAxes("labels", f"seconds for {N_ITER} iterations", log=True)
    return line_chart("growth", "Time by number of labels", "", rows, axes)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit_scaling", description=__doc__)
    parser.add_argument(
        "--max-labels", type=int, default=10**7, help="largest size (default: 10,000,000)"
    )
    parser.add_argument("--plot", type=Path, help="write a chart here, as SVG")
    options = parser.parse_args()
    results = measure_all(options.max_labels)
    print(f"{machine.describe()}\n\n{table(results)}")
    if options.plot is not None:
        plot(results).save(options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
