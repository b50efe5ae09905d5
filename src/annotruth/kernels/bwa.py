r"""Passes of the Bayesian weighted average.

The score of item e in class k is

.. math:: z_{e,k} = \frac{\lambda \mu_k + \sum_{s \in l_e} v_{s,k} [r_{e,s} = k]}
    {\lambda + \sum_{s \in l_e} v_{s,k}},

or 1 and 0 by its known truth. ``weight`` is :math:`v`, annotators x classes, ``mean`` is :math:`\mu`
and ``strength`` is :math:`\lambda`. Each kernel processes items ``lo:hi`` of a block. NumPy twins:
`annotruth.kernels.reference.bwa`.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.compiled import compiled


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    weight: Floats,
    mean: Floats,
    strength: float,
    squares: Floats,
    scores: Floats,
) -> None:
    """Add up squared errors by annotator and class, and scores and their squares by class.

    ``squares`` is annotators x classes; ``scores`` is 2 x classes.
    """
    n_classes = len(mean)
    z, total = np.empty(n_classes), np.empty(n_classes)
    for e in range(lo, hi):
        _score(block, e, weight, mean, strength, z, total)
        for k in range(n_classes):
            scores[0, k] += z[k]
            scores[1, k] += z[k] * z[k]
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                row = squares[block.annotator[j]]
                for k in range(n_classes):
                    row[k] += z[k] * z[k]
                row[n] += 1.0 - 2.0 * z[n]


@compiled
def distribution(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    weight: Floats,
    mean: Floats,
    strength: float,
    right: Floats,
) -> None:
    """Write the scores as shares, items x classes; add up those of each annotator's labels."""
    n_classes = len(mean)
    total = np.empty(n_classes)
    for e in range(lo, hi):
        z = theta[e]
        _score(block, e, weight, mean, strength, z, total)
        over = 0.0
        for k in range(n_classes):
            over += z[k]
        for k in range(n_classes):
            z[k] /= over
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            share = z[block.cell_category[c]]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                right[block.annotator[j]] += share


@compiled
def _score(
    block: Block,
    e: int,
    weight: Floats,
    mean: Floats,
    strength: float,
    z: Floats,
    total: Floats,
) -> None:
    """Write the scores of one item; ``total`` is scratch."""
    n_classes = len(mean)
    known = block.known[e]
    if known >= 0:
        for k in range(n_classes):
            z[k] = 0.0
        z[known] = 1.0
        return
    for k in range(n_classes):
        z[k] = strength * mean[k]
        total[k] = strength
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            row = weight[block.annotator[j]]
            for k in range(n_classes):
                total[k] += row[k]
            z[n] += row[n]
    for k in range(n_classes):
        z[k] /= total[k]
