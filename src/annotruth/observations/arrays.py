"""What is known about labels: the scale and counts, and the arrays they follow from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import counted
from annotruth.kernels import find_kernel
from annotruth.kernels.arrays import Block, slices
from annotruth.observations.columns.names import LABEL_ROLES, TIME_ROLES
from annotruth.observations.disk import Disk
from annotruth.observations.encode import decode_table
from annotruth.observations.frames import as_arrow
from annotruth.observations.layout import RowCodes, to_row_order
from annotruth.observations.scale import Scale

REPLACED = "replaced by a later label of the annotator"
"""A reason for which rows are left out."""

Columns = Mapping[str, pa.Array]
"""Covariates by name."""


@dataclass(frozen=True, eq=False)
class Covariates:
    """Optional data that travel with labels; values may be missing."""

    labels: Columns = field(default_factory=dict)
    """One value per label, in the order of the layout: the time, the seconds it took, ..."""
    annotators: Columns = field(default_factory=dict)
    """One value per annotator: traits such as age or language."""
    items: Columns = field(default_factory=dict)
    """One value per item: its content, length, source, ..."""

    def __bool__(self) -> bool:
        return bool(self.labels or self.annotators or self.items)

    @property
    def has_times(self) -> bool:
        """Whether labels have a time, an order or seconds."""
        return not self.labels.keys().isdisjoint(TIME_ROLES)

    def take(
        self,
        labels: NDArray[np.integer[Any]],
        annotators: NDArray[np.integer[Any]],
        items: NDArray[np.integer[Any]],
    ) -> Covariates:
        """Return the covariates of some labels, annotators and items, by position."""
        return Covariates(
            take_rows(self.labels, labels),
            take_rows(self.annotators, annotators),
            take_rows(self.items, items),
        )

    def with_columns(self, of: Literal["annotators", "items"], columns: Columns) -> Covariates:
        """Return these covariates with further ones; equal names are replaced."""
        changed: Any = {of: {**getattr(self, of), **columns}}
        return replace(self, **changed)


def take_rows(columns: Columns, positions: NDArray[np.integer[Any]]) -> dict[str, pa.Array]:
    """Return some rows of columns, by position."""
    index = as_arrow(positions)
    return {name: column.take(index) for name, column in columns.items()}


class Observations(ABC):
    """What tables of labels and of comparisons have in common, wherever their rows are."""

    noun: ClassVar[str] = "label"
    """What annotators gave, in messages."""

    annotator_weight: NDArray[np.float64] | None = None
    """What each annotator's labels count, above 0 and at most 1: less for machines that depend on one
    another. None where all count alike."""
    n_dropped: int
    """The number of rows without a label."""
    n_repeated: int = 0
    """The number of rows that were left out because an earlier one has the same item, annotator and
    label."""
    unused: Mapping[str, int] = MappingProxyType({})
    """How many rows were left out for other reasons, by reason, such as "rejected"."""
    frame: str
    """The caller's frame library, in which tables are returned."""
    read_as: str
    """The format that the file was read as; empty for a long table."""
    left_out: str = ""
    """The annotators that were left out, in words; empty if none was."""

    @property
    def on_disk(self) -> bool:
        """Whether the rows are on disk, because they exceed the memory that may be used."""
        return False

    @property
    @abstractmethod
    def n_labels(self) -> int:
        """The number of labels or comparisons."""

    @property
    def n_read(self) -> int:
        """The number of rows read: those used, and those left out for any reason."""
        return self.n_labels + self.n_dropped + self.n_repeated + sum(self.unused.values())

    @abstractmethod
    def describe(self) -> str:
        """Return the counts as one line."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"


class LocalObservations(Observations):
    """Rows as arrays, in memory or on ``disk``.

    On disk are also the arrays that models put beside them. What has one entry per item or
    annotator is in memory: ids, known truths.
    """

    items: pa.Array
    annotators: pa.Array
    disk: Disk | None = None

    @property
    def on_disk(self) -> bool:
        """Whether the rows are on disk, because they exceed the memory that may be used."""
        return self.disk is not None

    @property
    def n_items(self) -> int:
        """The number of items, each of which has a label."""
        return len(self.items)

    @property
    def n_annotators(self) -> int:
        """The number of annotators, each of whom gave a label."""
        return len(self.annotators)

    def zeros(self, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Return an array of zeros where the arrays of the rows are: in memory or on disk."""
        return np.zeros(shape) if self.disk is None else self.disk.zeros(shape)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and exceeds the memory that may be used."""
        if self.disk is not None:
            self.disk.check_room(n_bytes, what)


class LabelSummary(Observations):
    """The scale and the counts of labels, wherever the labels are."""

    scale: Scale
    annotator_prior: NDArray[np.float64] | None
    """What is known about annotators from earlier work, annotators x 2: pseudo-counts of serious and
    of irregular labels. None where nothing is known."""
    classifier: NDArray[np.float64] | None = None
    """A classifier's probabilities, items x categories, with NaN for items without a prediction. None
    where there is no classifier."""

    @property
    @abstractmethod
    def n_items(self) -> int:
        """The number of items, each of which has a label."""

    @property
    @abstractmethod
    def n_annotators(self) -> int:
        """The number of annotators, each of whom gave a label."""

    @property
    @abstractmethod
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """The number of labels of each annotator."""

    @property
    @abstractmethod
    def labels_per_category(self) -> NDArray[np.int64]:
        """How often each annotator chose each category, annotators x categories."""

    @property
    def kind(self) -> str:
        """What annotators gave, "labels" or "sets", as `annotruth.models.result.Fit.kind`."""
        return "sets" if self.scale.has_sets else "labels"

    @property
    def n_categories(self) -> int:
        """The number of categories of the scale, whether chosen or not."""
        return len(self.scale)

    def weighted(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values, one or one row per annotator, times what their labels count."""
        if self.annotator_weight is None:
            return values
        return values * self.annotator_weight.reshape(-1, *(1,) * (values.ndim - 1))

    def counted_labels(self) -> float:
        """Return the number of labels, each with what its annotator's labels count."""
        return float(self.weighted(self.labels_per_annotator).sum())

    def describe(self) -> str:
        """Return the counts and the kind of scale as one line."""
        kind, in_sets = self.scale.kind, self.scale.set_labels
        what = "label" if in_sets is None else "answer"
        categories = (
            counted(self.n_categories, f"{kind} category", f"{kind} categories")
            if in_sets is None
            else f"sets of {counted(len(in_sets), 'label')}"
        )
        return (
            f"{counted(self.n_labels, what)} of {counted(self.n_items, 'item')} by "
            f"{counted(self.n_annotators, 'annotator')}, {categories}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class LabelArrays(LocalObservations, LabelSummary):
    """Labels in integer codes, sorted by item and within it by category.

    The labels of one item that name the same category are adjacent and form a *cell*; what
    belongs to an (item, category) pair has one entry per cell, so memory grows with the pairs
    that occur and not with items x categories. Cells of item e are ``item_ptr[e]:item_ptr[e+1]``;
    labels of cell c are ``cell_ptr[c]:cell_ptr[c+1]``. The attributes are those of `Labels`.
    """

    items: pa.Array
    annotators: pa.Array
    scale: Scale
    item_ptr: NDArray[np.int64]
    cell_category: NDArray[np.int32]
    cell_ptr: NDArray[np.int64]
    annotator: NDArray[np.int32]
    row: NDArray[np.signedinteger[Any]]
    known: NDArray[np.int32]
    annotator_prior: NDArray[np.float64] | None = None
    covariates: Covariates = field(default_factory=Covariates)
    n_dropped: int = 0
    frame: str = "pyarrow"
    read_as: str = ""
    left_out: str = ""
    n_repeated: int = 0
    unused: Mapping[str, int] = field(default_factory=dict)
    classifier: NDArray[np.float64] | None = None
    annotator_weight: NDArray[np.float64] | None = None
    disk: Disk | None = None
    rows: RowCodes | None = None

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self.annotator)

    @property
    def n_cells(self) -> int:
        """The number of (item, category) pairs that occur."""
        return len(self.cell_category)

    @cached_property
    def labels_per_item(self) -> NDArray[np.int64]:
        """The number of labels of each item."""
        return np.diff(self.cell_ptr[self.item_ptr])

    @cached_property
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """The number of labels of each annotator."""
        total: NDArray[np.int64]
        if "labels_per_category" in self.__dict__:  # which takes less time to add up
            total = self.labels_per_category.sum(axis=1)
            return total
        total = np.zeros(self.n_annotators, dtype=np.int64)
        for at in slices(self.n_labels):
            total += np.bincount(self.annotator[at], minlength=self.n_annotators)
        return total

    @cached_property
    def labels_per_category(self) -> NDArray[np.int64]:
        """How often each annotator chose each category, annotators x categories."""
        counts = np.zeros((self.n_annotators, self.n_categories), dtype=np.int64)
        cells = (self.cell_ptr, self.cell_category, 0, self.n_cells)
        find_kernel("layout.count_labels")(*cells, self.annotator, counts)
        return counts

    def item_of_cell(self) -> NDArray[np.int64]:
        """Return the item of each cell."""
        return np.repeat(np.arange(self.n_items), np.diff(self.item_ptr))

    def cell_of_label(self) -> NDArray[np.int64]:
        """Return the cell of each label."""
        return np.repeat(np.arange(self.n_cells), np.diff(self.cell_ptr))

    def item_of_label(self) -> NDArray[np.int32]:
        """Return the item of each label."""
        return np.repeat(np.arange(self.n_items, dtype=np.int32), self.labels_per_item)

    def category_of_label(self) -> NDArray[np.int32]:
        """Return the category of each label."""
        return np.repeat(self.cell_category, np.diff(self.cell_ptr))

    def observed_shares(self) -> NDArray[np.float64]:
        """Return the share of each category among the labels of each item, items x categories."""
        counts = np.zeros((self.n_items, self.n_categories))
        counts[self.item_of_cell(), self.cell_category] = np.diff(self.cell_ptr)
        shares: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def to_arrow(self) -> pa.Table:
        """Return a table of item, annotator and label, one row per label, in row order."""
        return decode_table(self.to_codes())

    def to_codes(self, rows: slice = slice(None)) -> pa.Table:
        """Return rows of the table of `to_arrow`, with dictionaries for ids."""
        if self.rows is not None:
            return self._with_ids(*(np.array(codes[rows]) for codes in self.rows))
        codes = (self.item_of_label(), self.annotator, self.category_of_label())
        table = self._with_ids(*map(self.in_row_order, codes))
        start, stop, _ = rows.indices(self.n_labels)
        return table.slice(start, stop - start)

    def _with_ids(self, *codes: NDArray[np.int32]) -> pa.Table:
        ids = (self.items, self.annotators, self.scale.categories)
        columns = [
            pa.DictionaryArray.from_arrays(as_arrow(code), values)
            for code, values in zip(codes, ids, strict=True)
        ]
        return pa.table(columns, names=LABEL_ROLES)

    def in_row_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return one value per label in row order."""
        if self.disk is not None:
            return self.disk.in_row_order(values, self.row)
        return to_row_order(values, self.row)

    def length(self, per: str) -> int:
        """Return the number of items, cells or labels."""
        return {"items": self.n_items, "cells": self.n_cells, "labels": self.n_labels}[per]

    def partition(self, n_partitions: int) -> NDArray[np.int64]:
        """Return the ``n_partitions + 1`` item bounds that divide the labels evenly.

        The bounds depend on the labels alone, never on the number of threads, so sums added up
        partition by partition are the same on every machine.
        """
        starts = self.cell_ptr[self.item_ptr]
        targets = np.linspace(0, self.n_labels, n_partitions + 1)
        bounds = np.searchsorted(starts, targets).astype(np.int64)
        bounds[0], bounds[-1] = 0, self.n_items
        return bounds

    def block(self) -> Block:
        """Return the layout as the kernels take it: as arrays only."""
        return Block(self.item_ptr, self.cell_category, self.cell_ptr, self.annotator, self.known)
