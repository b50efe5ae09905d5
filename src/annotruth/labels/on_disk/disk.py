"""Arrays that live on disk and look like arrays in memory.

They are maps of temporary files without a name, so nothing is left behind, however a program
ends. The pages of a map that have been touched stay in memory until somebody lets go of them:
`Disk` does, as soon as the process has taken more than it may.
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annotruth.errors import InputError, OutputError

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS |= {f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power}
_LOOK_EVERY = 0.02  # seconds; in that time a core touches some tens of megabytes
_WORTH_IT = 8  # letting go is worth it where maps hold this part of the memory


def size_of(text: str | int) -> int:
    """Read a size such as 500MB, 1GB or 1.5GiB, in bytes."""
    told = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B)?\s*", str(text).upper())
    size = int(float(told[1]) * _UNITS.get(told[2] or "", 0)) if told else 0
    if size < 1:
        raise InputError(f"memory {str(text)!r} is no size: write 500MB, 1GB or 1.5GiB")
    return size


def in_words(n_bytes: float) -> str:
    """Write a size for a message."""
    for unit in ("GB", "MB", "kB"):
        scale = {"GB": 1e9, "MB": 1e6, "kB": 1e3}[unit]
        if n_bytes >= scale:
            return f"{n_bytes / scale:,.1f} {unit}"
    return f"{n_bytes:,.0f} bytes"


class Disk:
    """A maker of arrays on disk, in the folder for temporary files (TMPDIR).

    Together with all else that the process takes from now on, their pages hold about ``memory``
    bytes of it, and whatever is beyond is read again when it is needed. (Linux alone tells how
    much that is; elsewhere the system decides what stays.)
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.folder = Path(tempfile.gettempdir())
        self._maps: weakref.WeakSet[_Map] = weakref.WeakSet()
        self._before = _resident()
        self._done = threading.Event()
        if self._before is not None:
            watch = threading.Thread(target=_watch, args=(weakref.ref(self), self._done))
            watch.daemon = True
            watch.start()
            weakref.finalize(self, self._done.set)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Make an array of zeros; it goes when nobody holds it any more."""
        shape = (shape,) if isinstance(shape, int) else shape
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size == 0:
            return np.zeros(shape, dtype)
        with self.told(), tempfile.TemporaryFile(dir=self.folder) as file:
            self._take(file.fileno(), size)
            return self._array(file.fileno(), dtype).reshape(shape)

    def column(self, dtype: DTypeLike) -> Column:
        """Make a column that grows at its end."""
        return Column(self, np.dtype(dtype))

    def opened(self, path: Path) -> NDArray[np.uint8]:
        """Map the bytes of a file, which must not be empty; they can only be read."""
        with path.open("rb") as file:
            return self._array(file.fileno(), np.uint8, access=mmap.ACCESS_READ)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and is more than may be."""
        if n_bytes > self.memory:
            raise InputError(
                f"memory of {in_words(self.memory)} is too little: {what} alone take "
                f"{in_words(n_bytes)}; give at least {in_words(2 * n_bytes)}"
            )

    def relieve(self) -> None:
        """Let go of the pages in memory if they are more than they may be."""
        now = _resident()
        if now is None or self._before is None:
            return
        (everything, mapped), (then, mapped_then) = now, self._before
        if everything - then > self.memory and mapped - mapped_then > self.memory / _WORTH_IT:
            self.let_go()

    def let_go(self) -> None:
        """Let go of all pages in memory; what was written to them is kept."""
        for one in list(self._maps):
            with suppress(ValueError):  # closed meanwhile
                one.madvise(mmap.MADV_DONTNEED)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say it in one line when the disk is full."""
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OutputError(
                f"the disk of {self.folder} is full: free some space, or set TMPDIR to a folder "
                "on a larger disk"
            ) from error

    def _take(self, file: int, size: int) -> None:
        # A page of a map that finds no room when it is written ends the process: take all now.
        free = shutil.disk_usage(self.folder).free
        if size > free:
            raise OutputError(
                f"{in_words(size)} are needed in {self.folder}, where {in_words(free)} are free: "
                "free some space, or set TMPDIR to a folder on a larger disk"
            )
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:
            os.truncate(file, size)

    def _array(self, file: int, dtype: DTypeLike, access: int = mmap.ACCESS_WRITE) -> NDArray[Any]:
        # The map holds the file, and the array the map.
        one = _Map(file, 0, access=access)
        self._maps.add(one)
        return np.frombuffer(one, dtype)


class Column:
    """A column on disk that grows at its end."""

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
        with self._disk.told():
            self._file.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self._length += len(values)

    def mapped(self) -> NDArray[Any]:
        """Return all of it as an array; nothing can be added any more."""
        with self._disk.told(), self._file as file:
            file.flush()
            if not self._length:
                return np.empty(0, self._dtype)
            return self._disk._array(file.fileno(), self._dtype)


class _Map(mmap.mmap):
    """A map that can be held weakly."""


def _watch(disk: weakref.ref[Disk], done: threading.Event) -> None:
    while not done.wait(_LOOK_EVERY):
        watched = disk()
        if watched is None:
            return
        watched.relieve()
        del watched


def _resident() -> tuple[int, int] | None:
    """Return how many bytes of memory the process holds, and how many of them are of files."""
    try:
        told = Path("/proc/self/statm").read_text()
    except OSError:
        return None
    pages = [int(word) for word in told.split()]
    return pages[1] * mmap.PAGESIZE, pages[2] * mmap.PAGESIZE
