"""Count the outcomes of pairs. NumPy twins: `annotruth.kernels.reference.pairs.counts`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats, VoteBlock
from annotruth.kernels.compiled import compiled


@compiled
def add_votes(block: VoteBlock, lo: int, hi: int, votes: Floats) -> None:
    """Add the comparisons ``lo:hi`` to ``votes[left, right, outcome]``.

    Codes must be within their ranges; they are not checked.
    """
    n_items, n_outcomes = np.uint64(votes.shape[1]), np.uint64(votes.shape[2])
    added_to = votes.reshape(votes.size)
    # Small counters, as more of them fit into the caches. Unsigned indices are not tested for
    # being negative.
    counts = np.zeros(votes.size, dtype=np.uint8)
    for v in range(lo, hi):
        pair = np.uint64(block.left[v]) * n_items + np.uint64(block.right[v])
        cell = pair * n_outcomes + np.uint64(block.outcome[v])
        counts[cell] += np.uint8(1)
        if counts[cell] == 0:
            added_to[cell] += 256.0
    for c in range(len(counts)):
        added_to[c] += counts[c]
