"""NumPy twins of `annotruth.kernels.gpm`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.reference.rows import LabelRows, cell_shares, label_rows


def start(block: Block, lo: int, hi: int, theta: Floats) -> None:
    """Set theta to the observed shares, or to certainty where the truth is known."""
    item, category, shares = cell_shares(block, lo, hi)
    known = block.known[item]
    cells = slice(block.item_ptr[lo], block.item_ptr[hi])
    theta[cells] = np.where(known < 0, shares, category == known)


def _responsibility(
    rows: LabelRows, theta: Floats, eps: Floats, pi: Floats, chance: float
) -> tuple[Floats, Floats]:
    """Return mu and the probability of every label."""
    behavior = pi[rows.annotator, rows.category] if len(pi) else chance
    c1 = eps[rows.annotator] * theta[rows.cell]
    c2 = (1.0 - eps[rows.annotator]) * behavior
    return c1 / (c1 + c2), c1 + c2


def step(
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
    """Take one EM step on the items."""
    rows = label_rows(block, lo, hi)
    mu, p = _responsibility(rows, theta, eps, pi, chance)
    np.add.at(serious, rows.annotator, mu)
    if len(pi):
        np.add.at(irregular, (rows.annotator, rows.category), 1.0 - mu)

    mass = np.bincount(rows.cell, mu, minlength=len(theta))
    total = np.bincount(rows.item, mu)
    shares = np.zeros_like(theta)
    start(block, lo, hi, shares)
    unknown = block.known[rows.item] < 0
    has_mass = total[rows.item] > 0
    cell = rows.cell
    theta[cell] = np.where(
        unknown,
        np.where(has_mass, mass[cell] / np.where(has_mass, total[rows.item], 1.0), shares[cell]),
        theta[cell],
    )
    cells, first = np.unique(cell, return_index=True)
    counted = unknown[first] & (mass[cells] > 0) & (theta[cells] > 0)
    totals[0] += np.log(p).sum()
    totals[1] += (mass[cells] * np.log(np.where(counted, theta[cells], 1.0)))[counted].sum()


def posterior(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    p_serious: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    log_likelihood: Floats,
) -> None:
    """Write mu of every label and add up the log-likelihood."""
    rows = label_rows(block, lo, hi)
    p_serious[rows.place], p = _responsibility(rows, theta, eps, pi, chance)
    log_likelihood[0] += np.log(p).sum()


def log_likelihood_by_annotator(
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
    """Add up, by annotator, the log-likelihood at ``eps`` and its slope in eps."""
    rows = label_rows(block, lo, hi)
    behavior = pi[rows.annotator, rows.category] if len(pi) else chance
    _, p = _responsibility(rows, theta, eps, pi, chance)
    np.add.at(log_likelihood, rows.annotator, np.log(p))
    np.add.at(slope, rows.annotator, (theta[rows.cell] - behavior) / p)
