"""The default engine: labels in memory, compiled kernels on threads."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.arrays import Floats
from annotruth.engines.base import Extent, Sweep
from annotruth.labels import Labels
from annotruth.labels.shards import split

Kernel = Callable[..., None]

# Enough parts to keep many threads busy, each large enough to be worth a call.
_MOST_PARTS = 64
_LABELS_PER_PART = 65_536


class MemoryEngine:
    """Labels in memory, swept by compiled kernels on ``threads`` threads (default: all cores).

    The labels are cut into parts that depend on the data alone; each part has sums of its own,
    added in order. So the result is the same to the last bit on any number of threads.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or usable_cores()

    def open(self, labels: Labels) -> MemorySession:
        """Lay the labels out in parts."""
        return MemorySession(labels, self.threads, _compiled_kernel)


class ReferenceEngine:
    """The plain NumPy twins on one thread: slow, and easy to check by eye."""

    def open(self, labels: Labels) -> MemorySession:
        """Take the labels as one part."""
        return MemorySession(labels, 1, _reference_kernel)


class MemorySession:
    """Labels in memory with their item-side arrays."""

    def __init__(self, labels: Labels, threads: int, kernel: Callable[[str], Kernel]) -> None:
        self._labels = labels
        self._block = labels.block()
        self._kernel = kernel
        self._state: dict[str, NDArray[Any]] = {}
        self._sums: dict[Sweep, list[Floats]] = {}
        self._bounds: dict[int, list[tuple[int, int]]] = {}
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an item-side array of zeros: one entry, or one of ``shape``, per item or so."""
        self._state[name] = np.zeros((self._length(per), *shape))

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

    def sweep(self, sweep: Sweep, *shared: Any) -> tuple[Floats, ...]:
        """Run a kernel over all parts and return the sums."""
        kernel = self._kernel(sweep.kernel)
        state = [self._state[name] for name in sweep.state]
        parts = self._parts(sum(int(np.prod(shape)) for shape in sweep.sums))
        if sweep not in self._sums:
            self._sums[sweep] = [np.empty((len(parts), *shape)) for shape in sweep.sums]
        sums = self._sums[sweep]

        def run(first: int, last: int) -> None:
            for part in range(first, last):
                lo, hi = parts[part]
                own = [total[part] for total in sums]
                for total in own:
                    total.fill(0.0)  # here, so that it is in this core's cache when used
                kernel(self._block, lo, hi, *state, *shared, *own)

        if self._pool is None or len(parts) == 1:
            run(0, len(parts))
        else:
            turns = np.linspace(0, len(parts), min(self._threads, len(parts)) + 1).astype(int)
            list(self._pool.map(run, *zip(*pairwise(turns.tolist()), strict=True)))
        return tuple(total.sum(axis=0) for total in sums)

    def gather(self, name: str) -> NDArray[Any]:
        """Bring an item-side array back."""
        return self._state[name]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _parts(self, n_sums: int) -> list[tuple[int, int]]:
        """Cut the items so that the parts' sums take less memory than the labels."""
        labels = self._labels
        most = min(_MOST_PARTS, labels.n_labels // max(n_sums, 1))
        most = max(1, min(most, labels.n_labels // _LABELS_PER_PART))
        n_parts = 1 << (most.bit_length() - 1)  # a power of two, to share out among the threads
        if n_parts not in self._bounds:
            bounds = np.unique(split(labels, n_parts))
            self._bounds[n_parts] = list(pairwise(bounds.tolist()))
        return self._bounds[n_parts]


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
