"""Spark frames: read from a source, or made of tables that tasks wrote."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from annotruth.engines.spark.labels import SparkLabels
from annotruth.engines.spark.storage import SharedFolder, make_sibling, remove_folder
from annotruth.errors import AnnotruthError
from annotruth.observations.frames import distributed_library

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_spark_frame(data: Any) -> bool:
    """Whether this is a Spark frame, of a classic or a Connect session."""
    return distributed_library(data) == "spark"


def read_frame(spark: SparkSession, source: str) -> tuple[DataFrame, bool]:
    """Return the frame of a file or folder, by its ending, or of a table, by its name.

    The second value is whether the columns have no types, as in a CSV.
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


class SparkFrames:
    """The tables of a fit as Spark frames by name, and the folder of the files behind them.

    Spark reads the files whenever a frame is used, or another one that was made of it, and does not
    say when that is over. So once a frame was taken, its files remain until `close`, or until the
    program ends; if none was, they are removed with this object.
    """

    def __init__(self, labels: SparkLabels) -> None:
        self._labels = labels
        self.folder = make_sibling(labels.folder)
        self._frames: dict[str, DataFrame] = {}
        self._closed = False
        self._remove_unused = weakref.finalize(self, remove_folder, self.folder)

    def add(self, name: str, files: Iterable[str]) -> None:
        """Add a frame of Parquet files in the folder."""
        addresses = [self.folder.address_of(file) for file in files]
        self._frames[name] = self._labels.spark.read.parquet(*addresses)

    def write_annotators(self, columns: Mapping[str, Any]) -> None:
        """Write the annotators' table, and add its frame."""
        ids = self._labels.annotators
        table = pa.table({**{name: ids[name] for name in ids.column_names}, **columns})
        self.add("annotators", [write_parquet(self.folder, "annotators", table)])

    def columns(self, name: str) -> list[str]:
        """Return the names of a frame's columns."""
        return list(self._frames[name].columns)

    def __getitem__(self, name: str) -> DataFrame:
        if self._closed:
            raise AnnotruthError(
                "this fit was closed, which removed its tables: fit again, and close it after use"
            )
        self._remove_unused.detach()
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def release(self) -> None:
        """Remove the files unless a frame was taken."""
        if self._remove_unused.alive:
            self.close()

    def close(self) -> None:
        """Remove the files: frames that were taken can no longer be used."""
        self._closed = True
        remove_folder(self.folder)


def write_parquet(folder: SharedFolder, kind: str, table: pa.Table) -> str:
    """Write a table to a new Parquet file, and return its name."""
    name = folder.new_name(kind, "parquet")
    with folder.create(name) as sink:
        pq.write_table(table, sink)
    return name
