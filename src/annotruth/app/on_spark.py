"""What the command line does for `fit --engine spark`."""

from __future__ import annotations

from collections.abc import Mapping

from annotruth.engines.spark import SparkEngine
from annotruth.engines.spark.failures import in_one_line
from annotruth.engines.spark.starting import running_session
from annotruth.engines.spark.storage import Storage
from annotruth.errors import InputError
from annotruth.models.spark_fit import SparkFit


def engine_of(master: str | None, storage: str | None) -> SparkEngine:
    """Find or start Spark there."""
    return SparkEngine(spark=running_session(master, silent=True), storage=storage)


def check_options(asked: Mapping[str, object], format: str) -> None:
    """Refuse what needs all items in memory."""
    for option, value in asked.items():
        if value is not None:
            raise InputError(f"{option} needs the items in memory, not on Spark: leave it out")
    if format == "json":
        raise InputError("Spark writes tables as csv or parquet: choose one of them")


def write_tables(found: SparkFit, out: str, format: str) -> None:
    """Write the frames, each a folder of files, in place of what was there, and fit.json."""
    for name in found.frames:
        with in_one_line(f"cannot write {name} to {out}"):
            writer = found.frames[name].write.mode("overwrite")
            writer.format(format).option("header", True).save(f"{out}/{name}.{format}")
    with Storage(out).create("fit.json") as file:
        file.write(found.to_json().encode())
