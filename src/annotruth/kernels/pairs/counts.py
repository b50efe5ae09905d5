"""Count the outcomes of pairs. NumPy twins: `annotruth.kernels.reference.pairs.counts`."""

from __future__ import annotations

from annotruth.kernels.arrays import ComparisonBlock, Floats
from annotruth.kernels.compiled import compiled


@compiled
def add_votes(block: ComparisonBlock, lo: int, hi: int, votes: Floats) -> None:
    """Add the comparisons of annotators ``lo:hi`` to ``votes[left, right, outcome]``."""
    for j in range(block.annotator_ptr[lo], block.annotator_ptr[hi]):
        votes[block.left[j], block.right[j], block.outcome[j]] += 1.0
