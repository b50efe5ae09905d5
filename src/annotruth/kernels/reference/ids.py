"""What the kernels of the ids compute, with a dictionary."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def enter(
    ends: NDArray[np.int64],
    text: NDArray[np.uint8],
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint32],
    known_ends: NDArray[np.int64],
    known_text: NDArray[np.uint8],
    n_known: int,
    codes: NDArray[np.int32],
) -> int:
    """Find the code of each id, entering those that are new, and return how many are known.

    The slots and hashes, by which the kernel finds ids, are left alone.
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


def settle(slots: NDArray[np.int32], hashes: NDArray[np.uint32], n_known: int) -> None:
    """Give each known id its place among empty slots: that of its hash, or the next free one."""
    for code in range(n_known):
        at = int(hashes[code]) % len(slots)
        while slots[at] >= 0:
            at = (at + 1) % len(slots)
        slots[at] = code
