"""Fits of labels with machines among the annotators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from annotruth.analyses.machines.judges import MACHINE_MARGIN, check_machines, find_machines
from annotruth.analyses.machines.measure import measure_machines
from annotruth.analyses.machines.results import make_results
from annotruth.engines import Engine, get_engine
from annotruth.errors import InputError
from annotruth.models.base import Estimator
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.result import Fit
from annotruth.models.robust_gpm import RobustGPM
from annotruth.observations import Labels

_TIMES_NOT_USED = (
    "machines: times of labels are not used; for reliability over time, fit without machines "
    "(`--machine`)"
)


def check_machine_options(
    estimator: Estimator | None,
    engine: Engine,
    *,
    margin: float | None,
    others: Sequence[tuple[str, Any]],
) -> None:
    """Refuse what cannot be fitted with machines, before labels are read.

    ``others`` are names and values of options that machines do not go together with.
    """
    if not isinstance(estimator, RobustGPM):
        name = "auto" if estimator is None else estimator.name
        raise InputError(
            f"machines (`--machine`) need the model robust-gpm, not {name}: leave out the model "
            "(`--model`)"
        )
    check_machines(engine, margin, others)


def fit_labels_with_machines(
    estimator: RobustGPM,
    labels: Labels,
    machines: Sequence[Any],
    *,
    margin: float | None,
    progress: ProgressCallback | None = None,
) -> Fit:
    """Return the fit of people's and machines' labels, with results on machines.

    The people's labels are fitted first. By their consensus machines are measured: those that err
    together count less in the fit of all labels, which starts from the people's.
    """
    margin = MACHINE_MARGIN if margin is None else margin
    codes = find_machines(labels.annotators, machines)
    is_machine = np.zeros(labels.n_annotators, dtype=np.bool_)
    is_machine[codes] = True
    by_people = labels.subset(~is_machine[labels.annotator])
    start_stage(progress, f"fitting {estimator.name} to people's labels")
    people = estimator.without_pooling().fit(by_people, progress=progress).result_
    start_stage(progress, "comparing machines with people")
    labels = labels.with_first(people.data.items, people.data.annotators)
    measures = measure_machines(labels, people, get_engine(estimator.engine), margin)
    weight = np.append(np.ones(people.data.n_annotators), measures.weight)
    start_stage(progress, f"fitting {estimator.name} to all labels")
    fit = estimator.fit_beside(people, replace(labels, annotator_weight=weight), progress=progress)
    results = make_results(
        measures,
        labels.annotators,
        labels.scale.names,
        margin=margin,
        further_lines=[_TIMES_NOT_USED] if labels.covariates.has_times else [],
    )
    return replace(fit, further={**fit.further, "machines": results})
