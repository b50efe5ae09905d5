"""The linear equations of PairGPM's Newton steps: scores of groups, linked by few offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.labels.layout import kernels_for
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
    pairs, code = _distinct_pairs(data.left, data.right, data.n_items)
    left, right = np.divmod(pairs, data.n_items)
    part = connected_parts(data.n_items, left, right)
    return ScoreEquations(left, right, part, data.sides_known), code


def _distinct_pairs(
    left: NDArray[np.int32], right: NDArray[np.int32], n_items: int
) -> tuple[Codes, NDArray[np.int32]]:
    """Return the pairs, low * n_items + high, in order, and the place of each comparison's pair."""
    if n_items**2 > _MAX_TABLE * len(left):
        low, high = np.minimum(left, right), np.maximum(left, right)
        pairs, place = np.unique(low.astype(np.int64) * n_items + high, return_inverse=True)
        return pairs, place.astype(np.int32)
    kernels = kernels_for(len(left), "pairs.layout")
    occurs = np.zeros(n_items**2, dtype=np.bool_)
    kernels.mark_pairs(left, right, n_items, occurs)
    code = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    pair = np.empty(len(left), dtype=np.int32)
    kernels.set_pairs(left, right, n_items, code, pair)
    return np.flatnonzero(occurs), pair


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
