"""Sessions of Spark, tasks on its workers, and its errors in one line."""

from __future__ import annotations

import atexit
import importlib.util
import os
import pickle
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from annotruth.errors import AnnotruthError, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXCEPTION_LINE = re.compile(r"^(?:: )?((?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt): .+)")
_OWN_ERROR = re.compile(r"^annotruth\.errors\.\w+: ")

_STOPPED = "Spark was stopped or killed: start a new session and fit again"

# What Spark's texts contain, and the line to say instead; the first that matches.
_KNOWN_REASONS = {
    r"No module named 'annotruth'": (
        "annotruth is missing on Spark's workers: install the same version there as here"
    ),
    r"JAVA_GATEWAY_EXITED": (
        "Java could not start Spark: Java 17 or newer is needed (see `java -version`)"
    ),
    r"SparkContext was shut down|stopped SparkContext|Java side is empty": _STOPPED,
    r"SPARK_JOB_CANCELLED|OPERATION_CANCELED": "the job was cancelled: fit again",
    r"Python worker exited unexpectedly|Python worker keeps failing": (
        "a Python worker was killed or crashed: if it ran out of memory, raise "
        "spark.executor.memoryOverhead, or make more partitions (`SparkEngine(partitions=...)`)"
    ),
    r"ExecutorLostFailure": (
        "executors were lost again and again: if they ran out of memory, raise "
        "spark.executor.memory and spark.executor.memoryOverhead"
    ),
}


@contextmanager
def errors_in_one_line(action: str) -> Iterator[None]:
    """Replace what Spark raises by one line that begins with ``action``; Spark's is its cause."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        raise InputError(f"{action}: {_first_line(str(error))}") from error
    except ConnectionError as error:  # Java has ended
        raise AnnotruthError(f"{action}: {_STOPPED}") from error
    except spark_errors() as error:
        raise AnnotruthError(f"{action}: {_reason(str(error))}") from error


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the errors that pyspark raises."""
    from pyspark.errors import PySparkException

    errors: tuple[type[Exception], ...] = (PySparkException, ConnectionError)
    with suppress(ImportError):  # a Connect client needs no Java, so no py4j
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        errors = (*errors, Py4JError)
    return errors


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Hide pyspark's warning that it does not support the newest pandas, which is not used."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


def _reason(text: str) -> str:
    """Return the reason in an error text: advice where it is known, else the last exception."""
    for pattern, reason in _KNOWN_REASONS.items():
        if re.search(pattern, text):
            return reason
    found = [_EXCEPTION_LINE.match(line.strip()) for line in text.splitlines()]
    exceptions = [match[1] for match in found if match is not None]
    return _OWN_ERROR.sub("", exceptions[-1]) if exceptions else _first_line(text)


def _first_line(text: str) -> str:
    """Return the first line that is not blank, without the SQLSTATE that Spark appends."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].split(" SQLSTATE:")[0] if lines else "Spark gave no reason"


Result = TypeVar("Result")

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

    return _map_and_collect(spark.range(0, n, 1, n_tasks), call)


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

    return _map_and_collect(frame, call)


# Spark pickles functions on their way to the workers, and results return the same way; nothing
# pickled is stored in a file.


def _result_batch(number: int, result: Any) -> pa.RecordBatch:
    columns = [pa.array([number], pa.int64()), pa.array([pickle.dumps(result)], pa.binary())]
    return pa.record_batch(columns, names=["number", "result"])


def _map_and_collect(
    frame: DataFrame, call: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> list[Any]:
    """Return the results of a function of each partition's batches, by their numbers."""
    with without_pandas_warning():
        results = frame.mapInArrow(call, _RESULT_SCHEMA)
    with errors_in_one_line("a Spark task failed"):
        rows = sorted(results.collect(), key=lambda row: int(row["number"]))
    return [pickle.loads(row["result"]) for row in rows]


_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def get_session(master: str | None = None, *, silent: bool = False) -> SparkSession:
    """Return the active Spark session, or start one, which is stopped when the program ends.

    ``master``: Where a new session runs: ``local[4]``, ``spark://host:7077``, ``yarn``, or
      ``sc://host`` for a Connect server. By default where Spark's settings say, else on this
      machine.
    ``silent``: Whether to hide Java's log. Errors are raised in Python all the same.
    """
    _check_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    remote = os.environ.get("SPARK_REMOTE", "") if master is None else master
    if remote.startswith("sc://"):
        with without_pandas_warning(), errors_in_one_line(f"cannot connect to Spark at {remote}"):
            return SparkSession.builder.remote(remote).getOrCreate()
    _check_java()
    # Workers on this machine need the packages of this Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("annotruth")
    if master is not None:
        builder = builder.master(master)
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    hidden = _stderr_hidden() if silent else nullcontext()
    with without_pandas_warning(), errors_in_one_line("Spark did not start"), hidden:
        session = builder.getOrCreate()
    atexit.register(_stop, session)
    return session


def _stop(session: SparkSession) -> None:
    with suppress(*spark_errors()):  # Java may have ended before
        session.stop()


@contextmanager
def _stderr_hidden() -> Iterator[None]:
    """Start processes with a standard error that is discarded."""
    kept = os.dup(2)
    with Path(os.devnull).open("wb") as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def is_local(spark: SparkSession) -> bool:
    """Whether driver and workers run on this machine; False where it is unknown, as on Connect."""
    from pyspark.errors import PySparkException

    try:
        return str(spark.conf.get("spark.master")).startswith("local")
    except PySparkException:
        return False


def _check_pyspark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise InputError("Spark is not installed: pip install 'annotruth[spark]'")


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and Path(home, "bin", "java").exists()) and shutil.which("java") is None:
        raise InputError(
            "Spark needs Java 17 or newer, and none was found: install it (on Debian apt install "
            "openjdk-17-jre-headless, on a Mac brew install openjdk@17) or set JAVA_HOME"
        )
