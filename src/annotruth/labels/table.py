"""`Labels`: who said what of which item, checked once and laid out for the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import slices
from annotruth.kernels.block import Block
from annotruth.labels import validate
from annotruth.labels.annotator_prior import match_annotator_prior
from annotruth.labels.buffers import as_arrow
from annotruth.labels.build import BuiltLabels, LabelBuilder
from annotruth.labels.encode import decode_table
from annotruth.labels.frames import default_frame, to_arrow
from annotruth.labels.layout import RowCodes, arrange, to_row_order
from annotruth.labels.options import TableOptions
from annotruth.labels.scale import Scale
from annotruth.labels.summary import LabelSummary
from annotruth.labels.truth import match_truth


@dataclass(frozen=True, eq=False, repr=False)
class Labels(LabelSummary):
    """A frozen table of labels, in integer codes, sorted by item and within it by category.

    The labels of one item that name the same category stand together and form a *cell*; what
    is known of an (item, category) pair has one place per cell, so memory follows the pairs
    that occur and not items x categories. Cells of item e are ``item_ptr[e]:item_ptr[e+1]``;
    labels of cell c are ``cell_ptr[c]:cell_ptr[c+1]``.

    Attributes
    ----------
    items, annotators
        The ids behind the codes, in order of first appearance, as they came in.
    scale
        The categories, their order and their values.
    item_ptr, cell_category, cell_ptr, annotator
        The layout above; ``annotator`` holds one code a label.
    row
        Where each label stood among the kept rows, to give tables back in the caller's order.
    known
        The code of an item's known truth, -1 where there is none.
    annotator_prior, n_dropped, frame, read_as
        As in `LabelSummary`.
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
    n_dropped: int = 0
    frame: str = "pyarrow"
    read_as: str = ""

    @classmethod
    def of(cls, data: Any, options: TableOptions | None = None, **keywords: Any) -> Labels:
        """Return the labels in a frame or in a list of (item, annotator, label) tuples.

        Parameters
        ----------
        data
            A pandas, polars or pyarrow frame, a list of tuples, or Labels (returned as they are).
        options, **keywords
            Which columns to take, and what the labels mean: `TableOptions`, or its fields as
            keywords.
        """
        options = TableOptions.of(options, keywords)
        if isinstance(data, Labels):
            if options.changed().keys() - {"duplicates"}:
                raise InputError("these are Labels already: give their options where they are made")
            return data
        roles, columns = validate.LABEL_ROLES, options.columns
        table, frame = to_arrow(
            data, lambda names: validate.find_columns(names, roles, columns).values()
        )
        return cls.from_arrow(table, options, frame=frame)

    @classmethod
    def from_arrow(
        cls,
        table: pa.Table,
        options: TableOptions | None = None,
        *,
        frame: str | None = None,
        from_text: bool = False,
        **keywords: Any,
    ) -> Labels:
        """Return the labels in an Arrow table; ``from_text`` if its columns had no types."""
        builder = LabelBuilder(TableOptions.of(options, keywords), from_text=from_text)
        builder.add(table)
        return cls.from_built(builder.finish(), frame=frame)

    @classmethod
    def from_built(cls, built: BuiltLabels, *, frame: str | None = None, **more: Any) -> Self:
        """Return what a builder made; ``more`` are attributes of a subclass."""
        return cls(
            items=built.items,
            annotators=built.annotators,
            scale=built.scale,
            **built.layout._asdict(),
            known=np.full(len(built.items), -1, dtype=np.int32),
            n_dropped=built.n_dropped,
            frame=frame or default_frame(),
            **more,
        )

    @classmethod
    def from_codes(
        cls,
        item: NDArray[np.integer[Any]],
        annotator: NDArray[np.integer[Any]],
        label: NDArray[np.integer[Any]],
        *,
        items: pa.Array | Sequence[Any],
        annotators: pa.Array | Sequence[Any],
        scale: Scale,
        n_dropped: int = 0,
        frame: str | None = None,
    ) -> Labels:
        """Make Labels of integer codes, one entry a label; every id must have a label."""
        validate.check_codes(item, len(items), "item")
        validate.check_codes(annotator, len(annotators), "annotator")
        validate.check_codes(label, len(scale), "label")
        layout = arrange(RowCodes(item, annotator, label), len(items), len(scale))
        built = BuiltLabels(layout, pa.array(items), pa.array(annotators), scale, n_dropped)
        return cls.from_built(built, frame=frame)

    def with_gold(self, gold: Any, columns: Mapping[str, str] | None = None) -> Labels:
        """Attach known truths: a frame of ``item, label``, a mapping, or a pandas Series."""
        truth = match_truth(gold, self, role="gold", columns=columns)
        known = self.known.copy()
        known[truth.item] = truth.categories()
        return replace(self, known=known)

    def with_annotator_prior(self, annotator_prior: Any) -> Labels:
        """Attach what is known of annotators: their table from an earlier fit, or a mapping."""
        return replace(self, annotator_prior=match_annotator_prior(annotator_prior, self))

    def subset(self, kept: NDArray[np.bool_]) -> Labels:
        """Keep the marked labels, one mark a label, on the same scale.

        Items and annotators that are left without a label leave too; the codes of the others
        keep their order, and stay as they are where nobody leaves. What is known of those who stay, stays.
        """
        places = np.flatnonzero(kept)
        places = places[np.argsort(self.row[places])]
        items, item = np.unique(self.item_of_label()[places], return_inverse=True)
        people, annotator = np.unique(self.annotator[places], return_inverse=True)
        made = Labels.from_codes(
            item,
            annotator,
            self.category_of_label()[places],
            items=self.items.take(pa.array(items)),
            annotators=self.annotators.take(pa.array(people)),
            scale=self.scale,
            frame=self.frame,
        )
        annotator_prior = None if self.annotator_prior is None else self.annotator_prior[people]
        return replace(made, known=self.known[items], annotator_prior=annotator_prior)

    @property
    def n_items(self) -> int:
        """How many items have a label."""
        return len(self.items)

    @property
    def n_annotators(self) -> int:
        """How many people gave a label."""
        return len(self.annotators)

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.annotator)

    @property
    def n_cells(self) -> int:
        """How many (item, category) pairs occur."""
        return len(self.cell_category)

    @cached_property
    def labels_per_item(self) -> NDArray[np.int64]:
        """Count the labels of each item."""
        return np.diff(self.cell_ptr[self.item_ptr])

    @cached_property
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """Count the labels of each annotator."""
        return self._counted(self.n_annotators, lambda at: self.annotator[at])

    @cached_property
    def labels_per_category(self) -> NDArray[np.int64]:
        """Count how often each annotator chose each category, annotators x categories."""
        shape = (self.n_annotators, self.n_categories)

        def answers(at: slice) -> NDArray[np.int64]:
            # The cells that these labels are of, and how many of these each has.
            first = np.searchsorted(self.cell_ptr, at.start, side="right") - 1
            last = np.searchsorted(self.cell_ptr, at.stop)
            ends = np.clip(self.cell_ptr[first : last + 1], at.start, at.stop)
            n = ends[1:] - ends[:-1]
            category = np.repeat(self.cell_category[first:last], n)
            return self.annotator[at] * np.int64(shape[1]) + category

        return self._counted(shape[0] * shape[1], answers).reshape(shape)

    def _counted(
        self, n: int, codes: Callable[[slice], NDArray[np.integer[Any]]]
    ) -> NDArray[np.int64]:
        """Count how many labels have each code, slice by slice."""
        counts = np.zeros(n, dtype=np.int64)
        for at in slices(self.n_labels, 1 << 22):
            counts += np.bincount(codes(at), minlength=n)
        return counts

    def item_of_cell(self) -> NDArray[np.int64]:
        """Name the item of each cell."""
        return np.repeat(np.arange(self.n_items), np.diff(self.item_ptr))

    def cell_of_label(self) -> NDArray[np.int64]:
        """Name the cell of each label."""
        return np.repeat(np.arange(self.n_cells), np.diff(self.cell_ptr))

    def item_of_label(self) -> NDArray[np.int32]:
        """Name the item of each label."""
        return np.repeat(np.arange(self.n_items, dtype=np.int32), self.labels_per_item)

    def category_of_label(self) -> NDArray[np.int32]:
        """Name the category of each label."""
        return np.repeat(self.cell_category, np.diff(self.cell_ptr))

    def to_arrow(self) -> pa.Table:
        """Write the labels out with their ids, one row a label, in the order they came."""
        return decode_table(self.to_codes())

    def to_codes(self) -> pa.Table:
        """Write the labels out as `to_arrow` does, with codes and dictionaries for ids."""
        codes = (self.item_of_label(), self.annotator, self.category_of_label())
        with ThreadPoolExecutor(len(codes)) as pool:
            return self._with_ids(*pool.map(self.in_row_order, codes))

    def _with_ids(self, *codes: NDArray[np.int32]) -> pa.Table:
        ids = (self.items, self.annotators, self.scale.categories)
        columns = [
            pa.DictionaryArray.from_arrays(as_arrow(code), behind)
            for code, behind in zip(codes, ids, strict=True)
        ]
        return pa.table(columns, names=validate.LABEL_ROLES)

    def in_row_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Put one value a label into the order the labels came in."""
        return to_row_order(values, self.row)

    def zeros(self, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Make numbers that stand beside the labels, where there is room for them."""
        return np.zeros(shape)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and is more than may be; here, all of it may."""

    def observed_shares(self) -> NDArray[np.float64]:
        """Return the share of each category among the labels of each item, items x categories."""
        counts = np.zeros((self.n_items, self.n_categories))
        counts[self.item_of_cell(), self.cell_category] = np.diff(self.cell_ptr)
        shares: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def length(self, per: str) -> int:
        """Return how many items, cells or labels there are."""
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
        """Hand the layout to the kernels, which see arrays alone."""
        return Block(self.item_ptr, self.cell_category, self.cell_ptr, self.annotator, self.known)
