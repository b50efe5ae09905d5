"""The parts of `annotruth fit --engine spark` that differ from a fit in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotruth.engines.spark import SparkEngine
from annotruth.engines.spark.cluster import errors_in_one_line, get_session
from annotruth.engines.spark.storage import SharedFolder
from annotruth.errors import InputError
from annotruth.models.result import Fit
from annotruth.observations.options import ReadOptions

if TYPE_CHECKING:
    from annotruth.app.outputs import Outputs


def make_engine(master: str | None, storage: str | None) -> SparkEngine:
    """Return an engine on the active Spark session, or on one that is started."""
    return SparkEngine(spark=get_session(master, silent=True), storage=storage)


def check_options(
    labels: list[str], read: ReadOptions, truth: str | None, outputs: Outputs
) -> None:
    """Refuse sources, options and outputs of a fit that need all items in memory."""
    sets = {"--sets": read.sets or None, "--separator": read.separator}
    for flag, value in {"--truth": truth, **sets, **outputs.local_only()}.items():
        if value is not None:
            raise InputError(f"{flag} needs all items in memory: leave it out with --engine spark")
    if outputs.format_.value == "json":
        raise InputError("Spark writes csv or parquet: pass --format csv or --format parquet")
    if outputs.safe_cells:
        raise InputError("--safe-cells is not for tables that Spark writes: leave it out")
    if len(labels) > 1:
        raise InputError("--engine spark reads one source: name a folder of files, or a table")


def write_tables(fit: Fit, out: str, table_format: str) -> None:
    """Write fit.json and the frames, one folder each, in place of existing ones."""
    assert fit.frames is not None
    for name in fit.frames:
        with errors_in_one_line(f"cannot write {name} to {out}"):
            writer = fit.frames[name].write.mode("overwrite").option("header", True)
            writer.format(table_format).save(f"{out}/{name}.{table_format}")
    with SharedFolder(out).create("fit.json") as file:
        file.write(fit.to_json().encode())
