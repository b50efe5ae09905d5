"""From the runs to whether a sentence of the paper holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.paper.base import Condition, Record, Verdict
from annotruth.paper.tables import Figure, figure

Where = Callable[[Condition], bool]

# A difference of fewer standard errors than this may be chance.
_ERRORS = 2.0
_RESAMPLES = 1000


def lead(
    records: Sequence[Record],
    measure: str,
    model: str,
    over: str,
    where: Where = lambda condition: True,
) -> Figure:
    """Return by how much a model is above another, run by run on the same labels."""
    pairs = [
        (record.results[model].get(measure), record.results[over].get(measure))
        for record in records
        if {model, over} <= record.results.keys() and where(record.condition)
    ]
    return figure([a - b for a, b in pairs if a is not None and b is not None])


def negative(difference: Figure) -> Figure:
    """Turn a difference around, for measures where lower is better."""
    mean = None if difference.mean is None else -difference.mean
    return Figure(mean, difference.error, difference.n)


def above(found: Figure, bound: float) -> Figure:
    """Return by how much a figure is above a bound."""
    mean = None if found.mean is None else found.mean - bound
    return Figure(mean, found.error, found.n)


def difference(one: Figure, other: Figure) -> Figure:
    """Return the difference of two figures from different crowds."""
    if one.mean is None or other.mean is None:
        return Figure(None, None, 0)
    error = math.hypot(one.error or 0.0, other.error or 0.0)
    return Figure(one.mean - other.mean, error, min(one.n, other.n))


def least(figures: Iterable[Figure]) -> Figure:
    """Return the figure of the lowest mean; one without a mean is lower than any."""
    return min(figures, key=lambda found: -math.inf if found.mean is None else found.mean)


def verdict(difference: Figure) -> Verdict:
    """Judge whether a difference is above zero by more than chance."""
    if difference.mean is None:
        return "not tested"
    margin = _ERRORS * (difference.error or 0.0)
    if difference.mean > margin:
        return "holds"
    # Without randomness an exact tie is no lead.
    return "does not hold" if difference.mean < -margin or margin == 0.0 else "undecided"


def all_of(*verdicts: Verdict) -> Verdict:
    """Join verdicts: one that does not hold breaks all, then one that is open."""
    for worst in ("does not hold", "cannot be tested", "not tested", "undecided"):
        if worst in verdicts:
            return worst
    return "holds"


class Crossing(NamedTuple):
    """Where a curve reaches a level, with the ends of a 95% interval.

    Minus or plus infinity says that it does so before or beyond all places there are.
    """

    at: float
    low: float
    high: float

    def in_words(self, unit: str, first: float, last: float, scale: float = 1.0) -> str:
        """Say the place and its interval."""

        def place(x: float) -> str:
            if np.isfinite(x):
                return f"{scale * x:.1f}{unit}"
            return f"below {scale * first:g}{unit}" if x < 0 else f"beyond {scale * last:g}{unit}"

        return f"{place(self.at)} (95%: {place(self.low)} to {place(self.high)})"


def crossing(x: Sequence[float], runs: Sequence[Floats], level_runs: Floats) -> Crossing:
    """Find where the mean of ``runs``, one array a place x, reaches the mean of ``level_runs``.

    Linear between places. The interval is that of runs drawn again with replacement.
    """
    at = _reached(x, np.array([values.mean() for values in runs]), float(level_runs.mean()))
    rng = np.random.default_rng(0)
    again = []
    for _ in range(_RESAMPLES):
        curve = np.array([rng.choice(values, values.size).mean() for values in runs])
        level = float(rng.choice(level_runs, level_runs.size).mean())
        again.append(_reached(x, curve, level))
    # By rank and not by quantile, which would interpolate between infinities.
    again.sort()
    outside = round(0.025 * _RESAMPLES)
    return Crossing(at, again[outside], again[-1 - outside])


def _reached(x: Sequence[float], curve: Floats, level: float) -> float:
    """Find the first place where the curve passes the level."""
    above = curve - level
    for left in range(len(x) - 1):
        if above[left] == 0 or above[left] * above[left + 1] < 0:
            step = above[left] / (above[left] - above[left + 1])
            return float(x[left] + step * (x[left + 1] - x[left]))
    if above[-1] == 0:
        return float(x[-1])
    rising = curve[-1] > curve[0]
    return -np.inf if (above[0] > 0) == rising else np.inf
