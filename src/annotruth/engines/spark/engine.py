"""`SparkEngine`: reads labels with Spark, and opens them for passes that Spark's tasks run."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from annotruth.engines.memory import MemoryEngine
from annotruth.engines.protocol import EngineCapabilities
from annotruth.engines.spark.cluster import errors_in_one_line, get_session, is_local
from annotruth.engines.spark.frames import is_spark_frame, read_frame
from annotruth.engines.spark.labels import SparkLabels
from annotruth.engines.spark.partitioning import partition_frame
from annotruth.engines.spark.session import SparkPassSession
from annotruth.engines.spark.storage import SharedFolder, make_folder, remove_folder
from annotruth.errors import InputError, option
from annotruth.io.parse import load_table
from annotruth.io.readers import load_labels
from annotruth.io.sources import file_named_in_errors
from annotruth.observations import LabelSummary
from annotruth.observations.options import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The options for reading that Spark does not support.
_UNSUPPORTED_OPTIONS = (
    *("query", "input_format", "question", "covariates", "content", "drop", "memory"),
)


@dataclass(frozen=True)
class SparkEngine:
    """Runs passes over labels in Spark, one task per partition.

    Parameters
    ----------
    spark
        The session, classic or Connect. The default is the session of the frame, else the active
        one, else a local one that is started.
    storage
        A folder that the driver and all workers can reach: a path on a shared disk, or
        ``hdfs://``, ``s3a://``, ``gs://``, ``abfss://``. Not needed where Spark runs on this
        machine only.
    partitions
        The number of partitions of the labels. By default Spark chooses it by their size.

    Examples
    --------
    >>> import annotruth as at
    >>> engine = at.SparkEngine(storage="s3a://bucket/annotruth", partitions=64)
    >>> fit = at.fit("crowd.votes", "gpm", engine=engine)  # doctest: +SKIP
    """

    name: ClassVar[str] = "spark"
    capabilities: ClassVar[EngineCapabilities] = EngineCapabilities(distributed=True)

    spark: SparkSession | None = None
    storage: str | Path | None = None
    partitions: int | None = None

    def read(
        self, source: Any, options: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
    ) -> LabelSummary:
        """Read labels from a Spark frame, a file or folder, or a table by its name.

        Labels, frames of other libraries and tuples are in memory and are returned as `Labels`,
        which are fitted in memory.
        """
        if annotator_prior is not None:
            raise InputError(
                f"{option('annotator_prior')} is not supported on Spark: leave it out, or fit in memory"
            )
        if isinstance(source, SparkLabels):
            if gold is not None:
                raise InputError("gold belongs to reading the labels: pass it there")
            return source
        if not (is_spark_frame(source) or isinstance(source, str | Path)):
            return load_labels(source, options, gold=gold)
        for name in _UNSUPPORTED_OPTIONS:
            if name in options.changed():
                raise InputError(f"{option(name)} is not supported on Spark: leave it out")
        for role in options.time_columns:
            raise InputError(
                f"the {role} of labels is not used on Spark: leave {role} out of {option('columns')}"
            )
        with file_named_in_errors(gold):
            gold = load_table(gold)
        with file_named_in_errors(source):
            return self._read_distributed(source, options, gold)

    def open(self, data: Any) -> Any:
        """Open labels that are in partitions on Spark, and data in memory where they are."""
        return (
            SparkPassSession(data) if isinstance(data, SparkLabels) else MemoryEngine().open(data)
        )

    def _read_distributed(self, source: Any, options: ReadOptions, gold: Any) -> SparkLabels:
        frame, from_text = source, False
        if not is_spark_frame(source):
            with errors_in_one_line("Spark cannot read it"):
                frame, from_text = read_frame(self.spark or get_session(), str(source))
        folder = self._new_folder(frame.sparkSession)
        try:
            with errors_in_one_line("Spark failed"):
                return partition_frame(
                    *(frame, folder, options),
                    gold=gold,
                    n_partitions=self.partitions,
                    from_text=from_text,
                )
        except BaseException:
            remove_folder(folder)
            raise

    def _new_folder(self, spark: SparkSession) -> SharedFolder:
        """Make a folder for labels."""
        local = is_local(spark)
        if self.storage is None and not local:
            raise InputError(
                "Spark runs on other machines: pass a folder that all of them can reach "
                f"({option('storage', 'URL')})"
            )
        storage = self.storage or f"file://{Path(tempfile.gettempdir()).resolve()}"
        # Workers on this machine belong to the same user.
        return make_folder(str(storage), private=local)
