"""Engines for labels on this machine: compiled kernels on threads, and their NumPy twins on one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.protocol import EngineCapabilities, Extent, Pass, PassData
from annotruth.errors import AnnotruthWarning, InputError
from annotruth.kernels import Kernel, find_kernel, native_kernels
from annotruth.kernels.arrays import Floats, aligned_empty, contiguous, usable_cores

if TYPE_CHECKING:
    from annotruth.observations import Labels
    from annotruth.observations.options import ReadOptions


# Enough partitions to keep many threads busy, each large enough to be worth a call.
_MAX_PARTITIONS = 64
_LABELS_PER_PARTITION = 62_500
_MIN_LABELS_OF_TWO = 50_000  # two smaller partitions still take less time than one
_MAX_SUMS_OF_TWO = 1 << 19  # 4 MB, whatever the number of labels
_ANNOTATORS_PER_TASK = 256

_CACHE_LINE = 8  # doubles per cache line


class MemoryEngine:
    """Runs compiled kernels on ``threads`` threads (default: all usable cores).

    The labels are divided into partitions that depend on the data alone; each partition has sums
    of its own, added in order. So results are identical to the last bit on any number of threads.
    """

    name: ClassVar[str] = "memory"
    capabilities: ClassVar[EngineCapabilities] = EngineCapabilities(
        out_of_core=True, classifier=True, over_time=True
    )

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or usable_cores()

    def read(
        self, source: Any, options: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
    ) -> Labels:
        """Read labels from a path, a frame, tuples or Labels."""
        from annotruth.io.readers import load_labels

        return load_labels(source, options, gold=gold, annotator_prior=annotator_prior)

    def open(self, data: Any) -> MemorySession:
        """Open data that are on this machine."""
        _warn_without_kernels()
        return MemorySession(check_local(data), self.threads)


@cache
def _warn_without_kernels() -> None:
    if native_kernels() is None:
        warnings.warn(
            "annotruth was installed without its compiled kernels and computes slowly, with NumPy: "
            "install a C++ compiler, then `pip install --force-reinstall --no-deps annotruth`",
            AnnotruthWarning,
            stacklevel=2,
        )


def check_local(data: Any) -> PassData:
    """Return the data; raise if they are not on this machine."""
    if not isinstance(data, PassData):
        raise InputError("these labels are not on this machine: choose the engine they are on")
    return data


class MemorySession:
    """Data on this machine with their item-side arrays."""

    runs_twins: ClassVar[bool] = False
    """Whether it runs the kernels' NumPy twins."""

    def __init__(self, data: PassData, threads: int) -> None:
        self._data = data
        self._block = data.block()
        self._state: dict[str, NDArray[Any]] = {}
        self._spare: dict[Pass, list[Floats]] = {}  # buffers for the sums of partitions
        self._bounds: dict[int, list[tuple[int, int]]] = {}
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an item-side array of zeros: one entry, or one of ``shape``, per item, cell, label."""
        self._state[name] = self._data.zeros((self._data.length(per), *shape))

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Store an array beside the data: one entry per item, cell or label."""
        if len(values) != self._data.length(per):
            raise ValueError(f"{name} has {len(values)} entries for {self._data.length(per)} {per}")
        self._state[name] = values

    def apply(self, name: str, function: Callable[[Any], Any]) -> None:
        """Replace an item-side array by a function of it."""
        self._state[name] = function(self._state[name])

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a kernel over all partitions and return the sums by name."""
        one.ordered(inputs)  # checks their names
        inputs = {name: contiguous(value) for name, value in inputs.items()}
        kernel = self._find_kernel(one.kernel)
        arrays = {**one.named_state(self._state), **inputs}
        layout = _SumLayout(one)
        partitions = self._partitions(layout.n_sums)
        if one not in self._spare:
            at_once = min(self._threads, len(partitions))
            self._data.check_room(
                8 * (len(partitions) * layout.width + at_once * one.scratch),
                f"the sums of {self._data.n_annotators:,} annotators",
            )
        spare = self._spare.setdefault(one, [])
        total = _OrderedTotal(layout.width)

        def run(number: int) -> None:
            # The buffer of a partition that is done was used last, so it is still in the caches.
            try:
                sums = spare.pop()
            except IndexError:
                sums = aligned_empty(layout.width)
            sums[:] = 0.0
            kernel(self._block, *partitions[number], **arrays, **one.named(layout.views(sums)))
            spare.extend(total.add(number, sums))

        self._run_tasks(run, len(partitions))
        return one.named(layout.views(total.sums))

    def to_engine(self, values: NDArray[Any], annotator_axis: int = 0) -> NDArray[Any]:
        """Return the array: this engine computes in memory."""
        return values

    def to_host(self, values: Any, annotator_axis: int = 0) -> NDArray[Any]:
        """Return the array, which is in memory."""
        array: NDArray[Any] = values
        return array

    def run_over_annotators(self, kernel: str, n_annotators: int, **arrays: Any) -> None:
        """Run a kernel over ranges ``lo, hi`` of annotators, writing into the arrays.

        The ranges depend on the number of annotators alone.
        """
        function = self._find_kernel(kernel)

        def run(number: int) -> None:
            lo = number * _ANNOTATORS_PER_TASK
            function(lo, min(lo + _ANNOTATORS_PER_TASK, n_annotators), **arrays)

        self._run_tasks(run, -(-n_annotators // _ANNOTATORS_PER_TASK))

    def collect(self, name: str) -> NDArray[Any]:
        """Return an item-side array as a whole."""
        return self._state[name]

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _find_kernel(self, name: str) -> Kernel:
        return find_kernel(name, reference=self.runs_twins)

    def _run_tasks(self, task: Callable[[int], None], n_tasks: int) -> None:
        """Run the tasks 0, 1, ... on all threads, this one included; a free thread takes the next.

        Not in equal shares: a core that is busy with other work would keep all threads waiting.
        """
        numbers = iter(range(n_tasks))

        def work() -> None:
            for number in numbers:
                task(number)

        helpers = min(self._threads, n_tasks) - 1
        running = [self._pool.submit(work) for _ in range(helpers)] if self._pool else []
        work()
        for future in running:
            future.result()

    def _partitions(self, n_sums: int) -> list[tuple[int, int]]:
        """Divide the items so that the partitions' sums are small compared with the labels.

        All sums together are at most a quarter of the labels. Where that would leave fewer than
        four partitions, four are still worthwhile, as large sums are slow to access and cheap to
        add up; but all of them are never more than eight times the labels, unless there are two
        partitions of few megabytes.
        """
        n_labels, n_sums = self._data.n_labels, max(n_sums, 1)
        most = max(n_labels // (4 * n_sums), min(4, 8 * n_labels // n_sums))
        at_least = 2 if n_labels >= _MIN_LABELS_OF_TWO else 1
        worthwhile = max(at_least, n_labels // _LABELS_PER_PARTITION)
        most = max(most, at_least if n_sums <= _MAX_SUMS_OF_TWO else 1)
        most = min(most, worthwhile, _MAX_PARTITIONS)
        n_partitions = 1 << (most.bit_length() - 1)  # a power of two divides evenly among threads
        if n_partitions not in self._bounds:
            bounds = np.unique(self._data.partition(n_partitions))
            self._bounds[n_partitions] = list(pairwise(bounds.tolist()))
        return self._bounds[n_partitions]


class ReferenceEngine(MemoryEngine):
    """Runs the NumPy twin of every kernel on one thread: slow, and easy to check."""

    name: ClassVar[str] = "reference"

    def __init__(self) -> None:
        super().__init__(threads=1)

    def open(self, data: Any) -> ReferenceSession:
        """Open data that are on this machine."""
        return ReferenceSession(check_local(data), 1)


class ReferenceSession(MemorySession):
    """A session that runs NumPy kernels."""

    runs_twins: ClassVar[bool] = True


class _SumLayout:
    """Where the sums of one partition are in one row.

    Every sum starts one cache line after the end of the one before, and so do the rows, because
    threads that write to the same cache line slow each other down.
    """

    def __init__(self, one: Pass) -> None:
        self._places: list[tuple[slice, tuple[int, ...]]] = []
        self.n_sums = self.width = 0
        for total in one.sums:
            size = math.prod(total.shape)
            self._places.append((slice(self.width, self.width + size), total.shape))
            self.n_sums += size
            self.width += -(-size // _CACHE_LINE) * _CACHE_LINE + _CACHE_LINE

    def views(self, row: Floats) -> tuple[Any, ...]:
        """Return the sums in a row, each in its shape."""
        return tuple(row[place].reshape(shape) for place, shape in self._places)


class _OrderedTotal:
    """The partitions' sums, added in the order of the partitions whichever is done first."""

    def __init__(self, width: int) -> None:
        self.sums = np.zeros(width)
        self._waiting: dict[int, Floats] = {}
        self._next = 0
        self._lock = Lock()

    def add(self, number: int, sums: Floats) -> list[Floats]:
        """Take the sums of a partition; return the buffers that have been added by now."""
        added = []
        with self._lock:
            self._waiting[number] = sums
            while self._next in self._waiting:
                sums = self._waiting.pop(self._next)
                self.sums += sums  # with the zeros between them
                self._next += 1
                added.append(sums)
        return added
