"""The arrays that everything here passes around, by what they hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_LINE_BYTES = 64

Floats: TypeAlias = NDArray[np.float64]
"""Probabilities, scores, sums."""

Singles: TypeAlias = NDArray[np.float32]
"""The same where they are many and six digits are enough."""

Codes: TypeAlias = NDArray[np.int64]
"""Places in a list: of items, annotators, categories, cells."""


def inner(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Add up products, on one thread.

    ``a @ b`` shares long ones out among the cores: it waits where one of them is busy, a hundred
    times as long as the sum takes, and rounds differently on every number of them.
    """
    return float((a * b).sum())


def slices(n: int, at_once: int = 1 << 20) -> Iterator[slice]:
    """Cut ``n`` places into slices, so that work on a slice needs no array of all; at least one."""
    for start in range(0, max(n, 1), at_once):
        yield slice(start, min(start + at_once, n))


def on_lines(shape: tuple[int, ...], kind: type[np.floating[Any]]) -> NDArray[Any]:
    """Make an empty array that begins where a line of the cache does, as few others do.

    A row of as many bytes as two lines then lies on two, not on three.
    """
    size = math.prod(shape) * np.dtype(kind).itemsize
    room = np.empty(size + _LINE_BYTES, dtype=np.uint8)
    begin = -room.ctypes.data % _LINE_BYTES
    array: NDArray[Any] = room[begin : begin + size].view(kind).reshape(shape)
    return array
