"""Work shared out to Spark's tasks, with small answers back."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from annotruth.engines.spark.failures import in_one_line, silent_on_pandas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Answer = TypeVar("Answer")
Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# Starting a task costs tens of milliseconds; some must wait, or Spark asks for no more machines.
_TASKS_A_CORE = 2
_ANSWERS = "place long, answer binary"


def run_tasks(spark: SparkSession, work: Callable[[int], Answer], n: int) -> list[Answer]:
    """Do ``work(0), work(1), ..`` in tasks, and return the answers in order.

    ``mapInArrow`` is what classic and Connect sessions both have. A task that is lost is run
    again, so work must not change what it reads.
    """
    n_tasks = min(n, _TASKS_A_CORE * _cores(spark)) or n

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield _told(place, work(place))

    return _heard(mapped(spark.range(0, n, 1, n_tasks), each, _ANSWERS))


def _cores(spark: SparkSession) -> int:
    """Count the cores that Spark has now; 0 where it does not say, as on Connect."""
    from pyspark.errors import PySparkException

    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:
        return 0


def run_on_rows(frame: DataFrame, work: Callable[[pa.Table], Answer | None]) -> list[Answer]:
    """Do ``work(rows)`` for every partition of a frame, and return the answers in their order."""

    def all_of_it(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        held = list(batches)
        answer = work(pa.Table.from_batches(held)) if held else None
        if answer is not None:
            context = TaskContext.get()
            assert context is not None
            yield _told(context.partitionId(), answer)

    return _heard(mapped(frame, all_of_it, _ANSWERS))


def mapped(frame: DataFrame, function: Function, schema: Any) -> DataFrame:
    """Have a function turn the batches of every partition into others."""
    with silent_on_pandas():
        return frame.mapInArrow(function, schema)


def _told(place: int, answer: Any) -> pa.RecordBatch:
    columns = [pa.array([place], pa.int64()), pa.array([pickle.dumps(answer)], pa.binary())]
    return pa.record_batch(columns, names=["place", "answer"])


def _heard(answers: DataFrame) -> list[Any]:
    with in_one_line("a task failed on Spark"):
        rows = sorted(answers.collect(), key=lambda row: int(row["place"]))
    return [pickle.loads(row["answer"]) for row in rows]
