"""Items whose label is a class that nobody gave them, on real labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.models.result import Fit
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure, fit_model
from benchmarks.honesty.real import class_sets, votes

AT_ALL = Target(high=0.1)
CONFIDENT = Target(high=0.0)
CONFIDENCE = 0.5


class NobodyGave(NamedTuple):
    """The percentages of items whose label nobody gave, and of those with some confidence."""

    at_all: float
    confident: float


def nobody_gave(options: PartOptions) -> list[PartTable]:
    """Fit every set of classes."""
    rows = []
    for name, labels in class_sets(options.data()):
        found = measure_nobody_gave(fit_model(labels, options.model))
        figures = [TargetFigure(found.at_all, AT_ALL), TargetFigure(found.confident, CONFIDENT)]
        rows.append(((name, str(labels.n_categories), f"{labels.n_items:,}"), figures))
    return [
        PartTable(
            title=f"Labels that nobody gave: {options.model}",
            description=(
                f"Percentage of items whose label is a class that nobody gave them (target "
                f"{AT_ALL}), and of items that have it with a confidence above {CONFIDENCE} "
                "(target 0)."
            ),
            heads=("labels", "classes", "items"),
            columns=("nobody gave, %", "confident, %"),
            rows=rows,
        )
    ]


def measure_nobody_gave(fit: Fit) -> NobodyGave:
    """Return how many items have a label that nobody gave them, in percent."""
    assert fit.label is not None
    assert fit.distribution is not None
    given = votes(fit.data)[np.arange(fit.data.n_items), fit.label] > 0
    confident = ~given & (fit.distribution.confidence() > CONFIDENCE)
    return NobodyGave(100 * float((~given).mean()), 100 * float(confident.mean()))
