"""NumPy twins of `annotruth.kernels.subject_bias_groups`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.reference.rows import label_rows
from annotruth.kernels.reference.subject_bias import log_density, sum_columns


def set_ambiguity(
    block: Block, lo: int, hi: int, a2: Floats, group: Codes, group_a2: Floats
) -> None:
    """Set the squared ambiguity of each item to that of its group."""
    a2[lo:hi] = group_a2[group[lo:hi]]


def moments_by_group(
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
    """Add to ``moments[g]`` the sums of 1, w, w^2 and (wr)^2 over the votes of group g."""
    rows = label_rows(block, lo, hi)
    r = values[rows.category] - psi[rows.item] - b[rows.annotator]
    w = 1.0 / (v2[rows.annotator] + a2[rows.item])
    moments += sum_columns(group[rows.item], len(moments), np.ones_like(w), w, w**2, (w * r) ** 2)


def log_likelihood_by_group(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    group: Codes,
    values: Floats,
    b: Floats,
    v2: Floats,
    group_a2: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up, by group, the log-likelihood at each row of proposed ambiguities ``group_a2``."""
    rows = label_rows(block, lo, hi)
    r = values[rows.category] - psi[rows.item] - b[rows.annotator]
    groups = group[rows.item]
    for k, proposed in enumerate(group_a2):
        density = log_density(r, v2[rows.annotator] + proposed[groups])
        np.add.at(log_likelihood[k], groups, density)
