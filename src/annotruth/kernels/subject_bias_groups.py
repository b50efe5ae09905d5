r"""Passes of the model of `annotruth.kernels.subject_bias` with one ambiguity per group of items.

``group[e]`` is the item's group and ``group_a2`` the squared ambiguity of each group. NumPy twins:
`annotruth.kernels.reference.subject_bias_groups`.
"""

from __future__ import annotations

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.subject_bias import log_likelihood as item_log_likelihood


@compiled
def set_ambiguity(
    block: Block, lo: int, hi: int, a2: Floats, group: Codes, group_a2: Floats
) -> None:
    """Set the squared ambiguity of each item to that of its group."""
    for e in range(lo, hi):
        a2[e] = group_a2[group[e]]


@compiled
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
    for e in range(lo, hi):
        g = group[e]
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            x = values[block.cell_category[c]] - psi[e]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                w = 1.0 / (v2[s] + a2[e])
                moments[g, 0] += 1.0
                moments[g, 1] += w
                moments[g, 2] += w * w
                moments[g, 3] += (w * (x - b[s])) ** 2


@compiled
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
    for e in range(lo, hi):
        g = group[e]
        for k in range(group_a2.shape[0]):
            log_likelihood[k, g] += item_log_likelihood(
                block, e, psi[e], group_a2[k, g], values, b, v2
            )
