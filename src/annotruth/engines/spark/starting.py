"""Finding or starting Spark, and clear words where it is not there."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from annotruth.engines.spark.failures import in_one_line, silent_on_pandas
from annotruth.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def running_session(master: str | None = None, *, silent: bool = False) -> SparkSession:
    """Return the session that is running, or start one: on ``master``, or where Spark is set up.

    Without a word of that in its settings, it runs on this machine.

    A session that is started here is stopped at the program's end. ``sc://`` is a Connect server.
    With ``silent`` Java keeps its log to itself; what fails is raised here all the same.
    """
    _need_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    remote = os.environ.get("SPARK_REMOTE", "") if master is None else master
    if remote.startswith("sc://"):
        with silent_on_pandas(), in_one_line(f"no Spark at {remote}"):
            return SparkSession.builder.remote(remote).getOrCreate()
    _need_java()
    # Workers need the packages that we have.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("annotruth")
    if master is not None:
        builder = builder.master(master)
    for name, value in _QUIET.items():
        builder = builder.config(name, value)
    quiet = _stderr_closed() if silent else nullcontext()
    with silent_on_pandas(), in_one_line("Spark did not start"), quiet:
        session = builder.getOrCreate()
    atexit.register(session.stop)
    return session


@contextmanager
def _stderr_closed() -> Iterator[None]:
    """Start programs whose standard error goes nowhere."""
    kept = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def frame_of(spark: SparkSession, source: str) -> tuple[DataFrame, bool]:
    """Read a file or folder by its ending, or take a table by its name.

    The second value says whether the columns had no types, as in a CSV.
    """
    ending = Path(source).suffix.lower()
    if ending in (".csv", ".tsv"):
        separator = "\t" if ending == ".tsv" else ","
        return spark.read.csv(source, header=True, sep=separator, inferSchema=False), True
    if ending in (".json", ".jsonl", ".ndjson"):
        return spark.read.json(source), False
    if ending in (".parquet", ".orc"):
        return spark.read.format(ending[1:]).load(source), False
    if "/" in source or Path(source).exists():
        return spark.read.load(source), False
    return spark.table(source), False


def is_local(spark: SparkSession) -> bool:
    """Whether all of Spark runs on this machine."""
    from pyspark.errors import PySparkException

    try:
        return str(spark.conf.get("spark.master")).startswith("local")
    except PySparkException:
        return False


def _need_pyspark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise InputError("Spark is not installed: pip install 'annotruth[spark]'")


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and Path(home, "bin", "java").exists()) and shutil.which("java") is None:
        raise InputError(
            "Spark needs Java 17 or newer, and there is none: install it (on Debian apt install "
            "openjdk-17-jre-headless, on a Mac brew install openjdk@17) or set JAVA_HOME"
        )
