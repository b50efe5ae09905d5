"""Labels in partitions, in a folder that Spark's workers can reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.protocol import DistributedLabels
from annotruth.engines.spark.cluster import run_tasks
from annotruth.engines.spark.partitions import (
    AnnotatorPartition,
    AnnotatorRanges,
    LabelPartition,
    load_partition,
    write_partition,
)
from annotruth.engines.spark.storage import SharedFolder, remove_folder
from annotruth.observations import Labels, Scale
from annotruth.observations.frames import as_arrow, as_numpy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_LABELS_ON_DRIVER = 250_000
"""The most labels that the driver makes passes over."""

Result = TypeVar("Result")


class DataInPartitions:
    """Labels in files, which hold nothing else in their folder."""

    spark: SparkSession
    folder: SharedFolder

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        raise NotImplementedError

    def run_tasks(self, function: Callable[[int], Result], n: int) -> list[Result]:
        """Return ``[function(0), ..., function(n - 1)]``, computed in tasks that read the files.

        Spark runs them, unless the labels are few: then a pass over them takes this process less
        time than it takes Spark to start a job.
        """
        if self.n_labels <= MAX_LABELS_ON_DRIVER:
            return [function(number) for number in range(n)]
        return run_tasks(self.spark, function, n)

    def close(self) -> None:
        """Remove the folder."""
        remove_folder(self.folder)


@dataclass(frozen=True, eq=False, repr=False)
class SparkLabels(DataInPartitions, DistributedLabels):
    """Labels in files: whatever has one entry per item or label is read by Spark's workers only."""

    spark: SparkSession
    folder: SharedFolder
    scale: Scale
    partitions: list[LabelPartition]  # each with all labels of some items
    annotator_partitions: list[AnnotatorPartition]  # in the order of their codes
    n_dropped: int = 0
    annotator_prior: NDArray[np.float64] | None = None
    frame: str = "spark"
    read_as: str = ""

    @property
    def n_items(self) -> int:
        """The number of items."""
        return sum(partition.n_items for partition in self.partitions)

    @property
    def n_annotators(self) -> int:
        """The number of annotators."""
        return sum(partition.n_annotators for partition in self.annotator_partitions)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return sum(partition.n_labels for partition in self.partitions)

    @property
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """The number of labels of each annotator."""
        return np.concatenate(
            [
                as_numpy(partition.read(self.folder)["n_labels"])
                for partition in self.annotator_partitions
            ]
        )

    @cached_property
    def labels_per_category(self) -> NDArray[np.int64]:
        """The number of labels of each annotator in each category, annotators x categories."""
        ranges = AnnotatorRanges.for_sums(self.partitions, self.n_annotators, self.n_categories)
        task = partial(_write_label_counts, self.folder, self.partitions, ranges)
        files = self.run_tasks(task, len(self.partitions))
        counts = np.empty((self.n_annotators, self.n_categories), dtype=np.int64)
        for rows, sums in ranges.add_sums(self.run_tasks, self.folder, files, self.n_categories):
            counts[rows] = sums
        return counts


def _write_label_counts(
    folder: SharedFolder, partitions: list[LabelPartition], ranges: AnnotatorRanges, number: int
) -> str:
    labels, annotator_codes = load_partition(folder, partitions[number])
    counts = labels.labels_per_category.astype(np.float64)
    return ranges.write_sums(folder, annotator_codes, counts)


def partition_labels(
    labels: Labels, spark: SparkSession, folder: SharedFolder, n_partitions: int
) -> SparkLabels:
    """Write labels in memory to partitions, which keep the order of the items."""
    partitions = []
    for start, stop in pairwise(np.unique(labels.partition(n_partitions))):
        cells = labels.item_ptr[start : stop + 1]
        ends = labels.cell_ptr[cells[0] : cells[-1] + 1]
        codes, annotator = np.unique(labels.annotator[ends[0] : ends[-1]], return_inverse=True)
        some_items = Labels(
            items=labels.items[start:stop],
            annotators=labels.annotators.take(as_arrow(codes)),
            scale=labels.scale,
            item_ptr=cells - cells[0],
            cell_category=labels.cell_category[cells[0] : cells[-1]],
            cell_ptr=ends - ends[0],
            annotator=annotator.astype(np.int32),
            row=np.arange(len(annotator)),
            known=labels.known[start:stop],
        )
        partitions.append(write_partition(folder, some_items, codes.astype(np.int64)))
    annotators = folder.write(
        "annotators", {"annotators": labels.annotators, "n_labels": labels.labels_per_annotator}
    )
    return SparkLabels(
        spark=spark,
        folder=folder,
        scale=labels.scale,
        partitions=partitions,
        annotator_partitions=[AnnotatorPartition(annotators, labels.n_annotators)],
    )
