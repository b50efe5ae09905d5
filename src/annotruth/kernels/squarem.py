r"""Leaps of item-side arrays, and the points kept for them.

From three points :math:`x_0, x_1, x_2` of an item, two steps of EM, to

.. math:: x_0 + 2 a r + a^2 v, \qquad r = x_1 - x_0, \quad v = (x_2 - x_1) - r, \quad
    a = \min(\max(|r| / |v|, 1), \text{longest}),

as `annotruth.models.squarem` tells. Every item has a reach :math:`a` of its own, so nothing
is added up over items. Each kernel works on items ``lo:hi`` of a block and reads no label. Plain
twins: `annotruth.kernels.reference.squarem`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled

NEAREST = 0.3
"""A leap leaves a share or probability at least so much of what lay between it and its bound."""

NEAREST_TO_ZERO = 0.03
"""The same for variances, which come back from their bound."""


@compiled
def keep_cells(block: Block, lo: int, hi: int, x: Floats, kept: Floats) -> None:
    """Copy what cells have."""
    first, last = block.item_ptr[lo], block.item_ptr[hi]
    kept[first:last] = x[first:last]


@compiled
def keep_items(block: Block, lo: int, hi: int, x: Floats, kept: Floats) -> None:
    """Copy what items have."""
    kept[lo:hi] = x[lo:hi]


@compiled
def leap_cells(
    block: Block, lo: int, hi: int, x: Floats, before: Floats, between: Floats, longest: float
) -> None:
    """Leap with items' distributions, one share a cell.

    Takes the three points from ``before``, ``between`` and ``x``, and leaves the new one in ``x``
    and ``before``.
    """
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        r2 = v2 = 0.0
        for c in range(first, last):
            r = between[c] - before[c]
            v = (x[c] - between[c]) - r
            r2 += r * r
            v2 += v * v
        a = _reach(r2, v2, longest)
        total = 0.0
        for c in range(first, last):
            here = x[c]
            share = _ahead(before[c], between[c], here, a)
            share = min(max(share, NEAREST * here), 1.0 - NEAREST * (1.0 - here))
            x[c] = share
            total += share
        for c in range(first, last):
            # All shares are 0 where a known truth is one that nobody chose.
            if total > 0.0:
                x[c] /= total
            before[c] = x[c]


@compiled
def leap_items(
    block: Block,
    lo: int,
    hi: int,
    x: Floats,
    before: Floats,
    between: Floats,
    longest: float,
    bounded: bool,
) -> None:
    """Leap with a number of each item, as `leap_cells` does; ``bounded``: one that is not below 0."""
    for e in range(lo, hi):
        r = between[e] - before[e]
        v = (x[e] - between[e]) - r
        here = x[e]
        ahead = _ahead(before[e], between[e], here, _reach(r * r, v * v, longest))
        x[e] = max(ahead, NEAREST_TO_ZERO * here) if bounded else ahead
        before[e] = x[e]


@compiled
def _reach(r2: float, v2: float, longest: float) -> float:
    far = math.sqrt(r2 / v2) if v2 > 0.0 else np.inf
    return min(max(far, 1.0), longest)


@compiled
def _ahead(x0: float, x1: float, x2: float, a: float) -> float:
    if a <= 1.0:
        return x2
    r = x1 - x0
    return x0 + 2.0 * a * r + a * a * ((x2 - x1) - r)
