"""Time of GPM's passes on Spark, whether it stays constant, and the driver's memory.

Labels with text ids are simulated into Parquet and fitted on Spark with a fixed number of passes.
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
from annotruth.engines.spark.cluster import get_session
from annotruth.engines.spark.labels import SparkLabels
from benchmarks import machine
from benchmarks.end_to_end import LABELS_PER_ITEM, call_in_process
from benchmarks.out_of_core import write

MAX_SECONDS_PER_PASS = 0.5
MAX_GROWTH = 1.2
MAX_DRIVER_GB = 2.0


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
        call_in_process(write, path, options.labels, options.annotators)
        engine = SparkEngine(get_session(options.master, silent=True))
        start, ticks = time.perf_counter(), []
        fit = at.fit(
            str(path),
            at.GPM(engine=engine, max_iter=options.passes, tol=0.0),
            progress=lambda _: ticks.append(time.perf_counter()),
        )
        end = time.perf_counter()
        assert fit.kind == "distributed"
        assert isinstance(fit.data, SparkLabels)
        n_partitions = len(fit.data.partitions)
        fit.close()
    passes = np.diff(ticks)
    first, last = passes[:10].mean(), passes[-10:].mean()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{options.labels:,} labels of {options.labels // LABELS_PER_ITEM:,} items by "
        f"{options.annotators:,} annotators on {options.master}, "
        f"{n_partitions} partitions\n\n"
        "| preparation s | seconds per pass | first ten | last ten | results s | driver GB |\n"
        "|--:|--:|--:|--:|--:|--:|\n"
        f"| {ticks[0] - start:.1f} | {np.median(passes):.3f} | {first:.3f} | {last:.3f} "
        f"| {end - ticks[-1]:.1f} | {peak:.2f} |\n"
    )
    is_constant = last <= MAX_GROWTH * first
    print(
        f"last ten at most {MAX_GROWTH:g} times the first ten: {'met' if is_constant else 'NOT met'}"
    )
    print(
        f"driver's Python below {MAX_DRIVER_GB:g} GB: {'met' if peak < MAX_DRIVER_GB else 'NOT met'}"
    )
    print(
        f"at most {MAX_SECONDS_PER_PASS:g} s per pass (for 10,000,000 labels on two cores): "
        f"{'met' if np.median(passes) <= MAX_SECONDS_PER_PASS else 'NOT met'}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
