"""Arrays on disk that look like arrays in memory, and labels on disk, sorted one range at a time.

They are memory maps of temporary files without a name, so nothing is left behind, however a
program ends. The pages of a map that were read or written stay in memory until they are
released: `Disk` does so as soon as the process exceeds its memory.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annotruth.errors import InputError, OutputError, option
from annotruth.kernels.arrays import slices
from annotruth.observations.layout import (
    ArrangedRows,
    DuplicatePolicy,
    Layout,
    RowCodes,
    TableSize,
    arrange_with_policy,
)

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS |= {f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power}
_MAX_ROWS = 1 << 19
_BYTES_PER_ROW = 1000  # what reading and encoding a row takes at most, with room for the rest
_CHECK_INTERVAL = 0.02  # seconds, in which a core reads some tens of megabytes
_MIN_MAPPED_SHARE = 8  # release pages only if maps hold at least memory / 8
_BYTES_PER_LABEL = 200  # what sorting a label takes at most, with room for everything else
_COUNTED_AT_ONCE = 1 << 22
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def parse_size(text: str | int, name: str = "memory") -> int:
    """Return a size such as 500MB, 1GB or 1.5GiB in bytes."""
    matched = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B)?\s*", str(text).upper())
    size = int(float(matched[1]) * _UNITS.get(matched[2] or "", 0)) if matched else 0
    if size < 1:
        raise InputError(f"{option(name)} {str(text)!r} is not a size: write 500MB, 1GB or 1.5GiB")
    return size


def format_size(n_bytes: float) -> str:
    """Return a size for a message, such as 1.5 GB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= scale:
            return f"{n_bytes / scale:,.1f} {unit}"
    return f"{n_bytes:,.0f} bytes"


