"""Sort votes, number pairs and count outcomes. NumPy twins: `annotruth.kernels.reference.pairs.layout`.

Codes must be within their ranges; they are not checked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats, VoteBlock
from annotruth.kernels.compiled import compiled


@compiled
def count_ranges(
    annotator: NDArray[np.int32], lo: int, hi: int, shift: int, counts: NDArray[np.int64]
) -> None:
    """Count the rows ``lo:hi`` by range of annotators, ``annotator >> shift``."""
    for r in range(lo, hi):
        counts[annotator[r] >> shift] += 1


@compiled
def distribute_votes(
    annotator: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    outcome: NDArray[np.int8],
    lo: int,
    hi: int,
    shift: int,
    begin: NDArray[np.int64],
    records: NDArray[np.int32],
) -> None:
    """Copy the rows ``lo:hi`` to their ranges of annotators, each from its place ``begin`` on.

    A record is the place of the annotator in the range, times 4, and the outcome; left; right; the row.
    """
    next_free = begin.copy()
    mask = (1 << shift) - 1
    for r in range(lo, hi):
        i = next_free[annotator[r] >> shift]
        next_free[annotator[r] >> shift] = i + 1
        records[i, 0] = ((annotator[r] & mask) << 2) | outcome[r]
        records[i, 1], records[i, 2] = left[r], right[r]
        records[i, 3] = r  # there is no room in memory for more rows than 32 bits count


@compiled
def sort_range(
    records: NDArray[np.int32],
    lo: int,
    hi: int,
    annotator_ptr: NDArray[np.int64],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    outcome: NDArray[np.int8],
    row: NDArray[np.int64],
) -> None:
    """Sort the records ``lo:hi``, which are all of a range, by annotator, and fill the other arrays.

    ``annotator_ptr`` is that of the annotators of the range: one entry each, which gets the end of
    the annotator's rows.
    """
    annotator_ptr[:] = 0
    for i in range(lo, hi):
        annotator_ptr[records[i, 0] >> 2] += 1
    next_free = np.empty_like(annotator_ptr)
    end = lo
    for s in range(len(annotator_ptr)):
        next_free[s] = end
        end += annotator_ptr[s]
        annotator_ptr[s] = end
    for i in range(lo, hi):
        s = records[i, 0] >> 2
        j = next_free[s]
        next_free[s] = j + 1
        left[j], right[j] = records[i, 1], records[i, 2]
        outcome[j], row[j] = records[i, 0] & 3, records[i, 3]


@compiled
def mark_pairs(
    left: NDArray[np.int32], right: NDArray[np.int32], n_items: int, occurs: NDArray[np.bool_]
) -> None:
    """Set ``occurs[low * n_items + high]`` of the pairs of items that were compared."""
    for v in range(len(left)):
        low, high = min(left[v], right[v]), max(left[v], right[v])
        occurs[np.uint64(low) * np.uint64(n_items) + np.uint64(high)] = True


@compiled
def set_pairs(
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    n_items: int,
    code: NDArray[np.int32],
    pair: NDArray[np.int32],
) -> None:
    """Set ``pair`` to ``code[low * n_items + high]`` of each comparison's items."""
    for v in range(len(left)):
        low, high = min(left[v], right[v]), max(left[v], right[v])
        pair[v] = code[np.uint64(low) * np.uint64(n_items) + np.uint64(high)]


@compiled
def add_votes(block: VoteBlock, lo: int, hi: int, votes: Floats) -> None:
    """Add the comparisons ``lo:hi`` to ``votes[left, right, outcome]``."""
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
