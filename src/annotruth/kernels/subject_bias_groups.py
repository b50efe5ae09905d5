r"""Passes over the votes for ambiguities that belong to groups of items.

The model is that of `annotruth.kernels.subject_bias`; ``group[e]`` is the item's group and
``of_group`` holds the squared ambiguity of each. Plain twins:
`annotruth.kernels.reference.subject_bias_groups`.
"""

from __future__ import annotations

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled
from annotruth.kernels.subject_bias import log_likelihood as item_log_likelihood


@compiled
def set_groups(block: Block, lo: int, hi: int, a2: Floats, group: Codes, of_group: Floats) -> None:
    """Give each item the squared ambiguity of its group."""
    for e in range(lo, hi):
        a2[e] = of_group[group[e]]


@compiled
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
    """Add up, by group, the log-likelihood at each row of proposals ``of_group``."""
    for e in range(lo, hi):
        g = group[e]
        for k in range(of_group.shape[0]):
            log_likelihood[k, g] += item_log_likelihood(
                block, e, psi[e], of_group[k, g], values, b, v2
            )
