"""A session on the card: the labels, the item-side arrays, and the passes that run there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.gpu.device import (
    DOUBLE_LABELS,
    LABELS_AT_ONCE,
    SINGLE_CATEGORIES,
    CUDADevice,
    category_shift,
    check_room,
    choose_memory,
    errors_in_one_line,
    limit_exceeded,
    unit_of,
)
from annotruth.engines.gpu.passes import IN_MEMORY, PASSES, CardPass
from annotruth.engines.memory import MemorySession
from annotruth.engines.protocol import Extent, Pass
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats, slices, usable_cores
from annotruth.kernels.shared import NEVER, NOT_SAMPLED
from annotruth.observations import Labels

T = TypeVar("T")


class GPUSession(MemorySession):
    """Labels on a card with their item-side arrays.

    Passes that take little of a fit run in memory, on threads. An item-side array is on the card if a
    pass there was the last to use it, and otherwise in memory.

    ``labels``: The labels.
    ``device``: The card.
    """

    def __init__(self, labels: Labels, device: CUDADevice) -> None:
        if limit := limit_exceeded(labels):
            raise _refuse(f"at most {limit}")
        if labels.annotator_weight is not None:
            raise _refuse("labels that all count alike")
        if labels.on_disk:
            raise _refuse("labels in memory only")
        super().__init__(labels, usable_cores())
        self.labels, self.device = labels, device
        self._xp = device.xp
        self._on_card: dict[str, Any] = {}
        self._of_cells: set[str] = set()  # arrays of one entry per cell
        self._zeros: set[str] = set()  # arrays that nothing was written to
        self._folds: dict[int, LabelBlock] = {}
        # Of sums of probabilities, of logs of at least e^-85, and of slopes below 2^20.
        self.unit, self.log_unit, self.slope_unit = (
            unit_of(bits, labels.n_labels) for bits in (0, 7, 20)
        )
        n_labels = labels.labels_per_annotator
        order = np.argsort(-n_labels, kind="stable")  # the annotators, those with most labels first
        number = np.empty(labels.n_annotators, np.uint32)
        number[order] = np.arange(labels.n_annotators, dtype=np.uint32)
        self._order, self._number = self._xp.asarray(order), self._xp.asarray(number)
        self.labels_per_annotator = self.to_engine(n_labels)
        self.all_labels = copy_labels(labels, device, self._number)

    @property
    def real(self) -> type[np.floating[Any]]:
        """The type of items' shares in gpm, ``real`` of the kernels: single if there are many labels."""
        is_few = self.labels.n_labels <= DOUBLE_LABELS
        is_double = is_few or self.labels.n_categories > SINGLE_CATEGORIES
        return np.float64 if is_double else np.float32

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Declare an array of zeros: one entry, or one of ``shape``, per item, cell or label."""
        super().allocate(name, per, shape)
        self._on_card.pop(name, None)
        self._zeros.add(name)
        self._of_cells.add(name) if per == "cells" else self._of_cells.discard(name)
        if name == "fold":
            self._folds.clear()

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Store an array beside the labels: one entry per item, cell or label."""
        super().put(name, values, per)
        self._on_card.pop(name, None)
        self._zeros.discard(name)
        self._of_cells.add(name) if per == "cells" else self._of_cells.discard(name)

    def apply(self, name: str, function: Callable[[Any], Any]) -> None:
        """Replace an item-side array by a function of it, which is computed on the card."""
        self._on_card[name] = function(self.card_array(name))

    def card_array(self, name: str, dtype: Any = np.float64) -> Any:
        """Return an item-side array on the card; one entry per cell is items x categories there.

        The type is that of the first kernel that uses it.
        """
        if name not in self._on_card:
            values, of_cells = self._state[name], name in self._of_cells
            n_categories = self.labels.n_categories
            shape = (self.labels.n_items, n_categories) if of_cells else values.shape
            n_bytes = np.dtype(dtype).itemsize * int(np.prod(shape))
            check_room(self.device, n_bytes, f"the array {name}")
            array = self._xp.zeros(shape, dtype)
            if name not in self._zeros:
                place = self._cell_places() if of_cells else slice(None)
                (array.reshape(-1) if of_cells else array)[place] = self._xp.asarray(values, dtype)
            self._on_card[name] = array
        return self._on_card[name]

    def collect(self, name: str) -> NDArray[Any]:
        """Return an item-side array of all items, in double precision."""
        if name not in self._on_card:
            return super().collect(name)
        array = self._on_card[name]
        if name in self._of_cells:
            array = array.reshape(-1)[self._cell_places()]
        return self.device.to_host(array.astype(np.float64, copy=False))

    def _cell_places(self) -> Any:
        """Return the place of each cell in an array of items x categories, on the card."""
        xp, labels = self._xp, self.labels
        cells = xp.arange(labels.n_cells)
        item = xp.searchsorted(xp.asarray(labels.item_ptr[1:]), cells, side="right")
        return item * labels.n_categories + xp.asarray(labels.cell_category)

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a pass on the card, or in memory, and return the sums by name."""
        one.ordered(inputs)  # checks their names
        run = PASSES.get(one.kernel)
        with errors_in_one_line():
            if run is not None:
                return run(CardPass(self, one, inputs))
            if one.kernel not in IN_MEMORY:
                raise _refuse("gpm, dawid-skene and robust-gpm only")
            for name in one.state:
                if name in self._on_card:
                    self._state[name] = self.collect(name)
                    del self._on_card[name]
                self._zeros.discard(name)
            on_card = self._xp.ndarray
            axes = {each.name: each.annotator_axis or 0 for each in one.inputs}
            in_memory = {
                name: self.to_host(value, axes[name]) if isinstance(value, on_card) else value
                for name, value in inputs.items()
            }
            sums = super().run_pass(one, **in_memory)
            for each in one.sums:
                if each.annotator_axis is not None:
                    sums[each.name] = self.to_engine(sums[each.name], each.annotator_axis)
            return sums

    def to_engine(self, values: NDArray[Any], annotator_axis: int = 0) -> Any:
        """Return an array with an annotator axis on the card, in its order: most labels first."""
        table = self._xp.asarray(values)
        return self._xp.take(table, self._order, annotator_axis) if table.size else table

    def to_host(self, values: Any, annotator_axis: int = 0) -> NDArray[Any]:
        """Return an array of the card in memory, in the order of the labels' annotators."""
        if values.size:
            values = self._xp.take(values, self._number, annotator_axis)
        return self.device.to_host(values)

    def close(self) -> None:
        """Stop the threads, and release the arrays on the card."""
        super().close()
        self._on_card.clear()
        self._folds.clear()

    def parts(self, n_labels: int) -> Iterator[LabelBlock]:
        """Return blocks of consecutive items with about so many labels."""
        labels, block = self.labels, self.all_labels
        items = labels.partition(-(-labels.n_labels // n_labels))
        bounds = labels.cell_ptr[labels.item_ptr[items]]
        for i in range(len(items) - 1):
            begin = block.begin[items[i] : items[i + 1] + 1]
            yield replace(
                block,
                begin=begin - begin[0],
                label=block.label[bounds[i] : bounds[i + 1]],
                known=None if block.known is None else block.known[items[i] : items[i + 1]],
            )

    def kept_labels(self, held: int) -> LabelBlock:
        """Return the labels that are kept while the fold ``held`` is held out; all if it is NEVER."""
        if held == NEVER:
            return self.all_labels
        if NOT_SAMPLED not in self._folds:
            fold = self._xp.asarray(self.collect("fold").astype(np.int8))
            sampled = replace(self.all_labels, fold=fold)
            self._folds[NOT_SAMPLED] = sampled.where(fold != np.int8(NOT_SAMPLED))
        sampled = self._folds[NOT_SAMPLED]
        if held not in self._folds:
            self._folds[held] = sampled.where(sampled.fold != np.int8(held))
        return self._folds[held]


def _refuse(what: str) -> InputError:
    return InputError(f"the engine gpu takes {what}: {choose_memory()}")


@dataclass(frozen=True, eq=False)
class LabelBlock:
    """Labels on the card, sorted by item and category."""

    device: CUDADevice
    n_categories: int
    begin: Any  # where the labels of each item begin, and one word per label
    label: Any
    known: Any  # the category of each item's known truth, or -1; None if none is known
    fold: Any = None  # the fold of each label; None where no label is held out

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.begin) - 1

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.label)

    @property
    def row(self) -> Any:
        """The rows of the labels sorted by row: annotator x categories + category."""
        return self._by_row[0]

    @property
    def item(self) -> Any:
        """The items of the labels sorted by row."""
        return self._by_row[1]

    @cached_property
    def _by_row(self) -> tuple[Any, Any]:
        xp, shift = self.device.xp, np.uint32(category_shift(self.n_categories))
        check_room(self.device, 40 * self.n_labels, "the labels sorted by annotator")
        mask = (np.uint32(1) << shift) - np.uint32(1)
        row = (self.label & mask) * np.uint32(self.n_categories) + (self.label >> shift)
        order = xp.argsort(row, kind="stable")
        item = xp.searchsorted(self.begin[1:], order.astype(np.uint32), side="right")
        return row[order], item.astype(np.uint32)

    def where(self, is_kept: Any) -> LabelBlock:
        """Return the block of the labels that are kept, without items that have none of them."""
        xp = self.device.xp
        check_room(self.device, 20 * self.n_labels, "the labels of a sample")
        n_before = xp.zeros(self.n_labels + 1, np.int64)
        n_before[1:] = xp.cumsum(is_kept)
        begin = n_before[self.begin.astype(np.int64)]
        item = xp.flatnonzero(begin[1:] > begin[:-1])
        return LabelBlock(
            self.device,
            self.n_categories,
            xp.concatenate([begin[item], begin[-1:]]).astype(np.uint32),
            self.label[is_kept],
            None if self.known is None else self.known[item],
            None if self.fold is None else self.fold[is_kept],
        )


