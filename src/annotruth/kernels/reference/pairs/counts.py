"""NumPy twins of `annotruth.kernels.pairs.counts`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import ComparisonBlock, Floats


def add_votes(block: ComparisonBlock, lo: int, hi: int, votes: Floats) -> None:
    """Add the comparisons of annotators ``lo:hi`` to ``votes[left, right, outcome]``."""
    rows = slice(block.annotator_ptr[lo], block.annotator_ptr[hi])
    np.add.at(votes, (block.left[rows], block.right[rows], block.outcome[rows]), 1.0)
