"""NumPy twins of `annotruth.kernels.pairs.counts`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, VoteBlock


def add_votes(block: VoteBlock, lo: int, hi: int, votes: Floats) -> None:
    """Add the comparisons ``lo:hi`` to ``votes[left, right, outcome]``."""
    rows = slice(lo, hi)
    np.add.at(votes, (block.left[rows], block.right[rows], block.outcome[rows]), 1.0)


def add_pairs(left: Codes, right: Codes, weight: Floats, weights: Floats, degree: Floats) -> None:
    """Add the weights of pairs to ``weights[left, right]`` and to the degrees of both items."""
    np.add.at(weights, (left, right), weight)
    np.add.at(degree, left, weight)
    np.add.at(degree, right, weight)
