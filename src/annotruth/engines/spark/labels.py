"""Labels that lie in chunks, in a folder that Spark's workers reach."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.spark.chunks import Chunk, Slices, load
from annotruth.engines.spark.storage import Storage
from annotruth.engines.spark.tasks import run_tasks
from annotruth.labels import LabelSummary, Scale
from annotruth.labels.buffers import as_numpy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Shard(NamedTuple):
    """Some annotators' ids and counts in a file; their codes follow on those of the shard before."""

    file: str
    n_annotators: int


@dataclass(frozen=True, eq=False, repr=False)
class SparkLabels(LabelSummary):
    """Labels of a Spark frame: what has one entry an item or label stays in files.

    Attributes
    ----------
    spark
        The session they belong to.
    storage
        The folder they lie in, and nothing else.
    chunks, shards
        The files of the labels, by item, and of the annotators.
    n_dropped
        How many rows had no label.
    """

    spark: SparkSession
    storage: Storage
    scale: Scale
    chunks: list[Chunk]
    shards: list[Shard]
    n_dropped: int = 0
    annotator_prior: NDArray[np.float64] | None = None
    frame: str = "spark"
    read_as: str = ""

    @property
    def n_items(self) -> int:
        """How many items have a label."""
        return sum(chunk.n_items for chunk in self.chunks)

    @property
    def n_annotators(self) -> int:
        """How many people gave a label."""
        return sum(shard.n_annotators for shard in self.shards)

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return sum(chunk.n_labels for chunk in self.chunks)

    @property
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """Count the labels of each annotator."""
        counts = [as_numpy(self.storage.read(shard.file)["n_labels"]) for shard in self.shards]
        return np.concatenate(counts)

    @cached_property
    def labels_per_category(self) -> NDArray[np.int64]:
        """Count how often each annotator chose each category, annotators x categories."""
        slices = Slices.of(self.chunks, self.n_annotators, self.n_categories)
        work = partial(_count_answers, self.storage, self.chunks, slices)
        files = run_tasks(self.spark, work, len(self.chunks))
        counts = np.empty((self.n_annotators, self.n_categories), dtype=np.int64)
        for at, part in slices.added(self.spark, self.storage, files, self.n_categories):
            counts[at] = part
        return counts

    def close(self) -> None:
        """Remove the folder."""
        self.storage.remove_all()


def _count_answers(storage: Storage, chunks: list[Chunk], slices: Slices, place: int) -> str:
    labels, people = load(storage, chunks[place].file)
    return slices.write(storage, people, labels.labels_per_category.astype(np.float64))
