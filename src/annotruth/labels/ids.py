"""Ids that come in batches, coded in order of first appearance as those of one column are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.labels.buffers import as_numpy
from annotruth.labels.scale import is_text

_AT_FIRST = 64
_AFTER = 8  # bytes that may be read, but are not looked at, after the last text


class Ids:
    """A growing table of distinct values, all of one type."""

    def __init__(self) -> None:
        self._type: pa.DataType | None = None
        self._n = 0
        self._ends = np.zeros(_AT_FIRST + 1, dtype=np.int64)
        self._text = np.zeros(_AT_FIRST, dtype=np.uint8)
        self._slots = _empty(2 * _AT_FIRST)

    def __len__(self) -> int:
        return self._n

    @property
    def n_bytes(self) -> int:
        """How much memory the table takes."""
        return self._ends.nbytes + self._text.nbytes + self._slots.nbytes

    def enter(self, values: pa.Array) -> NDArray[np.int32]:
        """Return the code of each value, none of them null; new ones get the next codes."""
        from annotruth.kernels import ids as kernels

        self._type = self._type or values.type
        ends, text = _bytes_of(values)
        self._make_room(len(values), len(text))
        codes = np.empty(len(values), dtype=np.int32)
        self._n = kernels.enter(ends, text, self._slots, self._ends, self._text, self._n, codes)
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

    def _make_room(self, n_more: int, size: int) -> None:
        n, size = self._n + n_more, int(self._ends[self._n]) + size
        self._text = _longer(self._text, size)
        self._ends = _longer(self._ends, n + 1)
        if 2 * n > len(self._slots):
            from annotruth.kernels import ids as kernels

            more = _empty(1 << ((4 * n - 1).bit_length() - 1))
            kernels.settle(self._slots, more)
            self._slots = more


def _empty(n_slots: int) -> NDArray[np.uint64]:
    return np.full(n_slots, np.iinfo(np.uint64).max, dtype=np.uint64)


def _longer(array: NDArray[Any], n: int) -> NDArray[Any]:
    """Make room for ``n`` at least, and for half as many again so that it is seldom made."""
    if n <= len(array):
        return array
    longer = np.zeros(n + n // 2, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _bytes_of(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the bytes of all values in a row, and where each begins, with the end of the last."""
    n, start = len(values), values.offset
    if is_text(values.type):
        _, places, text = values.buffers()
        width = np.int64 if pa.types.is_large_string(values.type) else np.int32
        ends = np.frombuffer(places, dtype=width)[start : start + n + 1].astype(np.int64)
        data = np.frombuffer(text or b"", dtype=np.uint8)[ends[0] : ends[-1]]
        return ends - ends[0], _with_room(data)
    if pa.types.is_boolean(values.type):
        return np.arange(n + 1), _with_room(as_numpy(values).view(np.uint8))
    size = values.type.bit_width // 8
    data = np.frombuffer(values.buffers()[1] or b"", dtype=np.uint8)
    return np.arange(n + 1) * size, _with_room(data[start * size : (start + n) * size])


def _with_room(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.concatenate([data, np.zeros(_AFTER, dtype=np.uint8)])
