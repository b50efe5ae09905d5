"""Plain twins of the kernels of ambiguities that belong to groups of items."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.block import Block
from annotruth.kernels.reference.rows import label_rows
from annotruth.kernels.reference.subject_bias import log_density, sums_by


def set_groups(block: Block, lo: int, hi: int, a2: Floats, group: Codes, of_group: Floats) -> None:
    """Squared ambiguity of the group."""
    a2[lo:hi] = of_group[group[lo:hi]]


def step_groups(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    group: Codes,
    values: Floats,
    b: Floats,
    v2: Floats,
    moments: Floats,
) -> None:
    """Group by group, the sums of 1, w, w^2, (wr)^2."""
    rows = label_rows(block, lo, hi)
    r = values[rows.category] - psi[rows.item] - b[rows.annotator]
    w = 1.0 / (v2[rows.annotator] + a2[rows.item])
    moments += sums_by(group[rows.item], len(moments), np.ones_like(w), w, w**2, (w * r) ** 2)


def try_groups(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    group: Codes,
    values: Floats,
    b: Floats,
    v2: Floats,
    of_group: Floats,
    log_likelihood: Floats,
) -> None:
    """Log-likelihood by group at each proposal."""
    rows = label_rows(block, lo, hi)
    r = values[rows.category] - psi[rows.item] - b[rows.annotator]
    by = group[rows.item]
    for k, proposed in enumerate(of_group):
        density = log_density(r, v2[rows.annotator] + proposed[by])
        np.add.at(log_likelihood[k], by, density)
