"""GPM's passes on Spark: how long, whether they stay as long, and what the driver takes.

Labels with text ids are simulated into Parquet, fitted on Spark with a fixed number of passes and,
unless there is no room, in memory for comparison.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import annotruth as at
from annotruth.engines.spark import SparkEngine
from annotruth.engines.spark.starting import running_session
from benchmarks import machine
from benchmarks.large import write
from benchmarks.way import LABELS_PER_ITEM, apart

SECONDS_A_PASS = 0.5
GROWTH = 1.2
GB = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--labels", type=int, default=10_000_000, help="default: 10,000,000")
    parser.add_argument("--annotators", type=int, default=50_000, help="default: 50,000")
    parser.add_argument("--passes", type=int, default=60, help="default: 60")
    parser.add_argument("--master", default="local[2]", help="default: local[2]")
    options = parser.parse_args()
    warnings.simplefilter("ignore", at.ConvergenceWarning)

    print(f"{machine.describe(('annotruth', 'numpy', 'pyspark'))}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.parquet"
        apart(write, path, options.labels, options.annotators)
        engine = SparkEngine(running_session(options.master, silent=True))
        begin, ticks = time.perf_counter(), []
        found = at.fit(
            str(path),
            at.GPM(engine=engine, max_iter=options.passes, tol=0.0),
            progress=lambda _: ticks.append(time.perf_counter()),
        )
        end = time.perf_counter()
        found.close()
    passes = np.diff(ticks)
    first, last = passes[:10].mean(), passes[-10:].mean()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{options.labels:,} labels of {options.labels // LABELS_PER_ITEM:,} items by "
        f"{options.annotators:,} annotators on {options.master}, "
        f"{len(found.data.chunks)} chunks\n\n"
        "| preparation s | seconds a pass | first ten | last ten | reading out s | driver GB |\n"
        "|--:|--:|--:|--:|--:|--:|\n"
        f"| {ticks[0] - begin:.1f} | {np.median(passes):.3f} | {first:.3f} | {last:.3f} "
        f"| {end - ticks[-1]:.1f} | {peak:.2f} |\n"
    )
    flat = last <= GROWTH * first
    print(f"the last ten at most {GROWTH:g} times the first ten: {'met' if flat else 'NOT met'}")
    print(f"driver's Python below {GB:g} GB: {'met' if peak < GB else 'NOT met'}")
    print(
        f"at most {SECONDS_A_PASS:g} s a pass (for 10,000,000 labels on two cores): "
        f"{'met' if np.median(passes) <= SECONDS_A_PASS else 'NOT met'}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
