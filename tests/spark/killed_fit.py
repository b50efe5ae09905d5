"""Kill an executor twice during a fit on a small cluster; compare the answer with memory."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

from comparing import same_tables
from pyspark.sql import SparkSession

import annotruth as at
from annotruth import simulate
from annotruth.engines.spark import SparkEngine
from annotruth.models.em import Progress

KILLED_AT = (2, 4)
folder = Path(sys.argv[1])
warnings.simplefilter("ignore", at.ConvergenceWarning)


def executors() -> list[int]:
    """Find the Java processes of this cluster's executors."""
    listed = subprocess.check_output(["ps", "-eo", "pid,ppid,args"], text=True)
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    parents = {int(pid): int(parent) for pid, parent, _ in rows}

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    found = [int(pid) for pid, _, args in rows if "CoarseGrainedExecutorBackend" in args]
    return [pid for pid in found if is_ours(pid)]


killed = []


def kill_one(progress: Progress) -> None:
    """Kill while the next pass is under way."""
    if progress.n_iter in KILLED_AT:
        while not (running := executors()):
            time.sleep(0.1)
        threading.Timer(0.1, os.kill, (running[0], signal.SIGKILL)).start()
        killed.append(progress.n_iter)


spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .config("spark.executor.memory", "600m")
    .getOrCreate()
)
table = simulate.crowd(n_items=60, n_annotators=10, n_categories=4, seed=5).labels.to_arrow()
engine = SparkEngine(spark, folder.as_uri(), partitions=4)
fit = at.GPM(engine=engine, max_iter=8).fit(spark.createDataFrame(table), progress=kill_one)
assert killed == list(KILLED_AT)
with fit.result_ as found:
    same_tables(found, at.GPM(max_iter=8).fit(table).result_)
assert not list(folder.iterdir()), "state files were left"
spark.stop()