def copy_labels(labels: Labels, device: CUDADevice, number: Any) -> LabelBlock:
    """Return labels on the card: one word per label, and where the labels of each item begin.

    ``number`` is the number of each annotator on the card.
    """
    xp, n = device.xp, labels.n_labels
    check_room(device, 4 * n + 8 * labels.n_items, "the labels")
    shift = np.uint32(category_shift(labels.n_categories))
    word = xp.empty(n, np.uint32)
    for part in slices(n, LABELS_AT_ONCE):
        # The cell of each label, counted from that of the first one.
        first, last = (
            np.searchsorted(labels.cell_ptr, [part.start, part.stop - 1], side="right") - 1
        )
        begins_cell = xp.zeros(part.stop - part.start, np.int32)
        begins_cell[xp.asarray(labels.cell_ptr[first + 1 : last + 1] - part.start)] = 1
        category = xp.asarray(labels.cell_category[first : last + 1].astype(np.uint32))
        annotator = xp.asarray(labels.annotator[part])
        word[part] = number[annotator] | category[xp.cumsum(begins_cell)] << shift
    has_known = bool((labels.known >= 0).any())
    return LabelBlock(
        device,
        labels.n_categories,
        xp.asarray(labels.cell_ptr[labels.item_ptr].astype(np.uint32)),
        word,
        xp.asarray(labels.known.astype(np.int32)) if has_known else None,
    )
