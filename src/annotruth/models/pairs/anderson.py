r"""Anderson acceleration of EM, for steps whose parameters are few.

With the last EM steps :math:`x_i \to g_i` and their residuals :math:`f_i = g_i - x_i`, the next step
begins at :math:`\sum_i \alpha_i g_i`, where :math:`\sum_i \alpha_i = 1` and :math:`|\sum_i \alpha_i f_i|`
is least (Walker and Ni, "Anderson acceleration for fixed-point iterations", 2011). It needs fewer steps
than squared extrapolation (`annotruth.models.squarem`) where some directions converge slowly, as shares
of similar latent classes do, and solves a small least-squares problem of all parameters at once. If the
objective has fallen at such a point, it is rolled back: EM continues from its last step's end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.shared import MARGIN
from annotruth.models.em import ROUNDING

Point = TypeVar("Point")

_MEMORY = 6  # steps
_BURN_IN = 2
_RIDGE = 1e-10  # relative to the residuals' squares


class Coordinates(NamedTuple):
    """How a field of the parameters becomes coordinates, of which a change by 1 is of one importance.

    Shares take their square roots, which have the same sampling variance whatever the share.

    Examples
    --------
    >>> Coordinates(is_shares=True, scale=10.0).of(np.array([0.36, 0.64]))
    array([6., 8.])
    """

    is_shares: bool
    scale: float

    def of(self, values: Floats) -> Floats:
        """Return the coordinates of values."""
        return self.scale * (np.sqrt(values) if self.is_shares else values).ravel()

    def values(self, coordinates: Floats, near: Floats) -> Floats:
        """Return the values of coordinates, in the shape of values near them."""
        values: Floats = coordinates.reshape(near.shape) / self.scale
        if not self.is_shares:
            return values
        shares: Floats = np.maximum(values, MARGIN * np.sqrt(near)) ** 2
        shares /= shares.sum()
        return shares


class Anderson(Generic[Point]):
    """The extrapolations of one fit, used by `annotruth.models.em.run_em`.

    Parameters
    ----------
    make
        Makes parameters of their fields: the class of the model's parameters.
    coordinates
        Those of each field, in their order.

    Examples
    --------
    >>> class Rate(NamedTuple):
    ...     value: np.ndarray
    >>> anderson = Anderson(Rate, Coordinates(is_shares=False, scale=1.0))
    >>> x = Rate(np.array([1.0]))
    >>> for _ in range(4):  # steps that halve the distance from 3
    ...     x = anderson.propose(x)
    ...     x, _ = anderson.accept(Rate((x.value + 3) / 2), {"objective": -abs(float(x.value[0]) - 3)})
    >>> x.value.round(6)
    array([3.])
    """

    def __init__(self, make: Callable[..., Point], *coordinates: Coordinates) -> None:
        self._make = make
        self._coordinates = coordinates
        self._n_steps = 0
        self._ends: list[Floats] = []
        self._residuals: list[Floats] = []
        self._begin: Point | None = None
        self._end: Point | None = None
        self._extrapolated = False
        self._objective = -np.inf

    def propose(self, current: Point) -> Point:
        """Return the point to step from: the current one, which `accept` has extrapolated."""
        self._begin = current
        return current

    def accept(self, new: Point, monitor: Mapping[str, float]) -> tuple[Point, bool]:
        """Return where to continue and True, or the end of an earlier step and False."""
        objective = monitor["objective"]
        self._n_steps += 1
        # Written so that NaN counts as a fall.
        fallen = not objective >= self._objective - ROUNDING * abs(self._objective)
        if fallen and self._extrapolated and self._end is not None:
            self._ends, self._residuals, self._extrapolated = [], [], False
            return self._end, False
        self._objective, self._end = objective, new
        end = self._flat(new)
        self._ends = [*self._ends[-_MEMORY:], end]
        self._residuals = [*self._residuals[-_MEMORY:], end - self._flat(self._begin)]
        self._extrapolated = self._n_steps > _BURN_IN and len(self._ends) > 1
        return (self._mixed(new) if self._extrapolated else new), True

    def finish(self, current: Point) -> Point:
        """Return the end of the last step."""
        return current if self._end is None else self._end

    def _flat(self, point: Point | None) -> Floats:
        fields = zip(self._coordinates, cast(Any, point), strict=True)
        return np.concatenate([each.of(values) for each, values in fields])

    def _mixed(self, new: Point) -> Point:
        """Return the combination of the last steps' ends whose residual is least."""
        ends, residuals = np.stack(self._ends), np.stack(self._residuals)
        changes = np.diff(residuals, axis=0)
        matrix = changes @ changes.T
        matrix[np.diag_indices(len(matrix))] += _RIDGE * np.trace(matrix) + 1e-300
        weights = np.linalg.solve(matrix, changes @ residuals[-1])
        mixed = ends[-1] - weights @ np.diff(ends, axis=0)
        made, at = [], 0
        for each, near in zip(self._coordinates, cast(Any, new), strict=True):
            made.append(each.values(mixed[at : at + near.size], near))
            at += near.size
        return self._make(*made)
