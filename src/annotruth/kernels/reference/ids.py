"""NumPy twins of `annotruth.kernels.ids`: with a dictionary, and slot by slot."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

EMPTY = 2**64 - 1


def find_or_add(
    ends: NDArray[np.int64],
    text: NDArray[np.uint8],
    slots: NDArray[np.uint64],
    known_ends: NDArray[np.int64],
    known_text: NDArray[np.uint8],
    n_known: int,
    codes: NDArray[np.int32],
) -> int:
    """Write the code of each id, add new ids to the table, and return the number of ids in it.

    The slots, which the kernel looks ids up in, are not used.
    """
    known = {
        known_text[begin:end].tobytes(): code
        for code, (begin, end) in enumerate(pairwise(known_ends[: n_known + 1].tolist()))
    }
    for i, (begin, end) in enumerate(pairwise(ends.tolist())):
        key = text[begin:end].tobytes()
        if key not in known:
            last = known_ends[len(known)]
            known_text[last : last + len(key)] = text[begin:end]
            known_ends[len(known) + 1] = last + len(key)
            known[key] = len(known)
        codes[i] = known[key]
    return len(known)


def rehash(slots: NDArray[np.uint64], more: NDArray[np.uint64]) -> None:
    """Copy the content of slots to more of them, all empty: to that of the hash or the next free."""
    for slot in slots.tolist():
        if slot != EMPTY:
            index = (slot >> 32) % len(more)
            while more[index] != EMPTY:
                index = (index + 1) % len(more)
            more[index] = slot
