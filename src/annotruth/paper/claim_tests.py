"""Tests of the paper's claims: differences between models, verdicts, crossing points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.paper.experiment import Claim, ExperimentRun, Verdict
from annotruth.paper.tables import MeanWithError, mean_with_error

# A difference of fewer standard errors than this may be chance.
_N_ERRORS = 2.0
_N_RESAMPLES = 1000


def paired_difference(
    runs: Sequence[ExperimentRun], measure: str, model: str, other: str
) -> MeanWithError:
    """Return the mean difference between two models, run by run on the same labels."""
    pairs = [
        (run.results[model].get(measure), run.results[other].get(measure))
        for run in runs
        if {model, other} <= run.results.keys()
    ]
    return mean_with_error([a - b for a, b in pairs if a is not None and b is not None])


def rmse_leads(
    runs: Sequence[ExperimentRun], models: Iterable[str], others: Sequence[str]
) -> dict[tuple[str, str], MeanWithError]:
    """Return, for each (model, other), by how much the model's RMSE is lower."""
    return {
        (model, other): negate(paired_difference(runs, "rmse", model, other))
        for model in models
        for other in others
    }


def negate(difference: MeanWithError) -> MeanWithError:
    """Return the difference with the opposite sign, for measures where lower is better."""
    mean = None if difference.mean is None else -difference.mean
    return MeanWithError(mean, difference.error, difference.n)


def excess(value: MeanWithError, bound: float) -> MeanWithError:
    """Return by how much a mean exceeds a bound."""
    mean = None if value.mean is None else value.mean - bound
    return MeanWithError(mean, value.error, value.n)


def difference(one: MeanWithError, other: MeanWithError) -> MeanWithError:
    """Return the difference of two means from different crowds."""
    if one.mean is None or other.mean is None:
        return MeanWithError(None, None, 0)
    error = math.hypot(one.error or 0.0, other.error or 0.0)
    return MeanWithError(one.mean - other.mean, error, min(one.n, other.n))


def smallest(means: Iterable[MeanWithError]) -> MeanWithError:
    """Return the smallest; one without a mean is smaller than any."""
    return min(means, key=lambda value: -math.inf if value.mean is None else value.mean)


def verdict_of(difference: MeanWithError) -> Verdict:
    """Return whether a difference is above zero by more than chance."""
    if difference.mean is None:
        return "not tested"
    margin = _N_ERRORS * (difference.error or 0.0)
    if difference.mean > margin:
        return "holds"
    # Without randomness an exact tie is no lead.
    return "does not hold" if difference.mean < -margin or margin == 0.0 else "undecided"


def combine_verdicts(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on several statements together: the worst of theirs."""
    present = set(verdicts)
    for worst in ("does not hold", "cannot be tested", "not tested", "undecided"):
        if worst in present:
            return worst
    return "holds"


def lead_claim(
    statement: str,
    source: str,
    measure: str,
    leads: Mapping[tuple[str, str], MeanWithError],
    names: Mapping[str, str],
) -> Claim:
    """Return the claim that every lead of a model over another is above zero."""
    listed = ", ".join(
        f"{names[model]} over {names[other]} {lead}" for (model, other), lead in leads.items()
    )
    verdict = combine_verdicts(map(verdict_of, leads.values()))
    return Claim(statement, source, f"lead in {measure}: {listed}", verdict)


class Crossing(NamedTuple):
    """Where a curve reaches a level, with a 95% interval.

    Minus or plus infinity: before the first or beyond the last point of the curve.
    """

    x: float
    low: float
    high: float

    def describe(self, unit: str, first: float, last: float, scale: float = 1.0) -> str:
        """Return the point and its interval as text."""

        def point(x: float) -> str:
            if np.isfinite(x):
                return f"{scale * x:.1f}{unit}"
            return f"below {scale * first:g}{unit}" if x < 0 else f"beyond {scale * last:g}{unit}"

        return f"{point(self.x)} (95%: {point(self.low)} to {point(self.high)})"


def find_crossing(x: Sequence[float], curve: Sequence[Floats], level: Floats) -> Crossing:
    """Find where the mean of ``curve``, one array of runs per point x, reaches that of ``level``.

    Linear between points. The interval is a bootstrap over the runs.
    """
    crossing = _crossing_point(x, np.array([values.mean() for values in curve]), level.mean())
    rng = np.random.default_rng(0)
    resampled = []
    for _ in range(_N_RESAMPLES):
        means = np.array([rng.choice(values, values.size).mean() for values in curve])
        resampled.append(_crossing_point(x, means, rng.choice(level, level.size).mean()))
    # By rank and not by quantile, which would interpolate between infinities.
    resampled.sort()
    n_outside = round(0.025 * _N_RESAMPLES)
    return Crossing(crossing, resampled[n_outside], resampled[-1 - n_outside])


def _crossing_point(x: Sequence[float], curve: Floats, level: float) -> float:
    """Return the first point where the curve passes the level."""
    above = curve - level
    for left in range(len(x) - 1):
        if above[left] == 0 or above[left] * above[left + 1] < 0:
            step = above[left] / (above[left] - above[left + 1])
            return float(x[left] + step * (x[left + 1] - x[left]))
    if above[-1] == 0:
        return float(x[-1])
    is_rising = curve[-1] > curve[0]
    return -np.inf if (above[0] > 0) == is_rising else np.inf
