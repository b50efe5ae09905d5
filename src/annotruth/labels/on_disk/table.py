"""`Labels` on disk, made of batches of rows: the same labels, of which memory holds a little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import slices
from annotruth.labels import validate
from annotruth.labels.buffers import as_arrow
from annotruth.labels.encode import arrange, distinct_all, has_repeats, plain_numbers, repeats
from annotruth.labels.frames import default_frame
from annotruth.labels.ids import Ids
from annotruth.labels.on_disk.disk import Disk
from annotruth.labels.options import TableOptions
from annotruth.labels.table import Labels, decide_scale

_BYTES_A_LABEL = 200  # what sorting a label takes at most, with room for all else
_NAMED = 3  # repeats that a message names


class InOrder(NamedTuple):
    """The codes of the labels in the order the labels came."""

    item: NDArray[np.int32]
    annotator: NDArray[np.int32]
    label: NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class MappedLabels(Labels):
    """Labels whose arrays, and whatever models put beside them, are on disk.

    What has one place an item or annotator and not one a label is in memory: ids, known truths.
    """

    on_disk: ClassVar[bool] = True

    disk: Disk = field(kw_only=True)
    came: InOrder = field(kw_only=True)

    def zeros(self, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Make numbers that stand beside the labels, on disk."""
        return self.disk.zeros(shape)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and is more than may be."""
        self.disk.check_room(n_bytes, what)

    def to_codes(self, rows: slice = slice(None)) -> pa.Table:
        """Write labels out in the order they came, with codes and dictionaries for ids."""
        return self._with_ids(*(np.array(codes[rows]) for codes in self.came))

    def as_they_came(self, values: NDArray[Any]) -> NDArray[Any]:
        """Put one value a label into the order the labels came in, on disk.

        For as many places as fit into memory at a time all labels are looked through, as reading
        them in a row again and again is faster than writing here and there on a disk.
        """
        in_order = self.disk.zeros(values.shape, values.dtype)
        at_once = max(1, self.disk.memory // (4 * values.itemsize))
        for places in slices(self.n_labels, at_once):
            part = np.empty(places.stop - places.start, values.dtype)
            for at in slices(self.n_labels):
                row = self.row[at] - places.start
                here = (row >= 0) & (row < len(part))
                part[row[here]] = values[at][here]
            in_order[places] = part
        return in_order


class LabelBuilder:
    """Rows of labels, taken up batch by batch; their codes go to disk.

    Parameters
    ----------
    disk
        Where they go.
    names
        The column that plays each role.
    """

    def __init__(self, disk: Disk, names: Mapping[str, str]) -> None:
        self._disk = disk
        self._names = names
        self._ids = {role: Ids() for role in validate.LABEL_ROLES}
        self._codes = {role: disk.column(np.int32) for role in validate.LABEL_ROLES}
        self._levels: dict[Any, None] = {}
        self._n_rows = self._n_kept = 0
        self._unnamed: dict[str, tuple[int, int]] = {}  # the first row of such, and how many

    def take_up(self, batch: pa.Table) -> None:
        """Add rows."""
        by_role = {role: batch.column(name) for role, name in self._names.items()}
        validate.check_types(by_role, self._names)
        coded = distinct_all(by_role)
        self._levels |= dict.fromkeys(coded["label"].levels or ())
        empty = validate.missing(coded["label"].values)
        kept = ~empty[coded["label"].codes] if empty.any() else None
        if kept is not None:
            coded = {role: column.take(kept) for role, column in coded.items()}
        for role in ("item", "annotator"):
            unnamed = validate.unnamed_rows(coded[role].codes, coded[role].values, kept)
            if len(unnamed):
                first, n = self._unnamed.get(role, (self._n_rows + int(unnamed[0]), 0))
                self._unnamed[role] = first, n + len(unnamed)
        self._n_rows += batch.num_rows
        self._n_kept += len(coded["label"].codes)
        if self._unnamed:  # all that is left to do is to count them
            return
        for role, (codes, values, _) in coded.items():
            ids = self._ids[role]
            self._codes[role].append(ids.enter(values)[codes])
        self._disk.check_room(sum(ids.n_bytes for ids in self._ids.values()), "ids")

    def labels(self, options: TableOptions, *, from_text: bool = False) -> MappedLabels:
        """Return the labels of all rows, as `Labels.from_arrow` does."""
        validate.check_any_labels(self._n_rows, self._n_kept)
        for role in ("item", "annotator"):
            if role in self._unnamed:
                validate.refuse_unnamed(*self._unnamed[role], role=role)
        items, annotators, values = (self._ids.pop(role).values() for role in validate.LABEL_ROLES)
        options = options.with_categories(list(self._levels) or None)
        the_scale, category = decide_scale(values, options, from_text=from_text)
        came = InOrder(*(self._codes[role].mapped() for role in validate.LABEL_ROLES))
        for at in slices(len(came.label)):
            came.label[at] = category[came.label[at]]

        sorting = _Sorting(self._disk, came, len(items), len(annotators), len(the_scale))
        sorting.run(
            look_for_repeats=options.duplicates != "keep", drop_them=options.duplicates == "last"
        )
        if sorting.n_repeats and options.duplicates == "refuse":
            first = sorted(sorting.repeats)[:_NAMED]
            who, what = (np.array([pair[place] for pair in first]) for place in (2, 1))
            validate.refuse_repeats(
                items.take(as_arrow(what)), annotators.take(as_arrow(who)), sorting.n_repeats
            )
        if from_text:
            items, annotators = plain_numbers(items), plain_numbers(annotators)
        arrays: dict[str, Any] = {name: column.mapped() for name, column in sorting.columns.items()}
        if len(superseded := sorting.superseded()):
            came = _renumbered(self._disk, came, arrays["row"], superseded)
        return MappedLabels(
            items=items,
            annotators=annotators,
            scale=the_scale,
            **arrays,
            known=np.full(len(items), -1, dtype=np.int32),
            n_dropped=self._n_rows - self._n_kept,
            frame=default_frame(),
            disk=self._disk,
            came=came,
        )


class _Sorting:
    """Labels sorted by item and category as `annotruth.labels.encode.arrange` does, on disk.

    They are dealt out by ranges of items, each small enough to be sorted in memory.
    """

    def __init__(
        self, disk: Disk, came: InOrder, n_items: int, n_annotators: int, n_categories: int
    ) -> None:
        self._disk = disk
        self._came = came
        self._n_items = n_items
        self._n_annotators = n_annotators
        self._n_categories = n_categories
        n = len(came.item)
        self._row_type = np.dtype(np.int32 if n <= np.iinfo(np.int32).max else np.int64)
        self.columns = {
            name: disk.column(kind)
            for name, kind in (
                ("item_ptr", np.int64),
                ("cell_category", np.int32),
                ("cell_ptr", np.int64),
                ("annotator", np.int32),
                ("row", self._row_type),
            )
        }
        self.repeats: list[tuple[int, int, int]] = []  # row, item and annotator of some
        self.n_repeats = 0
        self._superseded = [np.empty(0, dtype=np.int64)]

    def run(self, *, look_for_repeats: bool, drop_them: bool) -> None:
        """Sort, and say who labelled an item twice."""
        bounds, starts = self._ranges()
        dealt = self._dealt(bounds, starts)
        n_cells = n_labels = 0
        for number, (lo, hi) in enumerate(pairwise(bounds.tolist())):
            item, annotator, label, row = (
                np.array(codes[starts[number] : starts[number + 1]]) for codes in dealt
            )
            item -= lo
            layout = arrange(item, annotator, label, hi - lo, self._n_categories)
            if look_for_repeats and has_repeats(layout, self._n_annotators):
                later, superseded = repeats(item, annotator, self._n_annotators)
                self.n_repeats += len(later)
                self.repeats += zip(
                    *(codes[later[:_NAMED]].tolist() for codes in (row, item + lo, annotator)),
                    strict=True,
                )
                if drop_them:
                    self._superseded.append(row[superseded])
                    item, annotator, label, row = (
                        np.delete(codes, superseded) for codes in (item, annotator, label, row)
                    )
                    layout = arrange(item, annotator, label, hi - lo, self._n_categories)
            self.columns["item_ptr"].append(layout.item_ptr[:-1] + n_cells)
            self.columns["cell_category"].append(layout.cell_category)
            self.columns["cell_ptr"].append(layout.cell_ptr[:-1] + n_labels)
            self.columns["annotator"].append(layout.annotator)
            self.columns["row"].append(row[layout.row])
            n_cells += len(layout.cell_category)
            n_labels += len(layout.row)
        self.columns["item_ptr"].append(np.array([n_cells]))
        self.columns["cell_ptr"].append(np.array([n_labels]))

    def superseded(self) -> NDArray[np.int64]:
        """Return the rows that were dropped, in order."""
        return np.sort(np.concatenate(self._superseded))

    def _ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cut the items so that the labels of each range can be sorted in memory.

        Returns the bounds of the ranges, and how many labels come before each.
        """
        starts = np.zeros(self._n_items + 1, dtype=np.int64)
        for at in slices(len(self._came.item), 1 << 22):
            starts[1:] += np.bincount(self._came.item[at], minlength=self._n_items)
        np.cumsum(starts, out=starts)
        most = max(1, self._disk.memory // _BYTES_A_LABEL)
        cuts = np.searchsorted(starts, np.arange(0, starts[-1], most))
        bounds = np.unique(np.append(cuts, self._n_items))
        return bounds, starts[bounds]

    def _dealt(
        self, bounds: NDArray[np.int64], starts: NDArray[np.int64]
    ) -> tuple[NDArray[np.signedinteger[Any]], ...]:
        """Deal the labels out by ranges; within each they stay in order."""
        n = len(self._came.item)
        kinds = (*(codes.dtype for codes in self._came), self._row_type)
        dealt = tuple(self._disk.zeros(n, kind) for kind in kinds)
        at = starts[:-1].copy()
        for rows in slices(n):
            came = [codes[rows] for codes in self._came]
            number = np.arange(rows.start, rows.stop, dtype=self._row_type)
            # Sixteen bits are sorted by their digits, which is much faster.
            within = np.searchsorted(bounds[1:-1], came[0], side="right")
            within = within.astype(np.uint16 if len(at) < 1 << 16 else np.int64)
            order = np.argsort(within, kind="stable")
            counts = np.bincount(within, minlength=len(at))
            ends = np.cumsum(counts)
            ordered = [codes[order] for codes in (*came, number)]
            for where in np.flatnonzero(counts):
                to = slice(at[where], at[where] + counts[where])
                taken = slice(ends[where] - counts[where], ends[where])
                for codes, place in zip(ordered, dealt, strict=True):
                    place[to] = codes[taken]
            at += counts
        return dealt


def _renumbered(
    disk: Disk,
    came: InOrder,
    row: NDArray[np.signedinteger[Any]],
    superseded: NDArray[np.int64],
) -> InOrder:
    """Give the rows new numbers without those superseded; return the codes of the others."""
    for at in slices(len(row)):
        row[at] -= np.searchsorted(superseded, row[at]).astype(row.dtype)
    columns = [disk.column(codes.dtype) for codes in came]
    for at in slices(len(came.item)):
        first, last = np.searchsorted(superseded, [at.start, at.stop])
        for column, codes in zip(columns, came, strict=True):
            column.append(np.delete(codes[at], superseded[first:last] - at.start))
    return InOrder(*(column.mapped() for column in columns))
