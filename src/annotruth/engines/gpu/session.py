"""A session on the card: the labels, the item-side arrays, and the passes that run there."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.gpu.device import Device
from annotruth.engines.memory import find_kernel
from annotruth.engines.protocol import Extent, Pass
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels

MAX_CATEGORIES = 16
"""An item's distribution is in registers, and a label's category in four bits."""

MAX_ANNOTATORS = 1 << 28
MAX_LABELS = (1 << 32) - 1
_CATEGORY_SHIFT = 28
_FAMILIES = ("gpm", "dawid_skene", "squarem")


class GPUSession:
    """Labels on a card with their item-side arrays.

    Parameters
    ----------
    labels
        The labels.
    device
        The card.

    Examples
    --------
    >>> from annotruth.engines.gpu import GPUEngine
    >>> import annotruth as at
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 2)])
    >>> GPUEngine().open(labels).n_items  # doctest: +SKIP
    1
    """

    def __init__(self, labels: Labels, device: Device) -> None:
        _check_limits(labels)
        self.labels = labels
        self.device = device
        self.n_items, self.n_labels = labels.n_items, labels.n_labels
        self.n_annotators, self.n_categories = labels.n_annotators, labels.n_categories
        self._check_room(13 * self.n_labels, "the labels")
        n_labels = labels.labels_per_annotator
        order = np.argsort(-n_labels, kind="stable")  # the annotators, those with most labels first
        number = np.empty(self.n_annotators, dtype=np.uint32)
        number[order] = np.arange(self.n_annotators, dtype=np.uint32)
        xp = self._xp = device.xp
        self.labels_per_annotator = n_labels[order]
        self._order, self._number = xp.asarray(order), xp.asarray(number)
        category = np.repeat(labels.cell_category.astype(np.uint8), np.diff(labels.cell_ptr))
        self.label = self._number[xp.asarray(labels.annotator)]
        self.label |= xp.asarray(category).astype(np.uint32) << np.uint32(_CATEGORY_SHIFT)
        self.begin = xp.asarray(labels.cell_ptr[labels.item_ptr].astype(np.uint32))
        is_known = (labels.known >= 0).any()
        self.known = xp.asarray(labels.known) if is_known else None
        self._extents: dict[str, tuple[Extent, tuple[int, ...]]] = {}
        self._arrays: dict[str, Any] = {}
        self._sorted: tuple[Any, Any] | None = None

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Declare an array of zeros; it is made when a kernel first uses it."""
        self._extents[name] = (per, shape)
        self._arrays.pop(name, None)

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Store an array beside the labels: one entry per item, cell or label."""
        if len(values) != self.labels.length(per):
            raise ValueError(
                f"{name} has {len(values)} entries for {self.labels.length(per)} {per}"
            )
        self._extents[name] = (per, values.shape[1:])
        if per == "cells":
            dense = np.zeros((self.n_items, self.n_categories), dtype=np.float32)
            dense[self.labels.item_of_cell(), self.labels.cell_category] = values
            values = dense
        self._arrays[name] = self._xp.asarray(values.astype(np.float32))

    def has(self, name: str) -> bool:
        """Return whether an array was declared."""
        return name in self._extents

    def array(self, name: str) -> Any:
        """Return an array on the card; one entry per cell is items x categories there."""
        if name not in self._arrays:
            per, shape = self._extents[name]
            if per == "cells":
                size: tuple[int, ...] = (self.n_items, self.n_categories)
            else:
                size = (self.labels.length(per), *shape)
            self._check_room(4 * int(np.prod(size)), name)
            self._arrays[name] = self._xp.zeros(size, np.float32)
        return self._arrays[name]

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a pass on the card and return the sums by name."""
        family, function = one.kernel.split(".")
        if family not in _FAMILIES:
            raise InputError(
                "the engine gpu runs gpm and dawid-skene only: choose engine='memory' "
                "(`--engine memory`)"
            )
        launch = getattr(importlib.import_module(f"annotruth.engines.gpu.{family}"), function)
        sums = launch(self, *one.state, *one.ordered(inputs))
        return one.named(tuple(sums[total.name] for total in one.sums))

    def run(
        self,
        kernel: str,
        *arguments: Any,
        threads: int = 256,
        blocks: int | None = None,
        shared_bytes: int = 0,
        defines: tuple[str, ...] = (),
    ) -> None:
        """Run a function of a CUDA file, given as ``family.function``; None is a null pointer.

        ``defines`` are the names of macros to compile the file with.
        """
        family, function = kernel.split(".")
        self.device.run(
            family,
            function,
            (f"N_CATEGORIES={self.n_categories}", *defines),
            [np.uint64(0) if argument is None else argument for argument in arguments],
            blocks=blocks or 8 * self.device.n_processors,
            threads=threads,
            shared_bytes=shared_bytes,
        )

    def run_over_annotators(self, kernel: str, n_annotators: int, *arrays: Any) -> None:
        """Run a kernel over all annotators, on this machine's processor."""
        find_kernel("annotruth.kernels", kernel)(0, n_annotators, *arrays)

    def single_precision(self, tol: float) -> bool:
        """Return True: large tables are in single precision on the card."""
        return True

    def collect(self, name: str) -> NDArray[Any]:
        """Return an item-side array of all items in double precision."""
        values = self.device.to_host(self.array(name)).astype(np.float64)
        if self._extents[name][0] == "cells":
            cells: NDArray[Any] = values[self.labels.item_of_cell(), self.labels.cell_category]
            return cells
        return values

    def close(self) -> None:
        """Release the arrays on the card."""
        self._arrays.clear()
        self.label = self.begin = self.known = self._sorted = None

    def sorted_labels(self) -> tuple[Any, Any]:
        """Return the labels sorted by (category, annotator): the number of that pair, and the item."""
        if self._sorted is None:
            self._check_room(40 * self.n_labels, "the labels sorted by annotator")
            shift, mask = np.uint32(_CATEGORY_SHIFT), np.uint32((1 << _CATEGORY_SHIFT) - 1)
            row = (self.label >> shift) * np.uint32(self.n_annotators) + (self.label & mask)
            order = self._xp.argsort(row, kind="stable")
            item = self._xp.asarray(self.labels.item_of_label().astype(np.uint32))
            self._sorted = (row[order], item[order])
        return self._sorted

    @property
    def log_unit(self) -> np.float32:
        """What the integers in sums of logs are multiples of the inverse of: a power of two.

        64 bits hold the sum even if every label has the least probability.
        """
        return _power_of_two(62 - 7, self.n_labels)

    def by_annotator(self, values: Floats, *, axis: int = 0, dtype: Any = np.float32) -> Any:
        """Return a table of annotators on the card, in its order; None if it is empty."""
        if not len(values):
            return None
        table = self._xp.take(self._xp.asarray(values), self._order, axis)
        return self._xp.ascontiguousarray(table.astype(dtype))

    def sums(self, *shape: int) -> Any:
        """Return integers to add to on the card."""
        return self._xp.zeros(shape, np.uint64)

    def floats(self, sums: Any, unit: float | np.float32, axis: int | None = None) -> Floats:
        """Return sums as numbers; ``axis`` is that of the annotators, which get their own order."""
        numbers = sums.view(np.int64) / float(unit)
        if axis is not None:
            numbers = self._xp.take(numbers, self._number, axis)
        return self.device.to_host(numbers)

    def _check_room(self, n_bytes: int, what: str) -> None:
        free = self.device.free_bytes()
        if n_bytes > free:
            raise InputError(
                f"the card has {free / 1e9:,.1f} GB free, and {what} need {n_bytes / 1e9:,.1f} GB: "
                "choose engine='memory' (`--engine memory`)"
            )


def slope_unit(n_labels: int) -> np.float32:
    """Return the unit of sums of slopes of this many labels, each below 2**20."""
    return _power_of_two(62 - 20, n_labels)


def _power_of_two(bits: int, n_labels: int) -> np.float32:
    return np.float32(2.0 ** min(bits - int(np.ceil(np.log2(n_labels + 1))), 32))


def _check_limits(labels: Labels) -> None:
    limits = (
        (labels.n_categories, MAX_CATEGORIES, "categories"),
        (labels.n_annotators, MAX_ANNOTATORS, "annotators"),
        (labels.n_labels, MAX_LABELS, "labels"),
    )
    for n, most, what in limits:
        if n > most:
            raise InputError(
                f"the engine gpu takes at most {most:,} {what}, not {n:,}: choose engine='memory' "
                "(`--engine memory`)"
            )
