"""Analyses: functions of a fit that return tables, facts and lines, or advice.

- `advice`: `advise(fit)`, `plan(fit)`, `changes(before, after)`; `advice.pairs` for comparisons.
- `over_time`: `add_over_time(fit, estimator)`, of labels with a time, an order or seconds.
- `machines` and `groups`, which `ANALYSES` names: they need further fits, of a part of the labels or with
  groups, so that `annotruth.fit` runs them for options of theirs.

What the last three find is in ``fit.further``: a fit with analyses is still a fit.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotruth.engines import Engine
    from annotruth.models.base import Estimator
    from annotruth.models.em import ProgressCallback
    from annotruth.models.result import Fit
    from annotruth.observations import Labels
    from annotruth.observations.options import ReadOptions


@dataclass(frozen=True)
class Analysis:
    """An analysis that `annotruth.fit` runs for options of its own.

    Its module has ``check(options, estimator, engine, read)``, which refuses options before labels are
    read, and ``analyse(options, estimator, labels, read, progress)``, which returns the fit.
    """

    options: tuple[str, ...]  # the first one asks for the analysis, the others need it
    module: str

    def function(self, name: str) -> Any:
        """Return a function of the module, which is imported for it."""
        return getattr(importlib.import_module(f"annotruth.analyses.{self.module}"), name)


ANALYSES = (
    Analysis(("machines", "machine_margin"), "machines.fits"),
    Analysis(("by", "annotators"), "groups.fit"),
)
"""The first whose option is given is run."""


def check_analyses(
    options: Mapping[str, Any], estimator: Estimator | None, engine: Engine, read: ReadOptions
) -> None:
    """Refuse options of analyses that cannot be used, before labels are read.

    ``options`` are those of `annotruth.fit` that were given and that not all fits take, by name.
    """
    for analysis in reversed(ANALYSES):
        if not options.keys().isdisjoint(analysis.options):
            analysis.function("check")(options, estimator, engine, read)


def fit_with_analysis(
    options: Mapping[str, Any],
    estimator: Estimator,
    labels: Labels,
    read: ReadOptions,
    progress: ProgressCallback | None,
) -> Fit | None:
    """Return the fit of labels by the analysis that is asked for; None if there is none."""
    for analysis in ANALYSES:
        if analysis.options[0] in options:
            fit: Fit = analysis.function("analyse")(options, estimator, labels, read, progress)
            return fit
    return None
