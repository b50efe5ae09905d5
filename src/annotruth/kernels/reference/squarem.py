"""NumPy twins of `annotruth.kernels.squarem`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.shared import MARGIN, VARIANCE_MARGIN


def copy_cells(block: Block, lo: int, hi: int, x: Floats, copy: Floats) -> None:
    """Copy an array of one number per cell."""
    cells = slice(block.item_ptr[lo], block.item_ptr[hi])
    copy[cells] = x[cells]


def copy_items(block: Block, lo: int, hi: int, x: Floats, copy: Floats) -> None:
    """Copy an array of one number per item."""
    copy[lo:hi] = x[lo:hi]


def extrapolate_cells(
    block: Block, lo: int, hi: int, x: Floats, x0: Floats, x1: Floats, limit: float
) -> None:
    """Extrapolate the items' distributions, one share per cell."""
    for e in range(lo, hi):
        cells = slice(block.item_ptr[e], block.item_ptr[e + 1])
        x2 = x[cells].copy()
        share = _extrapolate(x0[cells], x1[cells], x2, limit)
        share = np.clip(share, MARGIN * x2, 1.0 - MARGIN * (1.0 - x2))
        x[cells] = x0[cells] = share / share.sum() if share.any() else share


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
        x2 = x[e]
        new = float(_extrapolate(x0[e : e + 1], x1[e : e + 1], x[e : e + 1], limit)[0])
        x[e] = x0[e] = max(new, VARIANCE_MARGIN * x2) if non_negative else new


def _extrapolate(x0: Floats, x1: Floats, x2: Floats, limit: float) -> Floats:
    r = x1 - x0
    v = (x2 - x1) - r
    ratio = np.sqrt((r**2).sum() / (v**2).sum()) if (v**2).sum() > 0 else np.inf
    a = min(max(ratio, 1.0), limit)
    new: Floats = x2 if a <= 1 else x0 + 2 * a * r + a**2 * v
    return new
