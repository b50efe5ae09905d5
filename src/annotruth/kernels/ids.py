"""A hash table of ids that grows. NumPy twins: `annotruth.kernels.reference.ids`.

The number of slots is a power of two, at least twice the number of ids. The low half of a slot is the
code of an id and the high half 32 bits of its hash, so that almost always one comparison decides whether
it is the id that is looked up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import SIMD8
from annotruth.kernels.simd.simd8 import load_word, prefetch

Bytes = NDArray[np.uint8]
Slots = NDArray[np.uint64]

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
# Odd numbers with half of their bits set.
_MIX, _MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_LOW, _HALF, _ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
_ZERO = np.uint64(0)
_BATCH = 256  # ids whose slots are prefetched before they are read


@compiled
def find_or_add(
    ends: NDArray[np.int64],
    text: Bytes,
    slots: Slots,
    known_ends: NDArray[np.int64],
    known_text: Bytes,
    n_known: int,
    codes: NDArray[np.int32],
) -> int:
    """Write the code of each id, add new ids to the table, and return the number of ids in it.

    Id i is ``text[ends[i]:ends[i+1]]``; the ids of the table likewise. There must be room for all that
    may be new, and eight bytes after the last text of both: eight bytes are read at a time, as loops
    over single bytes take twice as long.
    """
    slot_mask = np.uint64(len(slots) - 1)
    hashes = np.empty(_BATCH, dtype=np.uint64)
    for begin in range(0, len(codes), _BATCH):
        end = min(begin + _BATCH, len(codes))
        _prefetch_slots(ends[begin : end + 1], text, slots, known_ends, known_text, hashes)
        for i in range(begin, end):
            h, first, length = hashes[i - begin], ends[i], ends[i + 1] - ends[i]
            slot_index = h & slot_mask
            while True:
                slot = slots[slot_index]
                if slot == EMPTY:
                    end_of_text = known_ends[n_known]
                    for k in range(length):
                        known_text[end_of_text + k] = text[first + k]
                    known_ends[n_known + 1] = end_of_text + length
                    slots[slot_index] = (h << _HALF) | np.uint64(n_known)
                    codes[i] = n_known
                    n_known += 1
                    break
                code = np.int64(slot & _LOW)
                if slot >> _HALF == h and _same(
                    known_text, known_ends[code], known_ends[code + 1], text, first, length
                ):
                    codes[i] = code
                    break
                slot_index = (slot_index + _ONE) & slot_mask
    return n_known


@compiled
def _prefetch_slots(
    ends: NDArray[np.int64],
    text: Bytes,
    slots: Slots,
    known_ends: NDArray[np.int64],
    known_text: Bytes,
    hashes: NDArray[np.uint64],
) -> None:
    """Compute the hashes of some ids, and prefetch all that looking them up will read.

    A slot, the index of its id's text, and the text are in tables that no cache holds, and each is
    needed to find the next: waiting for them one by one takes three times as long.
    """
    n, slot_mask = len(ends) - 1, np.uint64(len(slots) - 1)
    for i in range(n):
        hashes[i] = _hash(text, ends[i], ends[i + 1])
        prefetch(slots, np.int64(hashes[i] & slot_mask))
    for i in range(n):
        slot = slots[hashes[i] & slot_mask]
        if slot != EMPTY:
            prefetch(known_ends, np.int64(slot & _LOW))
    for i in range(n):
        slot = slots[hashes[i] & slot_mask]
        if slot != EMPTY:
            prefetch(known_text, known_ends[np.int64(slot & _LOW)])


@compiled
def _hash(text: Bytes, begin: int, end: int) -> np.uint64:
    """Return a hash of 32 bits of the bytes of a text and its length."""
    h = np.uint64(end - begin)
    while begin + SIMD8 <= end:
        h = (h ^ load_word(text, begin)) * _MIX
        h ^= h >> _HALF
        begin += SIMD8
    if begin < end:
        h = (h ^ (load_word(text, begin) & _mask(end - begin))) * _MIX
        h ^= h >> _HALF
    return (h * _MIX_AGAIN) >> _HALF


@compiled
def _same(one: Bytes, begin: int, end: int, other: Bytes, first: int, length: int) -> bool:
    """Whether two texts are equal."""
    if end - begin != length:
        return False
    while begin + SIMD8 <= end:
        if load_word(one, begin) != load_word(other, first):
            return False
        begin, first = begin + SIMD8, first + SIMD8
    differ = load_word(one, begin) ^ load_word(other, first)
    return bool(differ & _mask(end - begin) == _ZERO)


@compiled
def _mask(n_bytes: int) -> np.uint64:
    """Return a mask of the first bytes of a word, fewer than eight."""
    return (_ONE << np.uint64(SIMD8 * n_bytes)) - _ONE


@compiled
def rehash(slots: Slots, more: Slots) -> None:
    """Copy the content of slots to a larger number of empty slots."""
    slot_mask = np.uint64(len(more) - 1)
    for slot in slots:
        if slot != EMPTY:
            slot_index = (slot >> _HALF) & slot_mask
            while more[slot_index] != EMPTY:
                slot_index = (slot_index + _ONE) & slot_mask
            more[slot_index] = slot