class Disk:
    """Makes arrays on disk, in the folder for temporary files (TMPDIR).

    Their pages, and everything else that the process allocates from now on, take about
    ``memory`` bytes; pages beyond that are released, and read again when they are needed. (Only
    Linux reports how much a process holds; elsewhere the system decides which pages stay.)
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.folder = Path(tempfile.gettempdir())
        self._maps: weakref.WeakSet[_Map] = weakref.WeakSet()
        self._initial = _resident_bytes()
        self._stop = threading.Event()
        if self._initial is not None:
            monitor = threading.Thread(target=_monitor, args=(weakref.ref(self), self._stop))
            monitor.daemon = True
            monitor.start()
            weakref.finalize(self, self._stop.set)

    @contextmanager
    def stopped_on_failure(self) -> Iterator[None]:
        """Stop monitoring the memory when the block fails, as the labels will not be used."""
        try:
            yield
        except BaseException:
            self._stop.set()
            raise

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return an array of zeros; its file is removed with the last reference to it."""
        shape = (shape,) if isinstance(shape, int) else shape
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size == 0:
            return np.zeros(shape, dtype)
        with self.full_disk_reported(), tempfile.TemporaryFile(dir=self.folder) as file:
            self._reserve(file.fileno(), size)
            return self._map(file.fileno(), dtype).reshape(shape)

    def column(self, dtype: DTypeLike) -> DiskColumn:
        """Return an empty column to append to."""
        return DiskColumn(self, np.dtype(dtype))

    def map_file(self, path: Path) -> NDArray[np.uint8]:
        """Return the bytes of a file, which must not be empty, as a read-only array."""
        with path.open("rb") as file:
            return self._map(file.fileno(), np.uint8, access=mmap.ACCESS_READ)

    @property
    def rows_at_once(self) -> int:
        """How many rows of a table are read and encoded at a time."""
        return max(1, min(_MAX_ROWS, self.memory // _BYTES_PER_ROW))

    @property
    def pending_bytes(self) -> int:
        """How many bytes of ids of several batches to collect before they are merged."""
        return self.memory // 8

    def in_row_order(self, values: NDArray[Any], row: NDArray[Any]) -> NDArray[Any]:
        """Return values in the order of their rows, on disk; ``row`` is the row of each.

        As many rows as fit into memory are filled at a time, each time by reading all values:
        sequential reads are faster than writes all over a disk.
        """
        in_order = self.zeros(values.shape, values.dtype)
        at_once = max(1, self.memory // (4 * values.itemsize))
        for rows in slices(len(values), at_once):
            part = np.empty(rows.stop - rows.start, values.dtype)
            for at in slices(len(values)):
                place = row[at] - rows.start
                inside = (place >= 0) & (place < len(part))
                part[place[inside]] = values[at][inside]
            in_order[rows] = part
        return in_order

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and exceeds the memory that may be used."""
        if n_bytes > self.memory:
            raise InputError(
                f"memory of {format_size(self.memory)} is too little: {what} alone take "
                f"{format_size(n_bytes)}; pass at least {option('memory', format_size(2 * n_bytes))}"
            )

    def release_if_over_limit(self) -> None:
        """Release the pages in memory if the process exceeds its memory because of them."""
        now = _resident_bytes()
        if now is None or self._initial is None:
            return
        total, mapped = (after - before for after, before in zip(now, self._initial, strict=True))
        if total > self.memory and mapped > self.memory / _MIN_MAPPED_SHARE:
            self.release_pages()

    def release_pages(self) -> None:
        """Release all pages in memory; what was written to them is kept."""
        for one in list(self._maps):
            with suppress(ValueError):  # closed meanwhile
                one.madvise(mmap.MADV_DONTNEED)

    @contextmanager
    def full_disk_reported(self) -> Iterator[None]:
        """Turn the system's error for a full disk into an `OutputError`."""
        try:
            yield
        except OSError as error:
            if error.errno not in _DISK_FULL:
                raise
            raise OutputError(
                f"the disk of {self.folder} is full: free some space, or set TMPDIR to a folder "
                "on a larger disk"
            ) from error

    def _reserve(self, file: int, size: int) -> None:
        # Writing to a page of a map for which there is no space ends the process: reserve all now.
        free = shutil.disk_usage(self.folder).free
        if size > free:
            raise OutputError(
                f"{format_size(size)} are needed in {self.folder}, where {format_size(free)} are "
                "free: free some space, or set TMPDIR to a folder on a larger disk"
            )
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:
            os.truncate(file, size)

    def _map(self, file: int, dtype: DTypeLike, access: int = mmap.ACCESS_WRITE) -> NDArray[Any]:
        # The map keeps the file, and the array keeps the map.
        one = _Map(file, 0, access=access)
        self._maps.add(one)
        return np.frombuffer(one, dtype)


class DiskColumn:
    """A column on disk that is appended to, and then becomes an array."""

    def __init__(self, disk: Disk, dtype: np.dtype[Any]) -> None:
        self._disk = disk
        self._dtype = dtype
        self._file = tempfile.TemporaryFile(dir=disk.folder)  # noqa: SIM115 - until it is mapped
        weakref.finalize(self, self._file.close)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        with self._disk.full_disk_reported():
            self._file.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self._length += len(values)

    def to_array(self) -> NDArray[Any]:
        """Return all values as an array; nothing can be appended any more."""
        with self._disk.full_disk_reported(), self._file as file:
            file.flush()
            if not self._length:
                return np.empty(0, self._dtype)
            return self._disk._map(file.fileno(), self._dtype)


class _Map(mmap.mmap):
    """A memory map that can be referenced weakly."""


def _monitor(reference: weakref.ref[Disk], stop: threading.Event) -> None:
    while not stop.wait(_CHECK_INTERVAL):
        disk = reference()
        if disk is None:
            return
        disk.release_if_over_limit()
        del disk


def _resident_bytes() -> tuple[int, int] | None:
    """Return how many bytes of memory the process holds, and how many of them map files."""
    try:
        text = Path("/proc/self/statm").read_text()
    except OSError:
        return None
    pages = [int(number) for number in text.split()]
    return pages[1] * mmap.PAGESIZE, pages[2] * mmap.PAGESIZE


def sort_on_disk(
    disk: Disk, rows: RowCodes, size: TableSize, duplicates: DuplicatePolicy
) -> ArrangedRows:
    """Sort labels as `arrange_with_policy` does, in ranges of items that fit in memory."""
    row_kind = row_type(len(rows.item))
    kinds: list[DTypeLike] = [np.int64, np.int32, np.int64, np.int32, row_kind]
    columns = {name: disk.column(kind) for name, kind in zip(Layout._fields, kinds, strict=True)}
    left_out, changed = ([np.empty(0, dtype=np.int64)] for _ in range(2))
    n_cells = n_labels = 0
    starts = count_before(rows.item, size.n_items)
    for part in in_ranges(disk, rows, starts, _BYTES_PER_LABEL):
        codes, row = RowCodes(*part.columns), part.row
        codes.item[...] -= part.first
        of_part = size._replace(n_items=part.last - part.first)
        layout, left_out_here, changed_here, _ = arrange_with_policy(codes, of_part, duplicates)
        changed.append(row[changed_here])
        left_out.append(row[left_out_here])
        row = np.delete(row, left_out_here)
        columns["item_ptr"].append(layout.item_ptr[:-1] + n_cells)
        columns["cell_category"].append(layout.cell_category)
        columns["cell_ptr"].append(layout.cell_ptr[:-1] + n_labels)
        columns["annotator"].append(layout.annotator)
        columns["row"].append(row[layout.row])
        n_cells += len(layout.cell_category)
        n_labels += len(layout.row)
    columns["item_ptr"].append(np.array([n_cells]))
    columns["cell_ptr"].append(np.array([n_labels]))
    layout = Layout(**{name: column.to_array() for name, column in columns.items()})
    all_left_out, all_changed = (np.sort(np.concatenate(parts)) for parts in (left_out, changed))
    if len(all_left_out):
        rows = _renumber(disk, rows, layout.row, all_left_out)
    return ArrangedRows(layout, all_left_out, all_changed, rows)


class RowsOfRange(NamedTuple):
    """The rows of the keys from ``first`` to before ``last``, in order: their columns and positions."""

    first: int
    last: int
    columns: list[NDArray[Any]]
    row: NDArray[np.signedinteger[Any]]


def row_type(n_rows: int) -> np.dtype[np.signedinteger[Any]]:
    """Return the type for positions of rows: of 32 bits where they suffice."""
    return np.dtype(np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64)


def count_before(key: NDArray[np.integer[Any]], n_keys: int) -> NDArray[np.int64]:
    """Return how many rows have a smaller key than each, and the number of all rows."""
    starts = np.zeros(n_keys + 1, dtype=np.int64)
    for at in slices(len(key), _COUNTED_AT_ONCE):
        starts[1:] += np.bincount(key[at], minlength=n_keys)
    return np.cumsum(starts, out=starts)


def in_ranges(
    disk: Disk, columns: Sequence[NDArray[Any]], starts: NDArray[np.int64], bytes_per_row: int
) -> Iterator[RowsOfRange]:
    """Distribute rows by ranges of their keys, the first column; each can be sorted in memory."""
    n_keys = len(starts) - 1
    cuts = np.searchsorted(starts, np.arange(0, starts[-1], max(1, disk.memory // bytes_per_row)))
    bounds = np.unique(np.append(cuts, n_keys))
    distributed = _distribute(disk, columns, bounds, starts[bounds])
    for first, last in pairwise(bounds.tolist()):
        *values, row = (np.array(each[starts[first] : starts[last]]) for each in distributed)
        yield RowsOfRange(first, last, values, row)


def _distribute(
    disk: Disk,
    columns: Sequence[NDArray[Any]],
    bounds: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> list[NDArray[Any]]:
    """Return the columns and the positions of rows, grouped by range; rows stay in order."""
    n = len(columns[0])
    kinds = (*(values.dtype for values in columns), row_type(n))
    distributed = [disk.zeros(n, kind) for kind in kinds]
    filled = starts[:-1].copy()
    for at in slices(n):
        some = [values[at] for values in columns]
        range_of = np.searchsorted(bounds[1:-1], some[0], side="right")
        # 16-bit integers are sorted by radix, which is much faster.
        range_of = range_of.astype(np.uint16 if len(filled) < 1 << 16 else np.int64)
        order = np.argsort(range_of, kind="stable")
        counts = np.bincount(range_of, minlength=len(filled))
        ends = np.cumsum(counts)
        ordered = [values[order] for values in (*some, np.arange(at.start, at.stop))]
        for number in np.flatnonzero(counts):
            to = slice(filled[number], filled[number] + counts[number])
            taken = slice(ends[number] - counts[number], ends[number])
            for values, out in zip(ordered, distributed, strict=True):
                out[to] = values[taken]
        filled += counts
    return distributed


def _renumber(
    disk: Disk,
    rows: RowCodes,
    row: NDArray[np.signedinteger[Any]],
    left_out: NDArray[np.int64],
) -> RowCodes:
    """Renumber ``row`` without the rows left out, in place; return the codes of the others."""
    for at in slices(len(row)):
        row[at] -= np.searchsorted(left_out, row[at]).astype(row.dtype)
    columns = [disk.column(codes.dtype) for codes in rows]
    for at in slices(len(rows.item)):
        first, last = np.searchsorted(left_out, [at.start, at.stop])
        for column, codes in zip(columns, rows, strict=True):
            column.append(np.delete(codes[at], left_out[first:last] - at.start))
    return RowCodes(*(column.to_array() for column in columns))
