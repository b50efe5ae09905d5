"""A session on the card: the labels, the item-side arrays, and the passes that run there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annotruth.engines.gpu.device import (
    DENSE_CATEGORIES,
    DOUBLE_LABELS,
    CUDADevice,
    category_shift,
    check_room,
    errors_in_one_line,
    limit_exceeded,
    log_unit,
)
from annotruth.engines.gpu.label_arrays import (
    SORTED,
    cell_entries,
    copy_labels,
    sort_labels,
    to_rows,
)
from annotruth.engines.gpu.latent_classes import PASSES as LATENT_PASSES
from annotruth.engines.gpu.latent_classes import run_latent
from annotruth.engines.gpu.streamed_passes import PASSES as STREAMED_PASSES
from annotruth.engines.gpu.streaming import (
    BEGIN,
    KNOWN,
    LABEL,
    ArrayAccess,
    CardItems,
    Rows,
    card_ranges,
)
from annotruth.engines.protocol import Extent, Pass
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats, copy_on_all_cores
from annotruth.observations import Labels

T = TypeVar("T")

_IN_DOUBLE = ("gpm", "dawid_skene", "squarem")  # where there are few labels


class GPUSession:
    """Labels on a card with their item-side arrays.

    ``labels``: The labels.
    ``devices``: The cards. Only the first is used if the labels fit on it.
    ``memory``: How many bytes of each card may be used; by default, what is free.
    """

    def __init__(
        self, labels: Labels, devices: Sequence[CUDADevice], memory: int | None = None
    ) -> None:
        if limit := limit_exceeded(labels):
            raise InputError(
                f"the engine gpu takes at most {limit}: choose engine='memory' (`--engine memory`)"
            )
        if labels.annotator_weight is not None:
            raise InputError(
                "the engine gpu takes labels that all count alike: choose engine='memory' "
                "(`--engine memory`)"
            )
        self.labels = labels
        self.device = devices[0]
        self._cache: dict[str, Any] = {}
        self.n_items, self.n_labels = labels.n_items, labels.n_labels
        self.n_annotators, self.n_categories = labels.n_annotators, labels.n_categories
        self.is_dense = self.n_categories <= DENSE_CATEGORIES
        self.is_double = self.n_labels <= DOUBLE_LABELS
        self.category_shift = category_shift(self.n_categories)
        # One entry per cell is items x categories on the card; with many categories, it is one
        # entry per label, that of a cell at its first label.
        self._width = self.n_categories if self.is_dense else 0
        xp = self._xp = self.device.xp
        self._extents: dict[str, tuple[Extent, tuple[int, ...]]] = {}
        n_labels = labels.labels_per_annotator
        order = np.argsort(-n_labels, kind="stable")  # the annotators, those with most labels first
        number = np.empty(self.n_annotators, dtype=np.uint32)
        number[order] = np.arange(self.n_annotators, dtype=np.uint32)
        self._order, self._number = xp.asarray(order), xp.asarray(number)
        self.labels_per_annotator = self.to_engine(n_labels)
        self.cards = self._open_cards(devices, memory)
        for card in self.cards:
            copy_labels(card, number, self.category_shift)

    def _open_cards(self, devices: Sequence[CUDADevice], memory: int | None) -> list[CardItems]:
        """Divide the items among the cards, if the labels do not fit on the first."""
        item_bytes = 4 * np.dtype(self.real).itemsize * self.n_categories if self.is_dense else 0

        def opened(cards: Sequence[CUDADevice]) -> list[CardItems]:
            return [
                CardItems(self.labels, items, card, memory or card.free_bytes(), item_bytes)
                for items, card in zip(card_ranges(self.labels, len(cards)), cards, strict=False)
            ]

        alone = opened(devices[:1])
        return alone if alone[0].keeps_labels() or len(devices) == 1 else opened(devices)

    @property
    def real(self) -> type[np.floating[Any]]:
        """The type ``real`` of the kernels; ``is_double`` says which."""
        return np.float64 if self.is_double else np.float32

    @property
    def label(self) -> Any:
        """The annotator and the category of every label, on the card."""
        return self.array(LABEL)

    @property
    def begin(self) -> Any:
        """The first label of every item, and the number of labels, on the card."""
        return self.array(BEGIN)

    @property
    def known(self) -> Any:
        """The known truth of every item or -1, on the card; None if none is known."""
        return self.array(KNOWN) if self.has_known_truths else None

    @property
    def has_known_truths(self) -> bool:
        """Whether the truth of some items is known."""
        return KNOWN in self.cards[0].arrays

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Declare an array of zeros; it is made when a kernel first uses it."""
        self._extents[name] = (per, shape)
        for card in self.cards:
            card.remove(name)
        self._cache.clear()

    def apply(self, name: str, function: Callable[[Any], Any]) -> None:
        """Replace an item-side array by a function of it, which is computed on the card."""
        self.array(name)[...] = function(self.array(name))

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Store an array beside the labels: one entry per item, cell or label."""
        if len(values) != self.labels.length(per):
            raise ValueError(
                f"{name} has {len(values)} entries for {self.labels.length(per)} {per}"
            )
        self.allocate(name, per, values.shape[1:])
        self._make(name)
        for card in self.cards:
            for one in card.partitions:
                given = card.extent(one, per)
                rows = to_rows(card, one, values[given], per, self._width)
                dtype = card.arrays[name].values.dtype
                card.store(name, one, card.device.xp.asarray(rows.astype(dtype)))

    def has(self, name: str) -> bool:
        """Return whether an array was declared."""
        return name in self._extents

    def array(self, name: str, dtype: Any = np.float32) -> Any:
        """Return an array on the card; one entry per cell is items x categories there.

        The type is that of the first kernel that uses it.
        """
        self._make(name, dtype)
        card = self.cards[0]
        if len(self.cards) > 1 or not card.arrays[name].on_card:
            raise InputError(
                "the labels do not fit on the card, for which the engine gpu has gpm and dawid-skene: "
                "choose one of them, or engine='memory' (`--engine memory`)"
            )
        return card.arrays[name].values

    def _make(self, name: str, dtype: Any = np.float32) -> None:
        """Make an array that was declared, unless it is there."""
        for card in self.cards:
            if name not in card.arrays:
                per, shape = self._extents[name]
                rows: Rows = "items" if per == "items" else "labels"
                if per == "cells":
                    dtype = self.real
                    if self._width:
                        rows, shape = "items", (self._width,)
                card.allocate(name, rows, shape, dtype).values[...] = 0

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a pass on the card and return the sums by name."""
        streamed = STREAMED_PASSES.get(one.kernel)
        if streamed is None and one.kernel not in LATENT_PASSES:
            raise InputError(
                "the engine gpu runs gpm, dawid-skene and robust-gpm only: choose engine='memory' "
                "(`--engine memory`)"
            )
        if streamed is None and not self.is_dense:
            raise InputError(
                f"the engine gpu takes at most {DENSE_CATEGORIES} categories for this model, not "
                f"{self.n_categories}: choose engine='memory' (`--engine memory`)"
            )
        values = one.ordered(inputs)
        with errors_in_one_line():
            if streamed is None:
                return run_latent(self, one, inputs)
            sums = streamed(self, *one.state, *values)
        return one.named(tuple(sums[total.name] for total in one.sums))

    def run(self, kernel: str, *arguments: Any, **options: Any) -> None:
        """Run a function of a CUDA file once, with the arguments as they are."""
        self._launch(self.device, kernel, arguments, **options)

    def run_over_items(
        self, kernel: str, *arguments: Any, sums: Sequence[Any] = (), **options: Any
    ) -> None:
        """Run a function of a CUDA file over all items, in partitions if they are not on one card.

        ``kernel``: ``family.function``.
        ``*arguments``: Its arguments: numbers, arrays of annotators on the card, what
          `annotruth.engines.gpu.streaming` has for items and labels, and None for a null pointer.
        ``sums``: Its last arguments: the sums that it adds to.
        ``**options``: As for `_launch`.
        """
        for argument in arguments:
            if isinstance(argument, ArrayAccess) and argument.name in self._extents:
                self._make(argument.name)
        added = [self._sums_on(card, sums) for card in self.cards]
        for card, sums_here in zip(self.cards, added, strict=True):
            given = [self._copied(argument, card.device) for argument in arguments]

            def launch(values: Sequence[Any], device: CUDADevice = card.device) -> None:
                self._launch(device, kernel, values, **options)

            with card.device.current():
                card.run(launch, (*given, *sums_here))
        for sums_here in added[1:]:
            for total, one in zip(sums, sums_here, strict=True):
                if total is not None:
                    total += self._copied(one, self.device)

    def _sums_on(self, card: CardItems, sums: Sequence[Any]) -> Sequence[Any]:
        if card is self.cards[0]:
            return sums
        with card.device.current():
            return [None if one is None else card.device.xp.zeros_like(one) for one in sums]

    def _copied(self, argument: Any, device: CUDADevice) -> Any:
        """Return an argument; an array as a copy on that card, unless it is there."""
        if len(self.cards) == 1 or not isinstance(argument, self._xp.ndarray):
            return argument
        with device.current():
            return device.xp.asarray(self.device.to_host(argument))

    def _launch(
        self,
        device: CUDADevice,
        kernel: str,
        arguments: Sequence[Any],
        *,
        threads: int = 256,
        blocks: int | None = None,
        shared_bytes: int = 0,
        defines: tuple[str, ...] = (),
    ) -> None:
        """Run a function of a CUDA file, given as ``family.function``; None is a null pointer.

        ``defines`` are the names of macros to compile the file with.
        """
        family, function = kernel.split(".")
        sparse = () if self.is_dense else ("SPARSE",)
        double = ("DOUBLE",) if self.is_double and family in _IN_DOUBLE else ()
        layout = (f"N_CATEGORIES={self.n_categories}", f"CATEGORY_SHIFT={self.category_shift}")
        device.run(
            family,
            function,
            (*layout, *sparse, *double, *defines),
            [np.uint64(0) if argument is None else argument for argument in arguments],
            blocks=blocks or 8 * device.n_processors,
            threads=threads,
            shared_bytes=shared_bytes,
        )

    def without_items(self, name: str, value: float) -> GPUSession:
        """Return this session: passes skip the items where they are."""
        return self

    def to_engine(self, values: NDArray[Any], annotator_axis: int = 0) -> Any:
        """Return an array with an annotator axis on the card, in its order: most labels first."""
        table = self._xp.asarray(values)
        return self._xp.take(table, self._order, annotator_axis) if table.size else table

    def to_host(self, values: Any, annotator_axis: int = 0) -> NDArray[Any]:
        """Return an array of the card in memory, in the order of the labels' annotators."""
        if values.size:
            values = self._xp.take(values, self._number, annotator_axis)
        return self.device.to_host(values)

    def run_over_annotators(self, kernel: str, n_annotators: int, **arrays: Any) -> None:
        """Raise: labels over time are not fitted on the card (`EngineCapabilities.over_time`)."""
        raise NotImplementedError

    def collect(self, name: str) -> NDArray[Any]:
        """Return an item-side array of all items in double precision."""
        per, shape = self._extents[name]
        self._make(name)
        values: NDArray[Any] = self.labels.zeros((self.labels.length(per), *shape))
        for card in self.cards:
            for one in card.partitions:
                target = values[card.extent(one, per)]
                if per == "cells":
                    copy_on_all_cores(cell_entries(card, one, card.collect(name, one)), target)
                else:
                    card.copy_to_host(name, one, target)
        return values

    def close(self) -> None:
        """Release the arrays on the card."""
        self._cache.clear()
        for card in self.cards:
            card.close()

    def cached(self, what: str, make: Callable[[], T]) -> T:
        """Return what ``make`` made the first time; arrays that are allocated later make it anew."""
        if what not in self._cache:
            self._cache[what] = make()
        found: T = self._cache[what]
        return found

    def sort_labels(self) -> None:
        """Make the arrays of `SORTED`, unless they are there."""
        for card in self.cards:
            if SORTED[0] not in card.arrays:
                sort_labels(card, self.n_annotators, self.n_categories, self.category_shift)

    @property
    def log_unit(self) -> np.float32:
        """The unit of sums of logs of these labels."""
        return log_unit(self.n_labels)

    def by_annotator(self, values: Any, *, axis: int = 0, dtype: Any = np.float32) -> Any:
        """Return a table of annotators on the card, as kernels take it; None if it is empty."""
        if not values.size:
            return None
        if not isinstance(values, self._xp.ndarray):
            values = self.to_engine(values, axis)
        return self._xp.ascontiguousarray(values.astype(dtype, copy=False))

    def table(self, values: Any, dtype: Any = np.float64) -> Any:
        """Return a table without an annotator axis on the card, as kernels take it."""
        return self._xp.asarray(np.ascontiguousarray(values, dtype=dtype))

    def empty(self, *shape: int) -> Any:
        """Return numbers that a kernel writes, on the card."""
        check_room(self.device, 4 * int(np.prod(shape)), "the items' posteriors")
        return self._xp.empty(shape, np.float32)

    def sums(self, *shape: int, dtype: DTypeLike = np.uint64) -> Any:
        """Return integers to add to on the card."""
        return self._xp.zeros(shape, dtype)

    def floats(self, sums: Any, unit: float | np.float32) -> Any:
        """Return sums as numbers, on the card."""
        return sums.view(np.int64) / float(unit)

    def small_floats(self, sums: Any, unit: float | np.float32) -> Floats:
        """Return sums that are not those of annotators as numbers, in memory."""
        return self.device.to_host(self.floats(sums, unit))
