r"""SQUAREM's extrapolation of item-side arrays.

From three points :math:`x_0, x_1, x_2` of an item, with two EM steps between them, to

.. math:: x_0 + 2 a r + a^2 v, \qquad r = x_1 - x_0, \quad v = (x_2 - x_1) - r, \quad
    a = \min(\max(|r| / |v|, 1), \text{limit}),

as in `annotruth.models.squarem`. Each item has its own step length :math:`a`, so nothing is summed
over items. Each kernel processes items ``lo:hi`` of a block and reads no label. NumPy twins:
`annotruth.kernels.reference.squarem`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.shared import MARGIN, VARIANCE_MARGIN


@compiled
def copy_cells(block: Block, lo: int, hi: int, x: Floats, copy: Floats) -> None:
    """Copy an array of one number per cell."""
    # By entry: an assignment of arrays takes seconds to compile, with the errors that it can raise.
    for c in range(block.item_ptr[lo], block.item_ptr[hi]):
        copy[c] = x[c]


@compiled
def copy_items(block: Block, lo: int, hi: int, x: Floats, copy: Floats) -> None:
    """Copy an array of one number per item."""
    for e in range(lo, hi):
        copy[e] = x[e]


@compiled
def extrapolate_cells(
    block: Block, lo: int, hi: int, x: Floats, x0: Floats, x1: Floats, limit: float
) -> None:
    """Extrapolate the items' distributions, one share per cell.

    The three points are in ``x0``, ``x1`` and ``x``; the new one is written to ``x`` and ``x0``.
    """
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        r2 = v2 = 0.0
        for c in range(first, last):
            r = x1[c] - x0[c]
            v = (x[c] - x1[c]) - r
            r2 += r * r
            v2 += v * v
        a = _step_length(r2, v2, limit)
        total = 0.0
        for c in range(first, last):
            x2 = x[c]
            share = _extrapolate(x0[c], x1[c], x2, a)
            share = min(max(share, MARGIN * x2), 1.0 - MARGIN * (1.0 - x2))
            x[c] = share
            total += share
        for c in range(first, last):
            # All shares are 0 if the known truth is a category without labels.
            if total > 0.0:
                x[c] /= total
            x0[c] = x[c]


@compiled
def extrapolate_items(
    block: Block,
    lo: int,
    hi: int,
    x: Floats,
    x0: Floats,
    x1: Floats,
    limit: float,
    non_negative: bool,
) -> None:
    """Extrapolate one number per item; it stays above 0 if ``non_negative``."""
    for e in range(lo, hi):
        r = x1[e] - x0[e]
        v = (x[e] - x1[e]) - r
        x2 = x[e]
        new = _extrapolate(x0[e], x1[e], x2, _step_length(r * r, v * v, limit))
        x[e] = max(new, VARIANCE_MARGIN * x2) if non_negative else new
        x0[e] = x[e]


@compiled
def _step_length(r2: float, v2: float, limit: float) -> float:
    """Return a for the squared norms of r and v."""
    ratio = math.sqrt(r2 / v2) if v2 > 0.0 else np.inf
    return min(max(ratio, 1.0), limit)


@compiled
def _extrapolate(x0: float, x1: float, x2: float, a: float) -> float:
    """Return the new point; without extrapolation it is the last one."""
    if a <= 1.0:
        return x2
    r = x1 - x0
    return x0 + 2.0 * a * r + a * a * ((x2 - x1) - r)
