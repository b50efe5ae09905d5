"""A hash table of ids that grows, giving codes in order of first appearance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.labels.buffers import as_numpy
from annotruth.labels.scale import is_text

_INITIAL_SIZE = 64
_PADDING = 8  # bytes after the last text, which the kernel reads and ignores


class IdTable:
    """A growing table of distinct values, all of one type."""

    def __init__(self) -> None:
        self._type: pa.DataType | None = None
        self._n = 0
        self._ends = np.zeros(_INITIAL_SIZE + 1, dtype=np.int64)
        self._text = np.zeros(_INITIAL_SIZE, dtype=np.uint8)
        self._slots = _empty_slots(2 * _INITIAL_SIZE)

    def __len__(self) -> int:
        return self._n

    @property
    def n_bytes(self) -> int:
        """The memory that the table takes."""
        return self._ends.nbytes + self._text.nbytes + self._slots.nbytes

    def add(self, values: pa.Array) -> NDArray[np.int32]:
        """Return the code of each value, none of them null; new values get the next codes."""
        from annotruth.kernels import ids as kernels

        self._type = self._type or values.type
        ends, text = _bytes_of(values)
        self._reserve(len(values), len(text))
        codes = np.empty(len(values), dtype=np.int32)
        self._n = kernels.find_or_add(
            ends, text, self._slots, self._ends, self._text, self._n, codes
        )
        return codes

    def values(self) -> pa.Array:
        """Return the distinct values in the order of their codes."""
        kind, n = self._type or pa.null(), self._n
        ends = self._ends[: n + 1]
        text = pa.py_buffer(self._text[: ends[-1]].copy())
        if is_text(kind):
            if ends[-1] > np.iinfo(np.int32).max:
                return pa.Array.from_buffers(
                    pa.large_string(), n, [None, pa.py_buffer(ends.copy()), text]
                )
            short = pa.py_buffer(ends.astype(np.int32))
            return pa.Array.from_buffers(pa.string(), n, [None, short, text])
        if pa.types.is_boolean(kind):
            return pa.Array.from_buffers(pa.uint8(), n, [None, text]).cast(kind)
        return pa.Array.from_buffers(kind, n, [None, text])

    def _reserve(self, n_more: int, size: int) -> None:
        n, size = self._n + n_more, int(self._ends[self._n]) + size
        self._text = _extended(self._text, size)
        self._ends = _extended(self._ends, n + 1)
        if 2 * n > len(self._slots):
            from annotruth.kernels import ids as kernels

            more = _empty_slots(1 << ((4 * n - 1).bit_length() - 1))
            kernels.rehash(self._slots, more)
            self._slots = more


def _empty_slots(n_slots: int) -> NDArray[np.uint64]:
    return np.full(n_slots, np.iinfo(np.uint64).max, dtype=np.uint64)


def _extended(array: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the array with room for ``n`` or more; half as many again, so that it is rare."""
    if n <= len(array):
        return array
    extended = np.zeros(n + n // 2, dtype=array.dtype)
    extended[: len(array)] = array
    return extended


def _bytes_of(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where the bytes of each value begin, with the end of the last, and the bytes."""
    n, start = len(values), values.offset
    if is_text(values.type):
        _, places, text = values.buffers()
        width = np.int64 if pa.types.is_large_string(values.type) else np.int32
        ends = np.frombuffer(places, dtype=width)[start : start + n + 1].astype(np.int64)
        data = np.frombuffer(text or b"", dtype=np.uint8)[ends[0] : ends[-1]]
        return ends - ends[0], _padded(data)
    if pa.types.is_boolean(values.type):
        return np.arange(n + 1), _padded(as_numpy(values).view(np.uint8))
    size = values.type.bit_width // 8
    data = np.frombuffer(values.buffers()[1] or b"", dtype=np.uint8)
    return np.arange(n + 1) * size, _padded(data[start * size : (start + n) * size])


def _padded(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.concatenate([data, np.zeros(_PADDING, dtype=np.uint8)])
