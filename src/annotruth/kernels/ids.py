"""A table of ids that grows; plain twins in `annotruth.kernels.reference`.

Its slots, a power of two of them and twice the ids or more, hold a code below and 32 bits of the
id's hash above it, so that one look tells nearly always whether an id is the one looked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.compiled import compiled
from annotruth.kernels.lanes import fetch

Bytes = NDArray[np.uint8]
Slots = NDArray[np.uint64]

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a's
_MIX = np.uint64(0x9E3779B97F4A7C15)
_LOW, _HALF, _NEXT = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
_AHEAD = 16  # slots are fetched for so many ids before they are looked at


@compiled
def enter(
    ends: NDArray[np.int64],
    text: Bytes,
    slots: Slots,
    known_ends: NDArray[np.int64],
    known_text: Bytes,
    n_known: int,
    codes: NDArray[np.int32],
) -> int:
    """Find the code of each id, entering those that are new, and return how many are known.

    Id i is ``text[ends[i]:ends[i+1]]``, and so are those known. There must be room for all that
    may be new.
    """
    n, last = len(codes), np.uint64(len(slots) - 1)
    hashes = np.empty(n, dtype=np.uint64)
    for i in range(n):
        h = _BASIS
        for k in range(ends[i], ends[i + 1]):
            h = (h ^ np.uint64(text[k])) * _PRIME
        hashes[i] = (h * _MIX) >> _HALF
    for i in range(n):
        if i + _AHEAD < n:
            soon = int(hashes[i + _AHEAD] & last)
            fetch(slots, soon, soon + 1)
        h, first, length = hashes[i], ends[i], ends[i + 1] - ends[i]
        at = h & last
        while True:
            slot = slots[at]
            if slot == EMPTY:
                begin = known_ends[n_known]
                known_text[begin : begin + length] = text[first : first + length]
                known_ends[n_known + 1] = begin + length
                slots[at] = (h << _HALF) | np.uint64(n_known)
                codes[i] = n_known
                n_known += 1
                break
            code = np.int64(slot & _LOW)
            if slot >> _HALF == h and _same(
                known_text, known_ends[code], known_ends[code + 1], text, first, length
            ):
                codes[i] = code
                break
            at = (at + _NEXT) & last
    return n_known


@compiled
def _same(one: Bytes, begin: int, end: int, other: Bytes, first: int, length: int) -> bool:
    if end - begin != length:
        return False
    for k in range(length):  # noqa: SIM110 - compiled
        if one[begin + k] != other[first + k]:
            return False
    return True


@compiled
def settle(slots: Slots, more: Slots) -> None:
    """Move what the slots hold to more of them, all empty."""
    last = np.uint64(len(more) - 1)
    for slot in slots:
        if slot != EMPTY:
            at = (slot >> _HALF) & last
            while more[at] != EMPTY:
                at = (at + _NEXT) & last
            more[at] = slot
