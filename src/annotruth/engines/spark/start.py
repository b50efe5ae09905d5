"""Finding or starting a Spark session, with clear messages where Spark is missing."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from annotruth.engines.spark.errors import (
    errors_in_one_line,
    spark_errors,
    without_pandas_warning,
)
from annotruth.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def get_session(master: str | None = None, *, silent: bool = False) -> SparkSession:
    """Return the active Spark session, or start one, which is stopped when the program ends.

    Parameters
    ----------
    master
        Where a new session runs: ``local[4]``, ``spark://host:7077``, ``yarn``, or ``sc://host`` for
        a Connect server. By default where Spark's settings say, else on this machine.
    silent
        Whether to hide Java's log. Errors are raised in Python all the same.
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
