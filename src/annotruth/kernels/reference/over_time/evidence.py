"""NumPy twin of `annotruth.kernels.over_time.evidence`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Floats, Singles
from annotruth.kernels.reference.rows import label_rows


def label_evidence(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    if_serious: Floats,
    if_irregular: Floats,
    ratios: Singles,
) -> None:
    """Write the probability of each label if it is serious, and if it is not."""
    labels = label_rows(block, lo, hi)
    rows = ratios[labels.annotator, labels.category].astype(np.float64)
    total, serious, irregular = np.einsum("jk,jik->ij", posterior[labels.item], rows)
    if_serious[labels.place] = serious / total
    if_irregular[labels.place] = irregular / total
