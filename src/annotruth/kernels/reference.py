"""Plain NumPy twins of the compiled kernels: what they compute, in the words of the equations.

Each is named after its twin, ``<family>_<kernel>``, takes the same arguments and is the oracle
of its tests. They allocate freely and are for small data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.block import Block

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class _Rows(NamedTuple):
    """Items ``lo:hi`` of a block with one entry a label."""

    item: Codes
    cell: Codes
    category: Codes
    annotator: Codes
    place: Codes  # where the label stands in the block


def _rows(block: Block, lo: int, hi: int) -> _Rows:
    cells = np.arange(block.item_ptr[lo], block.item_ptr[hi])
    cell = np.repeat(cells, np.diff(block.cell_ptr)[cells])
    place = np.arange(block.cell_ptr[cells[0]], block.cell_ptr[cells[-1] + 1])
    item = np.repeat(np.arange(lo, hi), np.diff(block.item_ptr)[lo:hi])[cell - cells[0]]
    category = block.cell_category[cell].astype(np.int64)
    return _Rows(item, cell, category, block.annotator[place].astype(np.int64), place)


def gpm_start(block: Block, lo: int, hi: int, theta: Floats) -> None:
    """Observed shares, or certainty where the truth is known."""
    rows = _rows(block, lo, hi)
    np.add.at(theta, rows.cell, 1.0 / np.bincount(rows.item)[rows.item])
    known = block.known[rows.item] >= 0
    agrees = rows.category == block.known[rows.item]
    theta[rows.cell[known]] = agrees[known]


def _gpm_posterior(
    rows: _Rows, theta: Floats, eps: Floats, pi: Floats, chance: float
) -> tuple[Floats, Floats]:
    behavior = pi[rows.annotator, rows.category] if len(pi) else chance
    c1 = eps[rows.annotator] * theta[rows.cell]
    c2 = (1.0 - eps[rows.annotator]) * behavior
    return c1 / (c1 + c2), c1 + c2


def gpm_step(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    serious: Floats,
    irregular: Floats,
    totals: Floats,
) -> None:
    """E-step and the items' part of the M-step."""
    rows = _rows(block, lo, hi)
    mu, p = _gpm_posterior(rows, theta, eps, pi, chance)
    np.add.at(serious, rows.annotator, mu)
    if len(pi):
        np.add.at(irregular, (rows.annotator, rows.category), 1.0 - mu)

    mass = np.bincount(rows.cell, mu, minlength=len(theta))
    total = np.bincount(rows.item, mu)
    shares = np.zeros_like(theta)
    gpm_start(block, lo, hi, shares)
    open_ = block.known[rows.item] < 0
    spoken = total[rows.item] > 0
    cell = rows.cell
    theta[cell] = np.where(
        open_,
        np.where(spoken, mass[cell] / np.where(spoken, total[rows.item], 1.0), shares[cell]),
        theta[cell],
    )
    cells, first = np.unique(cell, return_index=True)
    counted = open_[first] & (mass[cells] > 0) & (theta[cells] > 0)
    totals[0] += np.log(p).sum()
    totals[1] += (mass[cells] * np.log(np.where(counted, theta[cells], 1.0)))[counted].sum()


def gpm_posterior(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    p_serious: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    totals: Floats,
) -> None:
    """Probability that each label was serious."""
    rows = _rows(block, lo, hi)
    p_serious[rows.place], p = _gpm_posterior(rows, theta, eps, pi, chance)
    totals[0] += np.log(p).sum()


def gpm_support(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    log_likelihood: Floats,
    slope: Floats,
) -> None:
    """Log-likelihood by annotator at eps, and its slope in eps."""
    rows = _rows(block, lo, hi)
    behavior = pi[rows.annotator, rows.category] if len(pi) else chance
    _, p = _gpm_posterior(rows, theta, eps, pi, chance)
    np.add.at(log_likelihood, rows.annotator, np.log(p))
    np.add.at(slope, rows.annotator, (theta[rows.cell] - behavior) / p)
