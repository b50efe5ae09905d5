"""Tables that tasks write, as Spark frames."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from annotruth.engines.spark.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Frames:
    """Spark frames by name, and the folder of the files behind them.

    The folder goes when this is closed, or when nobody holds it any more.
    """

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark = spark
        self._storage = storage
        self._by_name: dict[str, DataFrame] = {}
        self.close = weakref.finalize(self, storage.remove_all)

    def add(self, name: str, files: Iterable[str]) -> None:
        """Make a frame of Parquet files that tasks have written."""
        paths = [self._storage.address(file) for file in files]
        self._by_name[name] = self._spark.read.parquet(*paths)

    def __getitem__(self, name: str) -> DataFrame:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)


def write_rows(storage: Storage, kind: str, rows: pa.Table) -> str:
    """Write rows of a table to a new Parquet file, and return its name."""
    name = storage.new_name(kind, "parquet")
    with storage.create(name) as sink:
        pq.write_table(rows, sink)
    return name
