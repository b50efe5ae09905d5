"""The engine for labels that outgrow a machine: chunks in files, swept by Spark's tasks."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from annotruth.engines.protocol import EngineCapabilities
from annotruth.engines.spark.failures import in_one_line
from annotruth.engines.spark.labels import SparkLabels
from annotruth.engines.spark.packing import pack, pack_labels
from annotruth.engines.spark.session import SparkPasses
from annotruth.engines.spark.starting import frame_of, is_local, running_session
from annotruth.engines.spark.storage import Storage
from annotruth.errors import InputError
from annotruth.io.options import ReadOptions
from annotruth.io.readers import file_named_in_errors, load_table
from annotruth.labels import Labels, LabelSummary, TableOptions
from annotruth.labels.frames import is_spark_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine", "SparkLabels"]

_CHUNKS = 4  # of labels in memory, which are few


@dataclass(frozen=True)
class SparkEngine:
    """Labels on Spark, swept by a task a chunk.

    Parameters
    ----------
    spark
        The session, classic or Connect. Without one it is the frame's, or the one that is running,
        or a local one that is started.
    storage
        A folder that the driver and all workers reach: a path on a shared disk, or ``hdfs://``,
        ``s3a://``, ``gs://``, ``abfss://``. Not needed where all of Spark runs on this machine.
    partitions
        Into how many chunks labels are cut; without it Spark decides by their size.
    """

    name: ClassVar[str] = "spark"
    capabilities: ClassVar[EngineCapabilities] = EngineCapabilities(
        distributed=True, annotator_prior=False
    )

    spark: SparkSession | None = None
    storage: str | Path | None = None
    partitions: int | None = None

    def read(
        self, source: Any, options: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
    ) -> LabelSummary:
        """Read labels from a Spark frame, a file or folder, or a table by its name.

        Labels that are in memory or on Spark already are returned as they are.
        """
        if annotator_prior is not None:
            raise InputError("annotator_prior is not for labels on Spark: leave it out")
        if isinstance(source, Labels):
            return source if gold is None else source.with_gold(gold)
        if isinstance(source, SparkLabels):
            return source
        for name in ("input_format", "question", "memory"):
            if getattr(options, name) is not None:
                raise InputError(f"{name} is not for labels on Spark: leave it out")
        with file_named_in_errors(gold):
            gold = load_table(gold)
        with file_named_in_errors(source):
            if not (is_spark_frame(source) or isinstance(source, str | Path)):
                return (
                    Labels.of(source, options)
                    if gold is None
                    else Labels.of(source, options).with_gold(gold)
                )
            return self.labels_of(source, options, gold=gold)

    def open(self, labels: LabelSummary) -> SparkPasses:
        """Return a session on labels that are in chunks, or lay them out so."""
        if isinstance(labels, SparkLabels):
            return SparkPasses(
                labels.spark, labels.storage, labels.chunks, labels.n_annotators, _nothing
            )
        assert isinstance(labels, Labels)
        spark = self.spark or running_session()
        folder = self._folder(spark)
        try:
            chunks = pack_labels(labels, folder, self.partitions or _CHUNKS)
        except BaseException:
            folder.remove_all()
            raise
        return SparkPasses(spark, folder, chunks, labels.n_annotators, folder.remove_all)

    def labels_of(
        self, data: DataFrame | str | Path, options: TableOptions | None = None, *, gold: Any = None
    ) -> SparkLabels:
        """Check and lay out labels: of a frame, a file or folder, or a table by its name."""
        frame, from_text = data, False
        if isinstance(frame, str | Path):
            with in_one_line("Spark cannot read it"):
                frame, from_text = frame_of(self.spark or running_session(), str(frame))
        folder = self._folder(frame.sparkSession)
        try:
            return pack(
                frame,
                folder,
                options or TableOptions(),
                gold=gold,
                partitions=self.partitions,
                from_text=from_text,
            )
        except BaseException:
            folder.remove_all()
            raise

    def _folder(self, spark: SparkSession) -> Storage:
        if self.storage is not None:
            return Storage(str(self.storage)).new_folder()
        if not is_local(spark):
            raise InputError(
                "Spark runs on other machines: name a folder that all of them reach (storage)"
            )
        return Storage(Path(tempfile.gettempdir()).resolve().as_uri()).new_folder()


def _nothing() -> None:
    """Leave the files to their owner."""
