"""NumPy twins of `annotruth.kernels.gpm`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Arrays, Block, Floats
from annotruth.kernels.reference.rows import LabelRows, cell_shares, label_rows


def start(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Set theta to the observed shares, or to certainty where the truth is known."""
    item, category, shares = cell_shares(block, lo, hi)
    known = block.known[item]
    cells = slice(block.item_ptr[lo], block.item_ptr[hi])
    a.theta[cells] = np.where(known < 0, shares, category == known)


def label_behavior(rows: LabelRows, a: Arrays) -> Floats:
    """Return the probability of every label if it is irregular."""
    return a.pi[rows.annotator, rows.category] if len(a.pi) else np.full(len(rows.item), a.chance)


def _responsibility(rows: LabelRows, a: Arrays) -> tuple[Floats, Floats]:
    """Return mu and the probability of every label."""
    c1 = a.eps[rows.annotator] * a.theta[rows.cell]
    c2 = (1.0 - a.eps[rows.annotator]) * label_behavior(rows, a)
    return c1 / (c1 + c2), c1 + c2


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Take one EM step on the items."""
    rows = label_rows(block, lo, hi)
    mu, p = _responsibility(rows, a)
    np.add.at(a.serious, rows.annotator, mu)
    if len(a.pi):
        np.add.at(a.irregular, (rows.annotator, rows.category), 1.0 - mu)

    mass = np.bincount(rows.cell, mu, minlength=len(a.theta))
    total = np.bincount(rows.item, mu)
    shares = np.zeros_like(a.theta)
    start(block, lo, hi, Arrays(theta=shares))
    unknown = block.known[rows.item] < 0
    has_mass = total[rows.item] > 0
    cell = rows.cell
    a.theta[cell] = np.where(
        unknown,
        np.where(has_mass, mass[cell] / np.where(has_mass, total[rows.item], 1.0), shares[cell]),
        a.theta[cell],
    )
    cells, first = np.unique(cell, return_index=True)
    counted = unknown[first] & (mass[cells] > 0) & (a.theta[cells] > 0)
    a.totals[0] += np.log(p).sum()
    a.totals[1] += (mass[cells] * np.log(np.where(counted, a.theta[cells], 1.0)))[counted].sum()


def posterior(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write mu of every label and add up the log-likelihood."""
    rows = label_rows(block, lo, hi)
    a.p_serious[rows.place], p = _responsibility(rows, a)
    a.log_likelihood[0] += np.log(p).sum()


def log_likelihood_by_annotator(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up, by annotator, the log-likelihood at ``eps`` and its slope in eps."""
    rows = label_rows(block, lo, hi)
    _, p = _responsibility(rows, a)
    np.add.at(a.log_likelihood, rows.annotator, np.log(p))
    np.add.at(a.slope, rows.annotator, (a.theta[rows.cell] - label_behavior(rows, a)) / p)
