r"""Intervals of a coefficient over items and people, which are left out in turn.

The variance is :math:`V_{items} + V_{people} - V_{labels}`, at least that over items (Cameron, Gelbach and Miller
2011), on the scale of :math:`-\log(1 - x)`, with Student's t of the smaller number less one. Fewer than three
people vary too little to tell: then it is over items alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from annotruth.kernels.arrays import Codes, Floats

_LEAST_PEOPLE = 3
_TAIL = 0.025
_TINY = 1e-12


class Variances(NamedTuple):
    """Jackknife variances of -log(1 - x), and of how many deletions; nan where one is not defined."""

    items: float
    people: float
    labels: float
    n_items: int
    n_people: int


class Interval(NamedTuple):
    """The 95% interval of a coefficient, and over what it is; None where there is none."""

    low: float | None
    high: float | None
    over: str | None


def jackknife_variance(values: Floats, counts: Codes | None = None) -> float:
    """Return the variance of -log(1 - x), given x without each part; ``counts`` of equal parts."""
    if not (values < 1.0).all():  # also nan
        return float("nan")
    z = -np.log(1.0 - values)
    weight = np.ones(len(z)) if counts is None else counts.astype(float)
    n = weight.sum()
    return float(weight @ (z - weight @ z / n) ** 2 * (n - 1.0) / n)


def interval(
    value: float, variances: Variances, least: float = -1.0, chance: float = 0.0
) -> Interval:
    """Return the interval of a coefficient, which is at least ``least``.

    ``chance`` is the probability that two labels are equal by chance, for a coefficient beyond chance.
    """
    if not np.isfinite(value):
        return Interval(None, None, None)
    if value >= 1.0 - _TINY:
        # No two labels of an item differ. If a share e of the items had labels by chance, n items would
        # be so with the probability (1 - e (1 - chance))^n, which is 0.025 at the lower end.
        differ = 1.0 - _TAIL ** (1.0 / max(variances.n_items, 1))
        return Interval(float(max(1.0 - differ / (1.0 - chance), least)), 1.0, "items")
    if not np.isfinite(variances.items) or variances.n_items < 2:
        return Interval(None, None, None)
    total, smallest = variances.items, variances.n_items
    by_people = variances.n_people >= _LEAST_PEOPLE and np.isfinite(variances.people)
    if by_people:
        total = max(total, total + variances.people - variances.labels)
        smallest = min(smallest, variances.n_people)
    width = stdtrit(smallest - 1, 1.0 - _TAIL) * np.sqrt(total)
    low, high = ((1.0 - value) * np.exp(-sign * width) for sign in (-1.0, 1.0))
    over = "items and people" if by_people else "items"
    return Interval(float(max(1.0 - low, least)), float(1.0 - high), over)
