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
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from annotruth.errors import InputError, option
from annotruth.models.fits.further import FurtherKind

if TYPE_CHECKING:
    from annotruth.engines import Engine
    from annotruth.models.base import Estimator
    from annotruth.models.em import ProgressCallback
    from annotruth.models.result import Fit
    from annotruth.observations import Labels
    from annotruth.observations.options import ReadOptions


_INTERVAL = "reliability low high"


class Analysis(NamedTuple):
    """An analysis by the kind of its results, and the options of `annotruth.fit` that ask for it.

    Its module has ``check(options, estimator, engine, read)``, which refuses options before labels are
    read, and ``analyse(options, estimator, labels, read, progress)``, which returns the fit. With
    ``analyse_again(before, estimator, labels, progress)``, labels can be added to such a fit.
    """

    results: FurtherKind
    options: tuple[str, ...] = ()  # the first one asks for the analysis, the others need it
    module: str = ""

    def function(self, name: str) -> Any:
        """Return a function of the module, which is imported for it; None if it has none."""
        return getattr(importlib.import_module(f"annotruth.analyses.{self.module}"), name, None)


ANALYSES: Mapping[str, Analysis] = {
    "machines": Analysis(
        FurtherKind(
            {
                "machines": {
                    "id": "machine",
                    "count": "n_labels n_people",
                    "text": "may_replace",
                    "number": "agreement agreement_low agreement_high people_agreement accuracy "
                    "accuracy_low accuracy_high weight winning_rate advantage p_value",
                },
                "dependence": {
                    "id": "annotator other",
                    "count": "n_items",
                    "number": "agreement expected correlation low high p_value",
                    "flag": "dependent",
                },
                "machine_confusion": {
                    "id": "machine",
                    "text": "consensus label",
                    "number": "n share",
                },
            },
            "fit with the names of machines ({machines})",
        ),
        ("machines", "machine_margin"),
        "machines.fits",
    ),
    "groups": Analysis(
        FurtherKind(
            {
                "groups": {
                    "id": "item label",
                    "text": "group",
                    "count": "n_labels",
                    "number": "low high",
                },
                "group_differences": {
                    "id": "item",
                    "text": "group other",
                    "number": "p_value q_value distance",
                    "flag": "differs",
                },
                "group_summary": {
                    "text": "group",
                    "count": "n_annotators n_labels n_spammers",
                    "number": "reliability p_value q_value",
                    "flag": "differs",
                },
            },
            "fit with traits of annotators and a column of them ({annotators} and {by})",
        ),
        ("by", "annotators"),
        "groups.fit",
    ),
    "over_time": Analysis(
        FurtherKind(
            {
                "over_time": {
                    "id": "annotator from to",
                    "count": "n_labels",
                    "number": _INTERVAL,
                },
                "changes_over_time": {
                    "id": "annotator at",
                    "count": "n_before",
                    "number": "probability before after",
                },
                "crowd_over_time": {
                    "text": "by from to",
                    "count": "n_labels",
                    "number": _INTERVAL,
                },
            },
            "fit labels with a column time, order or seconds",
        )
    ),
}
"""By the kind of results. At most one of those with a module is run."""

OPTIONS: frozenset[str] = frozenset().union(*map(attrgetter("options"), ANALYSES.values()))
"""The options of all analyses."""


def further_kinds() -> dict[str, FurtherKind]:
    """Return the kinds of results of all analyses."""
    return {kind: analysis.results for kind, analysis in ANALYSES.items()}


def check_analyses(
    options: Mapping[str, Any], estimator: Estimator | None, engine: Engine, read: ReadOptions
) -> None:
    """Refuse options of analyses that cannot be used, before labels are read.

    ``options`` are those of `annotruth.fit` that were given and that not all fits take, by name.
    """
    asked = [first for each in ANALYSES.values() for first in each.options[:1] if first in options]
    if len(asked) > 1:
        raise InputError(
            f"{' and '.join(map(option, asked))} do not go together: leave out all but one of them"
        )
    for analysis in reversed([*ANALYSES.values()]):
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
    for analysis in ANALYSES.values():
        if not options.keys().isdisjoint(analysis.options[:1]):
            fit: Fit = analysis.function("analyse")(options, estimator, labels, read, progress)
            return fit
    return None


def analysis_again(fit: Fit[Any]) -> Any:
    """Return the ``analyse_again`` of the analysis of a fit, None if it has none; refuse one without it."""
    for kind in fit.further:
        analysis = ANALYSES.get(kind)
        if analysis is not None and analysis.module:
            if (again := analysis.function("analyse_again")) is not None:
                return again
            raise InputError(
                f"this fit has {kind.replace('_', ' ')}, which depend on all labels: fit all labels "
                f"again, with {option(analysis.options[0])}"
            )
    return None
