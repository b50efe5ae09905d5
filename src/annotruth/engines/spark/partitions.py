"""Partitions of labels on a shared storage, their arrays, and sums over their annotators."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.engines.protocol import Extent, PassData
from annotruth.engines.spark.cluster import RunTasks
from annotruth.engines.spark.storage import Columns, SharedFolder, storage_errors
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels, Scale
from annotruth.observations.frames import as_numpy
from annotruth.observations.layout import Layout, TableSize, check_layout

_ARRAYS = ("item_ptr", "cell_category", "cell_ptr", "annotator", "row", "known")
_COLUMNS = (
    *("items", "annotators", "annotator_codes"),
    *("scale_kind", "scale_categories", "scale_values", "scale_edges"),
)
LOADED_PARTITIONS = 4
"""How many partitions a worker keeps in memory for the next pass."""


class LabelPartition(NamedTuple):
    """The file of a label partition, which holds all labels of some items, and its counts."""

    file: str
    n_items: int
    n_cells: int
    n_labels: int
    n_annotators: int

    def length(self, per: Extent) -> int:
        """Return how many items, cells or labels there are."""
        return {"items": self.n_items, "cells": self.n_cells, "labels": self.n_labels}[per]

    def load(self, folder: SharedFolder) -> tuple[Labels, Codes]:
        """Return the labels, and the codes of their annotators among all annotators, ascending.

        A worker that has them from the pass before returns those.
        """
        return load_partition(folder, self)


class Partition(Protocol):
    """A partition of the data, in a file."""

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
def load_partition(folder: SharedFolder, partition: LabelPartition) -> tuple[Labels, Codes]:
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
    edges = columns["scale_edges"]
    return Scale(
        kind,
        columns["scale_categories"],
        as_numpy(columns["scale_values"]),
        as_numpy(edges) if len(edges) else None,
    )


@dataclass
class StoredArray:
    """An item-side array in files."""

    per: Extent  # what it has an entry for, and the shape of an entry
    shape: tuple[int, ...]
    # the file of each partition; None before a task has written it: the entries are zero
    files: list[str | None]
    # the type of the numbers
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))

    def read(
        self, folder: SharedFolder, partitions: Sequence[Partition], number: int
    ) -> NDArray[Any]:
        """Return the entries of a partition."""
        shape = (partitions[number].length(self.per), *self.shape)
        file = self.files[number]
        if file is None:
            return np.zeros(shape)
        return read_values(folder, file, shape, self.dtype)


def read_values(
    folder: SharedFolder, file: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Read an array; kernels do not check lengths, so shape and type must be as written."""
    with storage_errors("read", folder.address_of(file)):
        columns = folder.read(file)
        if list(columns) != ["values"]:
            raise ValueError("it has other columns than values")
        values = as_numpy(columns["values"])
        if values.dtype != dtype or len(values) != math.prod(shape):
            raise ValueError(
                f"it has {len(values)} values of {values.dtype}, not {shape} of {dtype}"
            )
        return values.reshape(shape)


def write_values(folder: SharedFolder, kind: str, values: NDArray[Any]) -> str:
    """Write an array to a new file, and return its name."""
    return folder.write(kind, {"values": values})


_NUMBERS_PER_RANGE = 1 << 22  # of all partitions' sums, which one task adds
_MAX_RANGES = 1_000


class AnnotatorRanges(NamedTuple):
    """Ranges of annotator codes, so that no task holds the sums of all annotators.

    The driver adds the sums of a single range; tasks add those of several.
    """

    n_annotators: int
    n_ranges: int

    @classmethod
    def for_sums(
        cls, partitions: Sequence[Partition], n_annotators: int, n_columns: int
    ) -> AnnotatorRanges:
        """Choose ranges in which all partitions together have a few million numbers."""
        n_numbers = n_columns * sum(partition.n_annotators for partition in partitions)
        n_ranges = min(-(-n_numbers // _NUMBERS_PER_RANGE), _MAX_RANGES, n_annotators)
        return cls(n_annotators, max(n_ranges, 1))

    def bounds(self) -> Codes:
        """Return the ``n_ranges + 1`` bounds of the ranges."""
        ends: Codes = np.arange(self.n_ranges + 1, dtype=np.int64)
        return ends * self.n_annotators // self.n_ranges

    def write_sums(self, folder: SharedFolder, annotator_codes: Codes, sums: Floats) -> str:
        """Write a partition's sums, annotators x columns, one batch per range."""
        bounds = np.searchsorted(annotator_codes, self.bounds())
        return folder.write_batches(
            "sums",
            (
                {"annotator_codes": annotator_codes[start:stop], "sums": sums[start:stop]}
                for start, stop in pairwise(bounds)
            ),
        )

    def add_sums(
        self, run_tasks: RunTasks, folder: SharedFolder, files: list[str], n_columns: int
    ) -> Iterator[tuple[slice, Floats]]:
        """Add the partitions' sums, and remove their files.

        Yields the ranges in order: the slice of annotator codes, and the sums, annotators x
        columns.
        """
        added: list[str] = []
        if self.n_ranges > 1:
            task = partial(_write_range, self, folder, files, n_columns)
            added = run_tasks(task, self.n_ranges)
        for number, (start, stop) in enumerate(pairwise(self.bounds().tolist())):
            if added:
                sums = as_numpy(folder.read(added[number])["sums"]).reshape(-1, n_columns)
            else:
                sums = self.add_range(folder, files, n_columns, number)
            yield slice(start, stop), sums
        folder.remove([*files, *added])

    def add_range(
        self, folder: SharedFolder, files: list[str], n_columns: int, number: int
    ) -> Floats:
        """Add the sums of one range in the order of the partitions, so that rounding is the same."""
        start, stop = self.bounds()[number : number + 2]
        total = np.zeros((stop - start, n_columns))
        for file in files:
            batch = folder.read(file, number)
            rows = as_numpy(batch["annotator_codes"]) - start
            total[rows] += as_numpy(batch["sums"]).reshape(-1, n_columns)
        return total


def _write_range(
    ranges: AnnotatorRanges, folder: SharedFolder, files: list[str], n_columns: int, number: int
) -> str:
    return folder.write("sums", {"sums": ranges.add_range(folder, files, n_columns, number)})
