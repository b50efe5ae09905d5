"""Functions that run in Spark's tasks and return small results to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from annotruth.engines.spark.errors import errors_in_one_line, without_pandas_warning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Result = TypeVar("Result")
RunTasks = Callable[[Callable[[int], Any], int], list[Any]]
MapBatches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# Starting a task costs tens of milliseconds, so there are few; but more than cores, because Spark
# requests more machines only while tasks are waiting.
_TASKS_PER_CORE = 2
_RESULT_SCHEMA = "number long, result binary"


def run_tasks(spark: SparkSession, function: Callable[[int], Result], n: int) -> list[Result]:
    """Return ``[function(0), ..., function(n - 1)]``, computed in Spark's tasks.

    A task that is lost runs again, so the function must not change what it reads. ``mapInArrow``
    is what classic and Connect sessions have in common.
    """
    n_tasks = min(n, _TASKS_PER_CORE * _count_cores(spark)) or n

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _result_batch(number, function(number))

    return _collect_results(map_batches(spark.range(0, n, 1, n_tasks), call, _RESULT_SCHEMA))


def _count_cores(spark: SparkSession) -> int:
    """Return how many cores Spark has now; 0 where that is unknown, as on Connect."""
    from pyspark.errors import PySparkException

    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:
        return 0


def run_on_partitions(
    frame: DataFrame, function: Callable[[pa.Table], Result | None]
) -> list[Result]:
    """Return ``function(rows)`` of every partition of a frame, in order, without the Nones."""

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        rows = list(batches)
        result = function(pa.Table.from_batches(rows)) if rows else None
        if result is not None:
            context = TaskContext.get()
            assert context is not None
            yield _result_batch(context.partitionId(), result)

    return _collect_results(map_batches(frame, call, _RESULT_SCHEMA))


def map_batches(frame: DataFrame, function: MapBatches, schema: Any) -> DataFrame:
    """Return the frame of the batches that the function makes of each partition's batches."""
    with without_pandas_warning():
        return frame.mapInArrow(function, schema)


# Spark pickles functions on their way to the workers, and results return the same way; nothing
# pickled is stored in a file.


def _result_batch(number: int, result: Any) -> pa.RecordBatch:
    columns = [pa.array([number], pa.int64()), pa.array([pickle.dumps(result)], pa.binary())]
    return pa.record_batch(columns, names=["number", "result"])


def _collect_results(frame: DataFrame) -> list[Any]:
    with errors_in_one_line("a Spark task failed"):
        rows = sorted(frame.collect(), key=lambda row: int(row["number"]))
    return [pickle.loads(row["result"]) for row in rows]
