"""A table of ids that grows; plain twins in `annotruth.kernels.reference`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.compiled import compiled

Bytes = NDArray[np.uint8]

_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a's
_MIX = np.uint64(0x9E3779B97F4A7C15)
_FOLD, _EIGHT = np.uint64(32), np.uint64(8)


@compiled
def enter(
    ends: NDArray[np.int64],
    text: Bytes,
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint32],
    known_ends: NDArray[np.int64],
    known_text: Bytes,
    n_known: int,
    codes: NDArray[np.int32],
) -> int:
    """Find the code of each id, entering those that are new, and return how many are known.

    Id i is ``text[ends[i]:ends[i+1]]``, and so are those known. ``slots`` has a power of two of
    places, more than there will be ids, each a code or -1; ``hashes`` has one for each id known.
    There must be room for all that may be new.
    """
    last = np.uint64(len(slots) - 1)
    for i in range(len(ends) - 1):
        first, length = ends[i], ends[i + 1] - ends[i]
        h = _BASIS
        for k in range(first, first + length):
            h = (h ^ np.uint64(text[k])) * _PRIME
        h = h * _MIX
        h = (h >> _FOLD) ^ (h & np.uint64(0xFFFFFFFF))
        at = h & last
        while True:
            code = slots[at]
            if code < 0:
                begin = known_ends[n_known]
                known_text[begin : begin + length] = text[first : first + length]
                known_ends[n_known + 1] = begin + length
                hashes[n_known] = np.uint32(h)
                slots[at] = code = n_known
                n_known += 1
                break
            if hashes[code] == np.uint32(h) and _same(
                known_text, known_ends[code], known_ends[code + 1], text, first, length
            ):
                break
            at = (at + np.uint64(1)) & last
        codes[i] = code
    return n_known


@compiled
def _same(one: Bytes, begin: int, end: int, other: Bytes, first: int, length: int) -> bool:
    if end - begin != length:
        return False
    for k in range(length):
        if one[begin + k] != other[first + k]:
            return False
    return True


@compiled
def settle(slots: NDArray[np.int32], hashes: NDArray[np.uint32], n_known: int) -> None:
    """Give each known id its place among empty slots."""
    last = np.uint64(len(slots) - 1)
    for code in range(n_known):
        at = np.uint64(hashes[code]) & last
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & last
        slots[at] = code
