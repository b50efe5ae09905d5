"""NumPy twin of `annotruth.kernels.over_time.evidence`."""

from __future__ import annotations

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.reference.rows import label_rows


def label_evidence(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    if_serious: Floats,
    if_irregular: Floats,
    confusion: Floats,
    serious: Floats,
    irregular: Floats,
) -> None:
    """Write the probability of each label if it is serious, and if it is not."""
    labels = label_rows(block, lo, hi)
    without = posterior[labels.item] / confusion[labels.annotator, labels.category]
    without /= without.sum(axis=1, keepdims=True)
    for target, table in ((if_serious, serious), (if_irregular, irregular)):
        target[labels.place] = (without * table[labels.annotator, labels.category]).sum(axis=1)
