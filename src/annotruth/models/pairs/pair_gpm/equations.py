"""The linear equations of PairGPM's Newton steps: scores of groups, linked by few offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.models.pairs.graph import LaplacianSystem, connected_parts
from annotruth.models.pairs.pair_gpm.parameters import PairGPMParameters

OFFSET_PRECISION = 0.25
"""The precision of the prior of the side bias and of standardised coefficients."""

_MAX_TABLE = 4  # entries per comparison in a table of all pairs; with more, pairs are sorted
_MAX_MOVE = 2.0  # of a score in one step


class ScoreEquations(NamedTuple):
    """The pairs of items that were compared, and the equations that a pass's sums make of them.

    Examples
    --------
    >>> votes = Comparisons.from_codes([0], [1], [0], [0], items=["a", "b"], annotators=["x"])
    >>> equations, pair = make_equations(votes)
    >>> equations.left.tolist(), equations.right.tolist(), pair.tolist()
    ([0], [1], [0])
    """

    left: Codes
    right: Codes
    part: Codes
    sides_known: bool

    def moves(
        self, old: PairGPMParameters, sums: Mapping[str, Floats], precision: float
    ) -> tuple[Floats, Floats, float]:
        """Return the Newton step of scores and offsets, and by how much the log posterior should rise."""
        gradient = sums["gradient"] - precision * old.theta
        offset_gradient = sums["offset_gradient"] - OFFSET_PRECISION * old.offsets
        cross = sums["cross"].copy()
        if not self.sides_known:
            cross[:, :, 0], offset_gradient[0] = 0.0, 0.0
        systems = self.systems(sums, precision)
        moves, further = _solve(
            systems, cross, self.offset_curvature(sums), gradient, offset_gradient
        )
        # Far from the optimum the expected log posterior is not quadratic.
        damping = min(1.0, _MAX_MOVE / max(np.abs(moves).max(), 1e-300))
        rise = 0.5 * damping * (inner(gradient, moves) + inner(offset_gradient, further))
        return damping * moves, damping * further, rise

    def systems(self, sums: Mapping[str, Floats], precision: float) -> list[LaplacianSystem]:
        """Return the equations of the scores of each group."""
        return [
            LaplacianSystem(self.left, self.right, weight, precision, self.part)
            for weight in sums["curvature"]
        ]

    def offset_curvature(self, sums: Mapping[str, Floats]) -> Floats:
        """Return the expected curvature of the offsets, that of their prior included."""
        curvature = sums["offset_curvature"]
        return self.without_sides(curvature + OFFSET_PRECISION * np.eye(len(curvature)), 0)

    def without_sides(self, information: Floats, place: int) -> Floats:
        """Return the information without that about the side bias, if sides are not known."""
        if not self.sides_known:
            information[place], information[:, place] = 0.0, 0.0
            information[place, place] = 1.0
        return information


def make_equations(data: Comparisons) -> tuple[ScoreEquations, NDArray[np.int32]]:
    """Return the equations, and the code of each comparison's pair."""
    low, high = np.minimum(data.left, data.right), np.maximum(data.left, data.right)
    pairs, code = _distinct(low.astype(np.int64) * data.n_items + high, data.n_items**2)
    left, right = np.divmod(pairs, data.n_items)
    part = connected_parts(data.n_items, left, right)
    return ScoreEquations(left, right, part, data.sides_known), code


def _distinct(values: Codes, size: int) -> tuple[Codes, NDArray[np.int32]]:
    """Return the distinct values below ``size`` in order, and the place of each value among them."""
    if size > _MAX_TABLE * len(values):
        distinct, place = np.unique(values, return_inverse=True)
        return distinct, place.astype(np.int32)
    occurs = np.zeros(size, dtype=np.bool_)
    occurs[values] = True
    place_of = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs), place_of[values]


def _solve(
    systems: Sequence[LaplacianSystem],
    cross: Floats,
    corner: Floats,
    gradient: Floats,
    extra: Floats,
) -> tuple[Floats, Floats]:
    """Return the solution of equations in which groups are linked by few further unknowns."""
    solved = [system.solve(rows) for system, rows in zip(systems, cross, strict=True)]
    moves = [system.solve(row) for system, row in zip(systems, gradient, strict=True)]
    for rows, columns, move in zip(cross, solved, moves, strict=True):
        corner = corner - rows.T @ columns
        extra = extra - rows.T @ move
    further: Floats = np.linalg.solve(corner, extra).astype(np.float64)
    found = [move - columns @ further for move, columns in zip(moves, solved, strict=True)]
    return np.stack(found), further
