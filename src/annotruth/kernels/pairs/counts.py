"""Count the outcomes of pairs. NumPy twins: `annotruth.kernels.reference.pairs.counts`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, VoteBlock
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


@compiled
def add_pairs(left: Codes, right: Codes, weight: Floats, weights: Floats, degree: Floats) -> None:
    """Add the weights of pairs to ``weights[left, right]`` and to the degrees of both items."""
    for p in range(len(left)):
        i, j, w = np.uint64(left[p]), np.uint64(right[p]), weight[p]
        weights[i, j] += w
        degree[i] += w
        degree[j] += w
