"""The default engine: labels in memory, compiled kernels on threads."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.protocol import Extent, Pass
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats, on_lines
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.partition import split

Kernel = Callable[..., None]

# Enough parts to keep many threads busy, each large enough to be worth a call.
_MOST_PARTS = 64
_LABELS_PER_PART = 62_500

_LINE = 8  # numbers in a cache line


class MemoryEngine:
    """Labels in memory, swept by compiled kernels on ``threads`` threads (default: all cores).

    The labels are cut into parts that depend on the data alone; each part has sums of its own,
    added in order. So the result is the same to the last bit on any number of threads.
    """

    name: ClassVar[str] = "memory"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or usable_cores()

    def open(self, labels: LabelSummary) -> MemorySession:
        """Lay the labels out in parts."""
        return MemorySession(_at_hand(labels), self.threads, _compiled_kernel)


class ReferenceEngine:
    """The plain NumPy twins on one thread: slow, and easy to check by eye."""

    name: ClassVar[str] = "reference"

    def open(self, labels: LabelSummary) -> MemorySession:
        """Take the labels as one part."""
        return MemorySession(_at_hand(labels), 1, _reference_kernel)


def _at_hand(labels: LabelSummary) -> Labels:
    if not isinstance(labels, Labels):
        raise InputError("these labels are not on this machine: choose the engine they are on")
    return labels


class MemorySession:
    """Labels in memory with their item-side arrays."""

    def __init__(self, labels: Labels, threads: int, kernel: Callable[[str], Kernel]) -> None:
        self._labels = labels
        self._block = labels.block()
        self._kernel = kernel
        self._state: dict[str, NDArray[Any]] = {}
        self._spare: dict[Pass, list[Floats]] = {}  # room for the sums of parts
        self._bounds: dict[int, list[tuple[int, int]]] = {}
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an item-side array of zeros: one entry, or one of ``shape``, per item or so."""
        self._state[name] = self._labels.zeros((self._length(per), *shape))

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Lay an array of the caller's beside the labels."""
        if len(values) != self._length(per):
            raise ValueError(f"{name} has {len(values)} entries for {self._length(per)} {per}")
        self._state[name] = values

    def _length(self, per: Extent) -> int:
        lengths = {
            "items": self._labels.n_items,
            "cells": self._labels.n_cells,
            "labels": self._labels.n_labels,
        }
        return lengths[per]

    def run_pass(self, sweep: Pass, *shared: Any) -> tuple[Floats, ...]:
        """Run a kernel over all parts and return the sums."""
        kernel = self._kernel(sweep.kernel)
        state = [self._state[name] for name in sweep.state]
        layout = _Layout(sweep)
        parts = self._parts(layout.n_sums)
        if sweep not in self._spare:
            at_once = min(self._threads, len(parts))
            self._labels.check_room(
                8 * (len(parts) * layout.width + at_once * sweep.scratch),
                f"the sums of {self._labels.n_annotators:,} annotators",
            )
        spare = self._spare.setdefault(sweep, [])
        total = _Total(layout)

        def run(part: int) -> None:
            # The room of a part that is done is the nearest: sums stay in the caches.
            try:
                sums = spare.pop()
            except IndexError:
                sums = on_lines((layout.width,), np.float64)
            sums[:] = 0.0
            kernel(self._block, *parts[part], *state, *shared, *layout.views(sums))
            spare.extend(total.add(part, sums))

        self.share_out(run, len(parts))
        return layout.views(total.sums)

    def share_out(self, task: Callable[[int], None], n_tasks: int) -> None:
        """Do the tasks 0, 1, ... on all threads, this one too; who is free takes the next.

        Not in equal shares: a core that other work holds for a while would keep all waiting.
        """
        turns = iter(range(n_tasks))

        def work() -> None:
            for turn in turns:
                task(turn)

        helpers = min(self._threads, n_tasks) - 1
        helping = [self._pool.submit(work) for _ in range(helpers)] if self._pool else []
        work()
        for help in helping:
            help.result()

    def gather(self, name: str) -> NDArray[Any]:
        """Bring an item-side array back."""
        return self._state[name]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _parts(self, n_sums: int) -> list[tuple[int, int]]:
        """Cut the items so that the parts' sums cost little beside the labels.

        Those of all parts are a quarter as many as the labels or less. Where that would leave
        less than four parts, four still pay, as sums that many are slow to reach and cheap to
        add up; but all of them are never more than eight a label.
        """
        n_labels, n_sums = self._labels.n_labels, max(n_sums, 1)
        most = max(n_labels // (4 * n_sums), min(4, 8 * n_labels // n_sums))
        most = max(1, min(most, n_labels // _LABELS_PER_PART, _MOST_PARTS))
        n_parts = 1 << (most.bit_length() - 1)  # a power of two, to share out among the threads
        if n_parts not in self._bounds:
            bounds = np.unique(split(self._labels, n_parts))
            self._bounds[n_parts] = list(pairwise(bounds.tolist()))
        return self._bounds[n_parts]


class _Layout:
    """Where the sums of one part stand in one row of doubles; two singles take the place of one.

    Each begins a cache line after the end of the one before, and so do the rows: threads that
    write to one line keep taking it from each other.
    """

    def __init__(self, sweep: Pass) -> None:
        self._places: list[tuple[slice, bool, tuple[int, ...]]] = []
        self._singles = self.n_sums = self.width = 0
        for i, shape in enumerate(sweep.sums):
            single = i < sweep.single
            size = -(-math.prod(shape) // (2 if single else 1))
            self._places.append((slice(self.width, self.width + size), single, shape))
            self.n_sums += size
            self.width += -(-size // _LINE) * _LINE + _LINE
            self._singles = self.width if single else self._singles

    def views(self, row: Floats) -> tuple[Any, ...]:
        """Give the numbers of a row their shapes."""
        return tuple(
            row[place].view(np.float32)[: math.prod(shape)].reshape(shape)
            if single
            else row[place].reshape(shape)
            for place, single, shape in self._places
        )

    def add(self, sums: Floats, to: Floats) -> None:
        """Add a row to another, with the zeros between its sums."""
        if self._singles:
            singles = to[: self._singles].view(np.float32)
            singles += sums[: self._singles].view(np.float32)
        doubles = to[self._singles :]
        doubles += sums[self._singles :]


class _Total:
    """The parts' sums, added up in the order of the parts, whichever is done first."""

    def __init__(self, layout: _Layout) -> None:
        self.sums = np.zeros(layout.width)
        self._layout = layout
        self._waiting: dict[int, Floats] = {}
        self._next = 0
        self._turn = Lock()

    def add(self, part: int, sums: Floats) -> list[Floats]:
        """Take the sums of a part, and return those that are in the total by now."""
        added = []
        with self._turn:
            self._waiting[part] = sums
            while self._next in self._waiting:
                sums = self._waiting.pop(self._next)
                self._layout.add(sums, self.sums)
                self._next += 1
                added.append(sums)
        return added


def usable_cores() -> int:
    """Count the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compiled_kernel(name: str) -> Kernel:
    return _kernel("annotruth.kernels", name)


def _reference_kernel(name: str) -> Kernel:
    return _kernel("annotruth.kernels.reference", name)


@cache
def _kernel(room: str, name: str) -> Kernel:
    family, function = name.split(".")
    kernel: Kernel = getattr(importlib.import_module(f"{room}.{family}"), function)
    return kernel
