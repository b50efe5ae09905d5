"""Fit on a Spark Connect session: results, frames that outlive their fit, and errors."""

import contextlib
import os
import signal
import sys
import threading
import time

from comparison import assert_same_tables
from frame_uses import USES, count_rows
from pyspark.sql import SparkSession

import annotruth as at
from annotruth import simulate
from annotruth.engines.spark import SparkEngine
from annotruth.engines.spark import labels as spark_labels
from annotruth.engines.spark.cluster import run_tasks

spark = SparkSession.builder.remote("local[2]").getOrCreate()
engine = SparkEngine(spark, sys.argv[1])
table = simulate.crowd(n_items=30, n_annotators=8, n_categories=3, seed=2).labels.to_arrow()
frame = spark.createDataFrame(table)
assert "connect" in type(frame).__module__

for name, most_on_driver in {"gpm": 0, "dawid-skene": 10**6}.items():
    spark_labels.MAX_LABELS_ON_DRIVER = most_on_driver
    with contextlib.closing(at.fit(frame, name, engine=engine, tol=0.1)) as fit:
        assert_same_tables(fit, at.fit(table, name, tol=0.1))

expected = count_rows(table)
for use in USES:
    assert len(use(frame, engine)) == expected[use.__name__], use.__name__


def error_of(function):
    """Return the line that a task which calls this function ends with."""
    try:
        run_tasks(spark, function, 1)
    except at.AnnotruthError as error:
        return str(error)
    raise AssertionError("no error")


def interrupt():
    while not spark.interruptAll():
        time.sleep(0.2)


error = error_of(lambda number: os.kill(os.getpid(), signal.SIGKILL))
assert error.startswith("a Spark task failed: a Python worker was killed or crashed"), error
threading.Thread(target=interrupt).start()
error = error_of(lambda number: time.sleep(60))
assert error == "a Spark task failed: the job was cancelled: fit again", error
spark.stop()
