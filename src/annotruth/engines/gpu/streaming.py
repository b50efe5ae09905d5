"""Labels and item-side arrays of a card: what fits stays on it, the rest is copied in partitions.

Arrays that do not fit on the card are in page-locked memory of the host, or on disk for labels that
are there. A kernel then runs partition by partition: while it processes one, the next is copied to
the card and the results of the last one back. Sums over labels are integers, so results are
identical to the last bit however the items are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annotruth.engines.gpu.device import CUDADevice
from annotruth.engines.protocol import Extent
from annotruth.errors import InputError
from annotruth.kernels.arrays import concatenate, copy_on_all_cores, map_slices
from annotruth.observations import Labels
from annotruth.observations.disk import format_size

Rows = Literal["items", "bounds", "labels"]
"""What an array has one row for; "bounds" is one per item and one more at the end."""

MAX_OFFSET = 1 << 32
"""Kernels count labels modulo this number."""


class CardPartition(NamedTuple):
    """Items that are processed at once, and their labels, counted from the first of the card.

    ``first_label`` is the first of these labels, counted from the first of all.
    """

    items: slice
    labels: slice
    first_label: int

    def rows(self, per: Rows) -> slice:
        """Return the rows of an array that belong to the partition."""
        if per == "labels":
            return self.labels
        return slice(self.items.start, self.items.stop + (per == "bounds"))


class ArrayAccess(NamedTuple):
    """An argument of a kernel: the rows of an array that belong to the partition it processes."""

    name: str
    reads: bool
    writes: bool


def reads(name: str) -> ArrayAccess:
    """Return the argument for an array that a kernel reads."""
    return ArrayAccess(name, reads=True, writes=False)


def writes(name: str) -> ArrayAccess:
    """Return the argument for an array that a kernel writes as a whole."""
    return ArrayAccess(name, reads=False, writes=True)


def updates(name: str) -> ArrayAccess:
    """Return the argument for an array that a kernel reads and writes."""
    return ArrayAccess(name, reads=True, writes=True)


def n_items(partition: CardPartition) -> np.int64:
    """Return the argument for the number of items."""
    return np.int64(partition.items.stop - partition.items.start)


def n_labels(partition: CardPartition) -> np.int64:
    """Return the argument for the number of labels."""
    return np.int64(partition.labels.stop - partition.labels.start)


def first_label(partition: CardPartition) -> np.uint32:
    """Return the argument for the number of the first label, modulo 2**32 as in ``begin``."""
    return np.uint32(partition.first_label % MAX_OFFSET)


BEGIN, LABEL, KNOWN = "begin", "label", "known"
"""The names of the arrays that every card has; that of known truths only if there are any."""

LABELS = (reads(BEGIN), reads(LABEL), reads(KNOWN), first_label, n_items)
"""The first arguments of kernels that process items: see ``common.cuh``."""

Launch: TypeAlias = Callable[[Sequence[Any]], None]
"""Starts a kernel with the values of its arguments."""


# Long enough for copies to run at full speed; many partitions leave little that is not overlapped.
LABELS_PER_PARTITION = 1 << 24
# Labels stay on the card if they take no more than this share of its memory; the rest is for
# items' distributions, which every pass reads and writes.
RESIDENT_SHARE = 0.5
# The share of the memory that is kept free of items and labels: half of it is for partitions, half
# for annotators' tables.
_RESERVED_SHARE = 0.25
_QUEUES = 3  # one copies to the card, one runs a kernel, one copies back
# What a partition takes on the card at most: 40 bytes per label while it is sorted.
_BYTES_PER_LABEL, _BYTES_PER_ITEM = 48, 8


@dataclass
class PartitionedArray:
    """An array beside the items or labels of a card."""

    values: Any  # the array, on the card or on the host
    per: Rows  # what it has one row for
    on_card: bool  # where it is
    by_partition: bool = False  # whether its rows make sense within their partition only


class CardItems:
    """Some items, their labels and the arrays beside them, for the kernels of one card.

    ``labels``, ``items``: All labels, and the items of this card.
    ``device``: The card.
    ``memory``: How many bytes of the card may be used.
    ``item_bytes``: What the distributions of an item take in a partition.
    """

    def __init__(
        self, labels: Labels, items: slice, device: CUDADevice, memory: int, item_bytes: int
    ) -> None:
        self.labels, self.items, self.device = labels, items, device
        self.arrays: dict[str, PartitionedArray] = {}
        self._reserved = int(_RESERVED_SHARE * memory)
        self._memory = memory
        self._left = memory - self._reserved
        self._starts = _first_labels(labels, items)
        self.whole = self._partition(0, items.stop - items.start)
        self.partitions = self._divide(item_bytes)
        self._slots = [_Slot(device, is_staged=labels.on_disk) for _ in range(_QUEUES)]

    def allocate(
        self,
        name: str,
        per: Rows,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        *,
        on_card: bool = True,
    ) -> PartitionedArray:
        """Make an array on the card if there is room, else on the host; its values are undefined."""
        rows = self.whole.rows(per)
        shape = (rows.stop - rows.start, *shape)
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        self.remove(name)
        if on_card and n_bytes <= self.room():
            with self.device.current():
                array = PartitionedArray(self.device.xp.empty(shape, dtype), per, on_card=True)
            self._left -= n_bytes
        else:
            array = PartitionedArray(self._on_host(shape, dtype), per, on_card=False)
        self.arrays[name] = array
        return array

    def remove(self, name: str) -> None:
        """Remove an array, if there is one of that name."""
        array = self.arrays.pop(name, None)
        if array is not None and array.on_card:
            self._left += int(array.values.nbytes)

    def close(self) -> None:
        """Release all arrays and buffers."""
        self.arrays.clear()
        self._slots = []

    def room(self) -> int:
        """Return how many bytes of the card are left for arrays of items and labels."""
        return min(self._left, self.device.free_bytes() - self._reserved)

    def run(self, launch: Launch, arguments: Sequence[Any]) -> None:
        """Run a kernel over all items: at once if its arrays are on the card, else by partition."""
        if self._is_whole(arguments):
            launch([self._on_card(argument, self.whole) for argument in arguments])
            return
        for slot in self._slots:
            slot.queue.begin()
        for number, partition in enumerate(self.partitions):
            self._run_partition(self._slots[number % _QUEUES], partition, launch, arguments)
        for slot in self._slots:
            slot.write_to_disk()
            slot.queue.end()

    def load(self, name: str, partition: CardPartition) -> Any:
        """Return rows of an array on the card."""
        rows, on_card = self._rows(name, partition)
        return rows if on_card else self.device.xp.asarray(rows)

    def store(self, name: str, partition: CardPartition, values: Any) -> None:
        """Write rows of an array, given on the card."""
        rows, on_card = self._rows(name, partition)
        if on_card or self.labels.on_disk:
            rows[...] = values if on_card else self.device.to_host(values)
            return
        queue = self._slots[0].queue
        queue.begin()
        queue.download(values, rows)
        queue.wait()

    def collect(self, name: str, partition: CardPartition) -> NDArray[Any]:
        """Return rows of an array on the host."""
        rows, on_card = self._rows(name, partition)
        values: NDArray[Any] = self.device.to_host(rows) if on_card else rows
        return values

    def copy_to_host(self, name: str, partition: CardPartition, to: NDArray[Any]) -> None:
        """Copy rows of an array to an array of the host, whose type may differ."""
        rows, on_card = self._rows(name, partition)
        (self.device.copy_to_host if on_card else copy_on_all_cores)(rows, to)

    def extent(self, partition: CardPartition, per: Extent) -> slice:
        """Return where the entries of a partition are among those of all labels."""
        if per == "labels":
            return slice(partition.first_label, partition.first_label + int(n_labels(partition)))
        first = self.items.start
        items = slice(first + partition.items.start, first + partition.items.stop)
        if per == "items":
            return items
        return slice(*self.labels.item_ptr[[items.start, items.stop]].tolist())

    def labels_per_item(self, partition: CardPartition) -> NDArray[np.int64]:
        """Return the number of labels of each item."""
        return np.diff(self._starts[partition.rows("bounds")])

    def begin(self, partition: CardPartition) -> NDArray[np.uint32]:
        """Return the first label of each item, and the first after them, modulo 2**32."""
        return self._starts[partition.rows("bounds")].astype(np.uint32)

    def keeps_labels(self) -> bool:
        """Return whether the labels are few enough to stay on the card."""
        return 4 * int(n_labels(self.whole)) <= RESIDENT_SHARE * self._memory

    def is_on_card(self) -> bool:
        """Return whether all arrays are on the card and kernels process all labels at once."""
        return self._all_at_once(self.arrays.values())

    def _rows(self, name: str, partition: CardPartition) -> tuple[Any, bool]:
        """Return rows of an array, and whether they are on the card."""
        array = self.arrays[name]
        if not array.on_card:
            for slot in self._slots:
                slot.queue.wait()
        return array.values[partition.rows(array.per)], array.on_card

    def _is_whole(self, arguments: Sequence[Any]) -> bool:
        names = {argument.name for argument in arguments if isinstance(argument, ArrayAccess)}
        return self._all_at_once(array for name, array in self.arrays.items() if name in names)

    def _all_at_once(self, arrays: Iterable[PartitionedArray]) -> bool:
        return self.whole.labels.stop < MAX_OFFSET and all(
            array.on_card and not array.by_partition for array in arrays
        )

    def _run_partition(
        self, slot: _Slot, partition: CardPartition, launch: Launch, arguments: Sequence[Any]
    ) -> None:
        """Copy what is on the host, run the kernel, and copy what it wrote back."""
        slot.write_to_disk()
        values, written = [], []
        for position, argument in enumerate(arguments):
            array = self.arrays.get(argument.name) if isinstance(argument, ArrayAccess) else None
            if array is None or array.on_card:
                values.append(self._on_card(argument, partition))
                continue
            rows = array.values[partition.rows(array.per)]
            buffer = slot.buffer(position, rows, self._longest(array))
            if argument.reads:
                slot.upload(position, rows, buffer)
            if argument.writes:
                written.append((position, buffer, rows))
            values.append(buffer)
        with slot.queue:
            launch(values)
        for position, buffer, rows in written:
            slot.download(position, buffer, rows)

    def _on_card(self, argument: Any, partition: CardPartition) -> Any:
        """Return the value of an argument that is on the card or depends on the partition alone."""
        if isinstance(argument, ArrayAccess):
            array = self.arrays.get(argument.name)
            return None if array is None else array.values[partition.rows(array.per)]
        return argument(partition) if callable(argument) else argument

    def _longest(self, array: PartitionedArray) -> int:
        """Return the bytes of the longest partition of an array."""
        bounds = (one.rows(array.per) for one in self.partitions)
        rows: int = max(one.stop - one.start for one in bounds)
        return rows * int(array.values[:1].nbytes)

    def _on_host(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        if self.labels.disk is not None:
            return self.labels.disk.zeros(shape, dtype)
        with self.device.current():
            return self.device.page_locked(shape, dtype)

    def _partition(self, first: int, last: int) -> CardPartition:
        before, start, stop = self._starts[[0, first, last]].tolist()
        return CardPartition(slice(first, last), slice(start - before, stop - before), start)

    def _divide(self, item_bytes: int) -> list[CardPartition]:
        """Divide the items so that partitions fit into the buffers."""
        n, item_bytes = int(n_labels(self.whole)), item_bytes + _BYTES_PER_ITEM
        total = _BYTES_PER_LABEL * n + item_bytes * int(n_items(self.whole))
        most = max(self._reserved // 2, 1)
        n_partitions = max(-(-total // most), -(-n // LABELS_PER_PARTITION))
        targets = np.linspace(self._starts[0], self._starts[-1], int(n_partitions) + 1)
        bounds = np.searchsorted(self._starts, targets)
        bounds[0], bounds[-1] = 0, len(self._starts) - 1
        partitions = [self._partition(*pair) for pair in pairwise(np.unique(bounds).tolist())]
        largest = max(
            _BYTES_PER_LABEL * int(n_labels(one)) + item_bytes * int(n_items(one))
            for one in partitions
        )
        if largest > 2 * most:
            raise InputError(
                f"the card has {format_size(self._memory)} for the labels, and those of an item "
                f"with many need {format_size(largest / _RESERVED_SHARE)}: choose engine='memory' "
                "(`--engine memory`)"
            )
        return partitions


class _Slot:
    """A queue with buffers for a partition: on the card, and in page-locked memory if labels are on disk."""

    def __init__(self, device: CUDADevice, *, is_staged: bool) -> None:
        self.queue = device.queue()
        self._device = device
        self._is_staged = is_staged
        self._buffers: dict[int, Any] = {}
        self._staging: dict[int, NDArray[Any]] = {}
        self._downloaded: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def buffer(self, position: int, rows: NDArray[Any], n_bytes: int) -> Any:
        """Return a buffer on the card for some rows; it is made for the longest partition."""
        if position not in self._buffers or self._buffers[position].nbytes < n_bytes:
            self.queue.wait()
            with self._device.current():
                self._buffers[position] = self._device.xp.empty(n_bytes, np.uint8)
            if self._is_staged:
                self._staging[position] = self._device.page_locked((n_bytes,), np.uint8)
        return _view(self._buffers[position], rows)

    def upload(self, position: int, rows: NDArray[Any], buffer: Any) -> None:
        """Copy rows to a buffer."""
        if self._is_staged:
            self.queue.wait()  # the staging memory may still be copied
            staged = _view(self._staging[position], rows)
            staged[...] = rows
            rows = staged
        self.queue.upload(rows, buffer)

    def download(self, position: int, buffer: Any, rows: NDArray[Any]) -> None:
        """Copy a buffer to its rows; if they are on disk, until `write_to_disk`."""
        to = rows
        if self._is_staged:
            to = _view(self._staging[position], rows)
            self._downloaded.append((to, rows))
        self.queue.download(buffer, to)

    def write_to_disk(self) -> None:
        """Write what was copied from the card for rows on disk."""
        if self._downloaded:
            self.queue.wait()
        for staged, rows in self._downloaded:
            rows[...] = staged
        self._downloaded.clear()


def _view(buffer: Any, rows: NDArray[Any]) -> Any:
    """Return the beginning of a buffer in the shape of some rows."""
    return buffer[: rows.nbytes].view(rows.dtype).reshape(rows.shape)


def _first_labels(labels: Labels, items: slice) -> NDArray[np.int64]:
    """Return the first label of each item, and the first after them."""
    first_cells = labels.item_ptr[items.start : items.stop + 1]
    return concatenate(
        map_slices(lambda part: labels.cell_ptr[first_cells[part]], len(first_cells))
    )


def card_ranges(labels: Labels, n_cards: int) -> Iterator[slice]:
    """Return the items of each card, which divide the labels evenly."""
    for first, last in pairwise(np.unique(labels.partition(n_cards)).tolist()):
        yield slice(first, last)
