"""NumPy twins of ``native/pairs_layout.cpp``, which documents them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats, VoteBlock


def count_ranges(
    annotator: NDArray[np.int32], lo: int, hi: int, shift: int, counts: NDArray[np.int64]
) -> None:
    """Count the rows ``lo:hi`` by range of annotators, ``annotator >> shift``."""
    counts += np.bincount(annotator[lo:hi] >> shift, minlength=len(counts))


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
    """Copy the rows ``lo:hi`` to their ranges of annotators, each from its place ``begin`` on."""
    rows = lo + np.argsort(annotator[lo:hi] >> shift, kind="stable")
    ranges = annotator[rows] >> shift
    first = np.searchsorted(ranges, ranges)  # the first row of the same range
    place = begin[ranges] + np.arange(hi - lo) - first
    records[place, 0] = ((annotator[rows] & ((1 << shift) - 1)) << 2) | outcome[rows]
    records[place, 1], records[place, 2], records[place, 3] = left[rows], right[rows], rows


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
    """Sort the records ``lo:hi``, which are all of a range, by annotator, and fill the other arrays."""
    annotator = records[lo:hi, 0] >> 2
    annotator_ptr[:] = lo + np.cumsum(np.bincount(annotator, minlength=len(annotator_ptr)))
    by_annotator = records[lo:hi][np.argsort(annotator, kind="stable")]
    left[lo:hi], right[lo:hi] = by_annotator[:, 1], by_annotator[:, 2]
    outcome[lo:hi], row[lo:hi] = by_annotator[:, 0] & 3, by_annotator[:, 3]


def add_votes(block: VoteBlock, lo: int, hi: int, votes: Floats) -> None:
    """Add the comparisons ``lo:hi`` to ``votes[left, right, outcome]``."""
    rows = slice(lo, hi)
    np.add.at(votes, (block.left[rows], block.right[rows], block.outcome[rows]), 1.0)
