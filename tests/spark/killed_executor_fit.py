"""Kill an executor twice during a fit on a small cluster, and compare the results with memory."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import closing
from pathlib import Path

from comparison import assert_same_tables
from pyspark.sql import SparkSession

import annotruth as at
from annotruth import simulate
from annotruth.engines.spark import SparkEngine
from annotruth.engines.spark import labels as spark_labels
from annotruth.models.em import Progress

KILL_AFTER_ITERATIONS = (2, 4)
spark_labels.MAX_LABELS_ON_DRIVER = 0
storage = Path(sys.argv[1])
warnings.simplefilter("ignore", at.ConvergenceWarning)


def executors() -> list[int]:
    """Return the Java processes of this cluster's executors; -ww keeps long lines whole."""
    listing = subprocess.check_output(["ps", "-ww", "-eo", "pid,ppid,args"], text=True)
    rows = [line.split(None, 2) for line in listing.splitlines()[1:]]
    parents = {int(pid): int(parent) for pid, parent, _ in rows}

    def is_descendant(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    java = [int(pid) for pid, _, args in rows if "CoarseGrainedExecutorBackend" in args]
    return [pid for pid in java if is_descendant(pid)]


killed_after = []


def kill_executor(progress: Progress) -> None:
    """Kill an executor during the next pass."""
    if progress.n_iter in KILL_AFTER_ITERATIONS:
        while not (running := executors()):
            time.sleep(0.1)
        threading.Timer(0.1, os.kill, (running[0], signal.SIGKILL)).start()
        killed_after.append(progress.n_iter)


spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .config("spark.executor.memory", "600m")
    .getOrCreate()
)
table = simulate.crowd(n_items=60, n_annotators=10, n_categories=4, seed=5).labels.to_arrow()
engine = SparkEngine(spark, storage.as_uri(), partitions=4)
model = at.GPM(engine=engine, max_iter=8).fit(spark.createDataFrame(table), progress=kill_executor)
assert killed_after == list(KILL_AFTER_ITERATIONS)
with closing(model.result_) as fit:
    assert_same_tables(fit, at.GPM(max_iter=8).fit(table).result_)
assert not list(storage.iterdir()), "files of the fit remain"
spark.stop()
