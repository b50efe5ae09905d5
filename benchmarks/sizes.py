"""How time and memory of a fit grow with the labels: annotruth beside its peers."""

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

from annotruth.report.charts import Spec, svg
from benchmarks import machine, peerannot

N_ITER = 10  # of every contender: growth is told of equal work


class Measured(NamedTuple):
    """One contender on one number of labels."""

    who: str
    n_labels: int
    seconds: float
    peak: float  # GB


class Contender(NamedTuple):
    """Who is measured, and up to how many labels: beyond that, peers take many minutes."""

    make: Callable[[str], Callable[[Any], object]]
    name: str
    most: int


def of_annotruth(name: str) -> Callable[[Any], object]:
    import annotruth as at

    # Far from where any of them stops, but RobustGPM may work in single precision, as it does.
    return lambda frame: at.fit(frame, name, tol=1e-6, max_iter=N_ITER)


def of_crowdkit(name: str) -> Callable[[Any], object]:
    from crowdkit import aggregation

    options: dict[str, Any] = {"MACE": {"n_restarts": 1}, "DawidSkene": {"tol": -1.0}}[name]
    return lambda frame: getattr(aggregation, name)(n_iter=N_ITER, **options).fit(frame)


def of_peerannot(_: str) -> Callable[[Any], object]:
    return lambda frame: peerannot.model_of(peerannot.answers_of(frame))(N_ITER)


CONTENDERS = {
    "annotruth gpm": Contender(of_annotruth, "gpm", 10**7),
    "annotruth robust-gpm": Contender(of_annotruth, "robust-gpm", 10**7),
    "annotruth dawid-skene": Contender(of_annotruth, "dawid-skene", 10**7),
    "crowd-kit MACE": Contender(of_crowdkit, "MACE", 10**6),
    "crowd-kit DawidSkene": Contender(of_crowdkit, "DawidSkene", 10**6),
    peerannot.NAME: Contender(of_peerannot, "DawidSkene", peerannot.MOST),
}


def measure(who: str, n_labels: int) -> Measured:
    """Fit once to warm up on few labels, then on all of them; from frame to fitted model."""
    import warnings

    from benchmarks.crowds import peer_frame, simulated

    warnings.simplefilter("ignore")  # ten iterations are a cap, and every model says so
    fit = CONTENDERS[who].make(CONTENDERS[who].name)
    fit(peer_frame(simulated(1_000)))
    frame = peer_frame(simulated(n_labels))
    began = perf_counter()
    fit(frame)
    seconds = perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return Measured(who, n_labels, seconds, peak)


def measured(most: int) -> list[Measured]:
    """Measure every contender on every size, each in a process of its own."""
    found = []
    for who, contender in CONTENDERS.items():
        if who == peerannot.NAME and not peerannot.installed():
            print(peerannot.MISSING)
            continue
        for size in (10**power for power in range(4, 8)):
            if size > min(most, contender.most):
                break
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                found.append(process.submit(measure, who, size).result())
    return found


def table(found: list[Measured]) -> str:
    """A Markdown table: seconds and the peak of memory, with the data in it."""
    lines = ["| who | labels | seconds | peak GB |", "|---|--:|--:|--:|"]
    lines += [f"| {m.who} | {m.n_labels:,} | {m.seconds:.3g} | {m.peak:.2f} |" for m in found]
    return "\n".join(lines)


def plot(found: list[Measured]) -> Spec:
    """Seconds by labels, both by powers of ten, a line for each contender."""
    records = [{"who": m.who, "labels": m.n_labels, "seconds": m.seconds} for m in found]
    axis = {"type": "quantitative", "scale": {"type": "log"}}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": records},
        "width": 460,
        "height": 300,
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "labels", **axis},
            "y": {"field": "seconds", "title": f"seconds for {N_ITER} iterations", **axis},
            "color": {"field": "who", "type": "nominal", "title": None},
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    parser.add_argument("--most", type=int, default=10**7, help="labels to grow to")
    parser.add_argument("--plot", type=Path, help="draw the growth here, as SVG")
    options = parser.parse_args()
    found = measured(options.most)
    print(f"{machine.describe()}\n\n{table(found)}")
    if options.plot is not None:
        options.plot.write_text(svg(plot(found)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
