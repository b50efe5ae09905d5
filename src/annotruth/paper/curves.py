"""What Exp1-b and Exp1-c share: GPM's distributions against the observed ones, over an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.paper.base import Chart, Measure, Record, Results, Settings
from annotruth.paper.crowds import crowd
from annotruth.paper.findings import difference
from annotruth.paper.measuring import gpm, of_distributions
from annotruth.paper.tables import Figure, figure, values_of

MODELS = {"gpm": "GPM", "observed": "observed shares"}
PANELS = {"rmse": "RMSE", "hellinger": "Hellinger distance"}


def measures(settings: Settings) -> list[Measure]:
    """Return the two panels of the figure, and the difficulty read off the distributions."""
    return [
        *(Measure(key, name, "lower") for key, name in PANELS.items()),
        Measure("difficulty", "PLCC of entropy", "higher"),
    ]


def compared(settings: Settings, rng: np.random.Generator, **condition: Any) -> Results:
    """Compare GPM's and the observed distributions with the true ones, in one mixed crowd."""
    made = crowd(settings, rng, behavior="mixed", **condition)
    assert made.distribution is not None
    answer = gpm(made.labels, settings)
    found = of_distributions(made.distribution, answer.shares)
    return {
        "gpm": {**found, "converged": float(answer.converged)},
        "observed": of_distributions(made.distribution, made.labels.observed_shares()),
    }


def values_at(
    records: Sequence[Record], model: str, measure: str, axis: str, x: float
) -> NDArray[np.float64]:
    """Return the values of a measure, one a run, at one place of the axis."""
    values = values_of(records, model, measure, lambda condition: condition[axis] == x)
    return np.array([value for value in values if value is not None])


def change(later: NDArray[np.float64], earlier: NDArray[np.float64]) -> Figure:
    """Return the difference of the means at two places, whose crowds are not the same."""
    after, before = (figure(values.tolist()) for values in (later, earlier))
    return difference(after, before)


def chart(
    records: Sequence[Record], axis: str, places: Sequence[float], words: dict[str, Any]
) -> Chart:
    """Draw both measures over the axis, with bands of two standard errors."""
    lines = []
    for measure, panel in PANELS.items():
        for model, name in MODELS.items():
            for x in places:
                point = figure(values_at(records, model, measure, axis, x).tolist())
                margin = 2 * (point.error or 0.0)
                assert point.mean is not None
                lines.append(
                    {
                        "panel": panel,
                        "model": name,
                        "x": x,
                        "mean": point.mean,
                        "low": point.mean - margin,
                        "high": point.mean + margin,
                    }
                )
    return Chart(
        "two-panels",
        lines,
        {**words, "y_title": "Distance from the truth (lower is better)", "places": list(places)},
    )
