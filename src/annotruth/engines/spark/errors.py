"""Spark's errors and warnings, as one-line messages."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from annotruth.errors import AnnotruthError, InputError

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
