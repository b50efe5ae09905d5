"""NumPy twins of `annotruth.kernels.pairs.counts`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats, VoteBlock


def add_votes(block: VoteBlock, lo: int, hi: int, votes: Floats) -> None:
    """Add the comparisons ``lo:hi`` to ``votes[left, right, outcome]``."""
    rows = slice(lo, hi)
    np.add.at(votes, (block.left[rows], block.right[rows], block.outcome[rows]), 1.0)
