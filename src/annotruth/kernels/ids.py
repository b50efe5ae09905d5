"""A table of ids that grows; plain twins in `annotruth.kernels.reference`.

Its slots, a power of two of them and twice the ids or more, hold a code below and 32 bits of the
id's hash above it, so that one look tells nearly always whether an id is the one looked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.simd8 import SIMD8, load_word, prefetch

Bytes = NDArray[np.uint8]
Slots = NDArray[np.uint64]

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_MIX, _MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)  # odd, half ones
_LOW, _HALF, _NEXT = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
_NONE = np.uint64(0)
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
    may be new, and eight bytes after the last text of both: texts are read by eight, as loops
    over their bytes took as long again.
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
        hashes[i] = _hash(text, ends[i], ends[i + 1])
        prefetch(slots, np.int64(hashes[i] & last))
    for i in range(n):
        slot = slots[hashes[i] & last]
        if slot != EMPTY:
            prefetch(known_ends, np.int64(slot & _LOW))
    for i in range(n):
        slot = slots[hashes[i] & last]
        if slot != EMPTY:
            prefetch(known_text, known_ends[np.int64(slot & _LOW)])


@compiled
def _hash(text: Bytes, begin: int, end: int) -> np.uint64:
    """Mix the bytes of a text, and its length, into 32 bits."""
    h = np.uint64(end - begin)
    while begin + SIMD8 <= end:
        h = (h ^ load_word(text, begin)) * _MIX
        h ^= h >> _HALF
        begin += SIMD8
    if begin < end:
        h = (h ^ (load_word(text, begin) & _first(end - begin))) * _MIX
        h ^= h >> _HALF
    return (h * _MIX_AGAIN) >> _HALF


@compiled
def _same(one: Bytes, begin: int, end: int, other: Bytes, first: int, length: int) -> bool:
    if end - begin != length:
        return False
    while begin + SIMD8 <= end:
        if load_word(one, begin) != load_word(other, first):
            return False
        begin, first = begin + SIMD8, first + SIMD8
    differ = load_word(one, begin) ^ load_word(other, first)
    return bool(differ & _first(end - begin) == _NONE)


@compiled
def _first(n_bytes: int) -> np.uint64:
    """Mark the first bytes of a word, less than eight of them."""
    return (_NEXT << np.uint64(SIMD8 * n_bytes)) - _NEXT


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
