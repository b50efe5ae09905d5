"""A table of ids that grows; plain twins in `annotruth.kernels.reference`.

Its slots, a power of two of them and twice the ids or more, hold a code below and 32 bits of the
id's hash above it, so that one look tells nearly always whether an id is the one looked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.compiled import compiled
from annotruth.kernels.lanes import fetch_at

Bytes = NDArray[np.uint8]
Slots = NDArray[np.uint64]

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a's
_MIX = np.uint64(0x9E3779B97F4A7C15)
_LOW, _HALF, _NEXT = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
_AT_ONCE = 256  # ids whose places are fetched before they are looked at


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
    last = np.uint64(len(slots) - 1)
    hashes = np.empty(_AT_ONCE, dtype=np.uint64)
    for begin in range(0, len(codes), _AT_ONCE):
        end = min(begin + _AT_ONCE, len(codes))
        _look_ahead(ends[begin : end + 1], text, slots, known_ends, known_text, hashes)
        for i in range(begin, end):
            h, first, length = hashes[i - begin], ends[i], ends[i + 1] - ends[i]
            at = h & last
            while True:
                slot = slots[at]
                if slot == EMPTY:
                    room = known_ends[n_known]
                    for k in range(length):
                        known_text[room + k] = text[first + k]
                    known_ends[n_known + 1] = room + length
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
def _look_ahead(
    ends: NDArray[np.int64],
    text: Bytes,
    slots: Slots,
    known_ends: NDArray[np.int64],
    known_text: Bytes,
    hashes: NDArray[np.uint64],
) -> None:
    """Compute the hashes of some ids, and have all fetched that finding them will look at.

    A slot, the place of the id that it names, and that id's text lie anywhere in tables that no
    cache holds, and one tells where the next is: waiting for each took three times as long.
    """
    n, last = len(ends) - 1, np.uint64(len(slots) - 1)
    for i in range(n):
        h = _BASIS
        for k in range(ends[i], ends[i + 1]):
            h = (h ^ np.uint64(text[k])) * _PRIME
        hashes[i] = (h * _MIX) >> _HALF
        fetch_at(slots, np.int64(hashes[i] & last))
    for i in range(n):
        slot = slots[hashes[i] & last]
        if slot != EMPTY:
            fetch_at(known_ends, np.int64(slot & _LOW))
    for i in range(n):
        slot = slots[hashes[i] & last]
        if slot != EMPTY:
            fetch_at(known_text, known_ends[np.int64(slot & _LOW)])


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
