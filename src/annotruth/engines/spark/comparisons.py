"""Comparisons in partitions of annotators, in a folder that Spark's workers can reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from annotruth.engines.protocol import Extent
from annotruth.engines.spark.cluster import run_tasks
from annotruth.engines.spark.labels import MAX_LABELS_ON_DRIVER
from annotruth.engines.spark.partitions import LOADED_PARTITIONS
from annotruth.engines.spark.storage import SharedFolder, remove_folder, storage_errors
from annotruth.kernels.arrays import Codes
from annotruth.observations.frames import as_numpy
from annotruth.observations.layout import check_index
from annotruth.observations.pairs.table import OUTCOMES, Comparisons

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ARRAYS = ("left", "right", "outcome", "annotator_ptr")

Result = TypeVar("Result")


class ComparisonPartition(NamedTuple):
    """The file of all comparisons of some annotators, whose codes follow each other."""

    file: str
    n_annotators: int
    n_comparisons: int
    n_items: int

    def length(self, per: Extent) -> int:
        """Return how many annotators or comparisons there are."""
        return {"annotators": self.n_annotators, "comparisons": self.n_comparisons}[per]

    def load(self, folder: SharedFolder) -> tuple[Comparisons, Codes]:
        """Return the comparisons, and the codes of their annotators: 0, 1, ..."""
        return _load(folder, self)


@dataclass(frozen=True, eq=False)
class SparkComparisons:
    """Comparisons in files, which Spark's workers read.

    Attributes
    ----------
    spark
        The session they belong to.
    folder
        The folder of their files, which holds nothing else.
    partitions
        The files, in the order of the annotators.
    """

    spark: SparkSession
    folder: SharedFolder
    partitions: list[ComparisonPartition]

    @property
    def n_annotators(self) -> int:
        """The number of annotators."""
        return sum(partition.n_annotators for partition in self.partitions)

    @property
    def n_labels(self) -> int:
        """The number of comparisons."""
        return sum(partition.n_comparisons for partition in self.partitions)

    def run_tasks(self, function: Callable[[int], Result], n: int) -> list[Result]:
        """Return ``[function(0), ..., function(n - 1)]``; Spark runs it, unless there is little to do."""
        if self.n_labels <= MAX_LABELS_ON_DRIVER:
            return [function(number) for number in range(n)]
        return run_tasks(self.spark, function, n)

    def close(self) -> None:
        """Remove the folder."""
        remove_folder(self.folder)


def partition_comparisons(
    data: Comparisons, spark: SparkSession, folder: SharedFolder, n_partitions: int
) -> SparkComparisons:
    """Write comparisons to partitions, which keep the order of the annotators."""
    partitions = []
    for first, last in pairwise(np.unique(data.partition(n_partitions)).tolist()):
        pointers = data.annotator_ptr[first : last + 1]
        rows = slice(int(pointers[0]), int(pointers[-1]))
        columns = {name: getattr(data, name)[rows] for name in _ARRAYS[:3]}
        file = folder.write("comparisons", {**columns, "annotator_ptr": pointers - pointers[0]})
        size = last - first, rows.stop - rows.start
        partitions.append(ComparisonPartition(file, *size, data.n_items))
    return SparkComparisons(spark, folder, partitions)


@lru_cache(maxsize=LOADED_PARTITIONS)
def _load(folder: SharedFolder, partition: ComparisonPartition) -> tuple[Comparisons, Codes]:
    """Read a partition; its lengths and codes are checked, as kernels check nothing."""
    with storage_errors("read", folder.address_of(partition.file)):
        columns = folder.read(partition.file)
        if missing := [name for name in _ARRAYS if name not in columns]:
            raise ValueError(f"{missing[0]} is missing")
        left, right, outcome, pointers = (as_numpy(columns[name]) for name in _ARRAYS)
        n, n_annotators = partition.n_comparisons, partition.n_annotators
        if {len(left), len(right), len(outcome)} != {n} or len(pointers) != n_annotators + 1:
            raise ValueError("its lengths are not those that were written")
        if pointers[0] != 0 or pointers[-1] != n or (np.diff(pointers) < 0).any():
            raise ValueError("its annotators' comparisons do not follow each other")
        for name, codes in (("left", left), ("right", right)):
            check_index(name, codes, partition.n_items)
        check_index("outcome", outcome, len(OUTCOMES))
    # Passes need no ids.
    data = Comparisons(
        items=pa.nulls(partition.n_items),
        annotators=pa.nulls(n_annotators),
        left=left,
        right=right,
        outcome=outcome,
        annotator_ptr=pointers,
        row=np.arange(n),
    )
    return data, np.arange(n_annotators)
