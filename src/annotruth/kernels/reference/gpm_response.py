"""Plain twin of how GPM's sums follow a reliability."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.reference.rows import rows_of

STEEPEST = 1e6
LEAST = 1e-3


def response(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    serious: Floats,
    slope: Floats,
    irregular: Floats,
) -> None:
    """Add up, by annotator, mu, its slope in eps, and 1 - mu by label (when pi is learned)."""
    rows = rows_of(block, lo, hi)
    s, c = rows.annotator, rows.cell
    behavior = pi[s, rows.category] if len(pi) else chance
    p = eps[s] * theta[c] + (1.0 - eps[s]) * behavior
    mu = eps[s] * theta[c] / p

    mass, squares = np.bincount(c, mu), np.bincount(c, mu**2)
    some = (theta[: len(mass)] > LEAST) & (mass > 0)
    inverse = np.divide(1.0, squares, out=np.zeros_like(squares), where=some)
    item_of_cell = np.repeat(np.arange(len(block.known)), np.diff(block.item_ptr))[: len(mass)]
    weight = np.bincount(item_of_cell, mass**2 * inverse)[item_of_cell]
    follows = inverse - (mass * inverse) ** 2 / np.where(some, weight, 1.0)
    follows[block.known[item_of_cell] >= 0] = 0.0

    np.add.at(serious, s, mu)
    alone = np.minimum(theta[c] / p * (behavior / p), STEEPEST)
    np.add.at(slope, s, alone * (1.0 + mu * (1.0 - mu) * follows[c]))
    if len(pi):
        np.add.at(irregular, (s, rows.category), 1.0 - mu)
