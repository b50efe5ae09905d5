"""Spark's failures in one line each."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from annotruth.errors import AnnotruthError, InputError

_RAISED = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt): .+")


@contextmanager
def in_one_line(doing: str) -> Iterator[None]:
    """Turn what Spark raises into one line that says what to do; the rest stays its cause."""
    from pyspark.errors import AnalysisException, PySparkException

    errors: list[type[Exception]] = [PySparkException]
    with suppress(ImportError):  # a client of Connect has no Java to talk to
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        errors.append(Py4JError)
    try:
        yield
    except AnalysisException as error:
        raise InputError(f"{doing}: {_first(str(error))}") from error
    except tuple(errors) as error:
        raise AnnotruthError(f"{doing}: {_told(str(error))}") from error


@contextmanager
def silent_on_pandas() -> Iterator[None]:
    """Keep to oneself that pyspark does not know the newest pandas: nothing of pandas is used."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


def _told(text: str) -> str:
    if "No module named 'annotruth'" in text:
        return "Spark's workers have no annotruth: install the same version there as here"
    if "JAVA_GATEWAY_EXITED" in text:
        return "Java did not start Spark: it must be Java 17 or newer (java -version)"
    raised = [line.strip() for line in text.splitlines() if _RAISED.match(line.strip())]
    return raised[-1] if raised else _first(text)


def _first(text: str) -> str:
    """Take the first line that says something, up to where Spark's own advice begins."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].split(" SQLSTATE:")[0] if lines else "Spark gave no reason"
