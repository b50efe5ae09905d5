"""What the kernels of the ids compute: with a dictionary, and slot by slot."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

EMPTY = 2**64 - 1


def enter(
    ends: NDArray[np.int64],
    text: NDArray[np.uint8],
    slots: NDArray[np.uint64],
    known_ends: NDArray[np.int64],
    known_text: NDArray[np.uint8],
    n_known: int,
    codes: NDArray[np.int32],
) -> int:
    """Find the code of each id, entering those that are new, and return how many are known.

    The slots, by which the kernel finds ids, are left alone.
    """
    known = {
        known_text[begin:end].tobytes(): code
        for code, (begin, end) in enumerate(pairwise(known_ends[: n_known + 1].tolist()))
    }
    for i, (begin, end) in enumerate(pairwise(ends.tolist())):
        one = text[begin:end].tobytes()
        if one not in known:
            at = known_ends[len(known)]
            known_text[at : at + len(one)] = text[begin:end]
            known_ends[len(known) + 1] = at + len(one)
            known[one] = len(known)
        codes[i] = known[one]
    return len(known)


def settle(slots: NDArray[np.uint64], more: NDArray[np.uint64]) -> None:
    """Move what the slots hold to more of them, all empty: to its hash's, or the next free."""
    for slot in slots.tolist():
        if slot != EMPTY:
            at = (slot >> 32) % len(more)
            while more[at] != EMPTY:
                at = (at + 1) % len(more)
            more[at] = slot
