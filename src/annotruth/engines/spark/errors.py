"""Spark's errors and warnings, as one-line messages."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from annotruth.errors import AnnotruthError, InputError

_EXCEPTION_LINE = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt): .+")


@contextmanager
def errors_in_one_line(action: str) -> Iterator[None]:
    """Replace what Spark raises by one line that begins with ``action``; Spark's is its cause."""
    from pyspark.errors import AnalysisException, PySparkException

    errors: list[type[Exception]] = [PySparkException]
    with suppress(ImportError):  # a Connect client needs no Java, so no py4j
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        errors.append(Py4JError)
    try:
        yield
    except AnalysisException as error:
        raise InputError(f"{action}: {_first_line(str(error))}") from error
    except tuple(errors) as error:
        raise AnnotruthError(f"{action}: {_reason(str(error))}") from error


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Hide pyspark's warning that it does not support the newest pandas, which is not used."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


def _reason(text: str) -> str:
    """Return the reason in an error text: advice where it is known, else the last exception."""
    if "No module named 'annotruth'" in text:
        return "annotruth is missing on Spark's workers: install the same version there as here"
    if "JAVA_GATEWAY_EXITED" in text:
        return "Java could not start Spark: Java 17 or newer is needed (see `java -version`)"
    lines = (line.strip() for line in text.splitlines())
    exceptions = [line for line in lines if _EXCEPTION_LINE.match(line)]
    return exceptions[-1] if exceptions else _first_line(text)


def _first_line(text: str) -> str:
    """Return the first line that is not blank, without the SQLSTATE that Spark appends."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].split(" SQLSTATE:")[0] if lines else "Spark gave no reason"
