"""Plain twins of the kernels of leaps."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.squarem import NEAREST, NEAREST_TO_ZERO


def keep_cells(block: Block, lo: int, hi: int, x: Floats, kept: Floats) -> None:
    """Copy the cells of the items."""
    cells = slice(block.item_ptr[lo], block.item_ptr[hi])
    kept[cells] = x[cells]


def keep_items(block: Block, lo: int, hi: int, x: Floats, kept: Floats) -> None:
    """Copy the items."""
    kept[lo:hi] = x[lo:hi]


def leap_cells(
    block: Block, lo: int, hi: int, x: Floats, before: Floats, between: Floats, longest: float
) -> None:
    """Item by item, the leap of a distribution."""
    for e in range(lo, hi):
        cells = slice(block.item_ptr[e], block.item_ptr[e + 1])
        here = x[cells].copy()
        share = _leap(before[cells], between[cells], here, longest)
        share = np.clip(share, NEAREST * here, 1.0 - NEAREST * (1.0 - here))
        x[cells] = before[cells] = share / share.sum() if share.any() else share


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
    """Item by item, the leap of a number."""
    for e in range(lo, hi):
        here = x[e]
        ahead = float(_leap(before[e : e + 1], between[e : e + 1], x[e : e + 1], longest)[0])
        x[e] = before[e] = max(ahead, NEAREST_TO_ZERO * here) if bounded else ahead


def _leap(x0: Floats, x1: Floats, x2: Floats, longest: float) -> Floats:
    r = x1 - x0
    v = (x2 - x1) - r
    far = np.sqrt((r**2).sum() / (v**2).sum()) if (v**2).sum() > 0 else np.inf
    a = min(max(far, 1.0), longest)
    leap: Floats = x2 if a <= 1 else x0 + 2 * a * r + a**2 * v
    return leap
