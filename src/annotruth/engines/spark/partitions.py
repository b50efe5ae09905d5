"""Partitions in files: the labels of some items, which a task loads, and ids of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from annotruth.engines.protocol import Extent, PassData
from annotruth.engines.spark.shared_folder import Columns, SharedFolder, storage_errors
from annotruth.kernels.arrays import Codes
from annotruth.labels import Labels, Scale
from annotruth.labels.frames import as_numpy
from annotruth.labels.layout import Layout, TableSize, check_layout

_ARRAYS = ("item_ptr", "cell_category", "cell_ptr", "annotator", "row", "known")
_COLUMNS = (
    *("items", "annotators", "annotator_codes"),
    *("scale_kind", "scale_categories", "scale_values", "scale_edges"),
)
LOADED_PARTITIONS = 4
"""How many partitions a worker keeps in memory for the next pass."""


class LabelPartition(NamedTuple):
    """The file of a label partition, which holds all labels of some items, and its counts.

    Examples
    --------
    >>> from annotruth.engines.spark.partitions import LabelPartition
    >>> partition = LabelPartition("labels-1.arrow", 10, 25, 40, 7)
    >>> partition.length("cells")
    25
    """

    file: str
    n_items: int
    n_cells: int
    n_labels: int
    n_annotators: int

    def length(self, per: Extent) -> int:
        """Return how many items, cells or labels there are."""
        return {"items": self.n_items, "cells": self.n_cells, "labels": self.n_labels}[per]

    def load(self, folder: SharedFolder) -> LoadedPartition:
        """Read the labels; a worker that has them from the pass before returns those."""
        return load_partition(folder, self)


class Partition(Protocol):
    """A partition of the data, in a file.

    Examples
    --------
    >>> from annotruth.engines.spark.partitions import LabelPartition, Partition
    >>> partition: Partition = LabelPartition("labels-1.arrow", 10, 25, 40, 7)
    >>> partition.n_annotators
    7
    """

    @property
    def n_annotators(self) -> int:
        """The number of its annotators."""

    def length(self, per: Extent) -> int:
        """Return how many of something there are."""

    def load(self, folder: SharedFolder) -> tuple[PassData, Codes]:
        """Return the data, and the codes of their annotators among all annotators."""


class AnnotatorPartition(NamedTuple):
    """The file of an annotator partition, which holds ids and numbers of labels.

    The codes of its annotators follow those of the partition before.

    Examples
    --------
    >>> from annotruth.engines.spark.partitions import AnnotatorPartition
    >>> AnnotatorPartition("annotators-1.arrow", n_annotators=7).n_annotators
    7
    """

    file: str
    n_annotators: int

    def read(self, folder: SharedFolder) -> dict[str, pa.Array]:
        """Return the columns "annotators", the ids, and "n_labels"."""
        with storage_errors("read", folder.address_of(self.file)):
            columns = folder.read(self.file)
            columns = {name: columns.get(name, pa.nulls(0)) for name in ("annotators", "n_labels")}
            if {len(column) for column in columns.values()} != {self.n_annotators}:
                raise ValueError(f"it has not {self.n_annotators} annotators")
            return columns


class LoadedPartition(NamedTuple):
    """A label partition in memory.

    Attributes
    ----------
    labels
        Its labels, in which its annotators have the codes 0, 1, ...
    annotator_codes
        The codes of its annotators among all annotators, ascending.

    Examples
    --------
    >>> from annotruth import Labels
    >>> from annotruth.engines.spark.partitions import LoadedPartition
    >>> labels = Labels.of([("a", "ann", 1), ("a", "bob", 2)])
    >>> loaded = LoadedPartition(labels, annotator_codes=np.array([3, 8]))
    >>> loaded.annotator_codes[labels.annotator].tolist()  # the annotator of each label
    [3, 8]
    """

    labels: Labels
    annotator_codes: Codes


def write_partition(folder: SharedFolder, labels: Labels, annotator_codes: Codes) -> LabelPartition:
    """Write a label partition; ``annotator_codes`` are its annotators' codes among all."""
    file = folder.write(
        "labels",
        {
            "items": labels.items,
            "annotators": labels.annotators,
            "annotator_codes": annotator_codes,
            **_scale_columns(labels.scale),
            **{name: getattr(labels, name) for name in _ARRAYS},
        },
    )
    return LabelPartition(file, *_count(labels))


@lru_cache(maxsize=LOADED_PARTITIONS)
def load_partition(folder: SharedFolder, partition: LabelPartition) -> LoadedPartition:
    """Read a label partition; a worker that has it from the pass before returns that.

    Its lengths and codes are checked, as kernels check nothing.
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
    return LoadedPartition(labels, codes)


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
    edges = columns["scale_edges"]
    return Scale(
        kind,
        columns["scale_categories"],
        as_numpy(columns["scale_values"]),
        as_numpy(edges) if len(edges) else None,
    )
