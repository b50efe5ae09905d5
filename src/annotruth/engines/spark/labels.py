"""Labels in partitions: files in a folder that Spark's workers can reach, and arrays beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from annotruth.engines.protocol import DistributedLabels, Extent
from annotruth.engines.spark.cluster import run_tasks
from annotruth.engines.spark.storage import Columns, SharedFolder, remove_folder, storage_errors
from annotruth.kernels.arrays import Codes
from annotruth.observations import Labels, Scale
from annotruth.observations.frames import as_numpy
from annotruth.observations.layout import Layout, TableSize, check_layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_LABELS_ON_DRIVER = 250_000
"""The most labels that the driver makes passes over."""

_ARRAYS = ("item_ptr", "cell_category", "cell_ptr", "annotator", "row", "known")
_COLUMNS = (
    *("items", "annotators", "annotator_codes"),
    *("scale_kind", "scale_categories", "scale_values", "scale_edges"),
)
_LOADED_PARTITIONS = 4  # which a worker keeps in memory for the next pass

Result = TypeVar("Result")


class LabelPartition(NamedTuple):
    """The file of a partition, which holds all labels of some items, and its counts."""

    file: str
    n_items: int
    n_cells: int
    n_labels: int
    n_annotators: int

    def length(self, per: Extent) -> int:
        """Return how many items, cells or labels there are."""
        return {"items": self.n_items, "cells": self.n_cells, "labels": self.n_labels}[per]


@dataclass(frozen=True, eq=False, repr=False)
class SparkLabels(DistributedLabels):
    """Labels in files: whatever has one entry per item or label is read by Spark's workers only."""

    spark: SparkSession
    folder: SharedFolder  # which has nothing else in it
    scale: Scale
    partitions: list[LabelPartition]
    annotators: pa.Table  # in the order of their codes: annotator, n_labels
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
        return len(self.annotators)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return sum(partition.n_labels for partition in self.partitions)

    @property
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """The number of labels of each annotator."""
        return as_numpy(self.annotators["n_labels"])

    @cached_property
    def labels_per_category(self) -> NDArray[np.int64]:
        """The number of labels of each annotator in each category, annotators x categories."""
        counts = np.zeros((self.n_annotators, self.n_categories), dtype=np.int64)
        task = partial(_count_labels, self.folder, self.partitions)
        files = self.run_tasks(task, len(self.partitions))
        for file in files:
            columns = self.folder.read(file)
            some = as_numpy(columns["counts"]).reshape(-1, self.n_categories)
            counts[as_numpy(columns["annotator_codes"])] += some
        self.folder.remove(files)
        return counts

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


def _count_labels(folder: SharedFolder, partitions: list[LabelPartition], number: int) -> str:
    labels, annotator_codes = load_partition(folder, partitions[number])
    counts = {"annotator_codes": annotator_codes, "counts": labels.labels_per_category}
    return folder.write("counts", counts)


def write_partition(folder: SharedFolder, labels: Labels, annotator_codes: Codes) -> LabelPartition:
    """Write a partition; ``annotator_codes`` are its annotators' codes among all."""
    columns = {
        "items": labels.items,
        "annotators": labels.annotators,
        "annotator_codes": annotator_codes,
        **_scale_columns(labels.scale),
        **{name: getattr(labels, name) for name in _ARRAYS},
    }
    return LabelPartition(folder.write("labels", columns), *_count(labels))


@lru_cache(maxsize=_LOADED_PARTITIONS)
def load_partition(folder: SharedFolder, partition: LabelPartition) -> tuple[Labels, Codes]:
    """Return the labels of a partition, and the codes of their annotators among all, ascending.

    A worker that has them from the pass before returns those. Lengths and codes are checked, as
    kernels check nothing.
    """
    with storage_errors("read", folder.address_of(partition.file)):
        columns = folder.read(partition.file)
        if missing := [name for name in (*_COLUMNS, *_ARRAYS) if name not in columns]:
            raise ValueError(f"{missing[0]} is missing")
        arrays: dict[str, Any] = {name: as_numpy(columns[name]) for name in _ARRAYS}
        codes = as_numpy(columns["annotator_codes"])
        labels = Labels(
            items=columns["items"],
            annotators=columns["annotators"],
            scale=_read_scale(columns),
            **arrays,
        )
        if _count(labels) != partition[1:] or len(codes) != labels.n_annotators:
            raise ValueError("its lengths are not those that were written")
        size = TableSize(labels.n_items, labels.n_annotators, labels.n_categories)
        known = arrays.pop("known")
        check_layout(Layout(**arrays), known, size)
    return labels, codes


def _count(labels: Labels) -> tuple[int, int, int, int]:
    return labels.n_items, labels.n_cells, labels.n_labels, labels.n_annotators


def _scale_columns(scale: Scale) -> Columns:
    return {
        "scale_kind": [scale.kind],
        "scale_categories": scale.categories,
        "scale_values": scale.values,
        "scale_edges": np.empty(0) if scale.edges is None else scale.edges,
    }


def _read_scale(columns: Mapping[str, pa.Array]) -> Scale:
    is_ordinal = columns["scale_kind"][0].as_py() == "ordinal"
    kind: Literal["nominal", "ordinal"] = "ordinal" if is_ordinal else "nominal"
    edges = as_numpy(columns["scale_edges"])
    values = as_numpy(columns["scale_values"])
    return Scale(kind, columns["scale_categories"], values, edges if len(edges) else None)


def write_values(folder: SharedFolder, kind: str, values: NDArray[Any]) -> str:
    """Write an array to a new file, and return its name."""
    return folder.write(kind, {"values": values})


def read_values(
    folder: SharedFolder,
    file: str,
    shape: tuple[int, ...],
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    """Read an array; kernels do not check lengths, so shape and type must be as written."""
    with storage_errors("read", folder.address_of(file)):
        columns = folder.read(file)
        if list(columns) != ["values"]:
            raise ValueError("it has other columns than values")
        values = as_numpy(columns["values"])
        if values.dtype != dtype or len(values) != math.prod(shape):
            raise ValueError(
                f"it has {len(values)} values of {values.dtype}, not {shape} of {np.dtype(dtype)}"
            )
        return values.reshape(shape)
