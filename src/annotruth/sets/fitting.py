"""Answers that are sets of labels: from what callers give to a fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from annotruth.errors import InputError
from annotruth.io.readers import load_labels, reading_stage
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.result import is_fit
from annotruth.models.storage import refuse_sets
from annotruth.observations import Labels
from annotruth.observations.options import ReadOptions
from annotruth.sets.fit import SetFit
from annotruth.sets.model import SetModel


def fit_sets(
    data: Any,
    model: object,
    options: Mapping[str, Any],
    *,
    gold: Any,
    refused: Mapping[str, Any],
    read: ReadOptions,
    progress: ProgressCallback | None,
) -> SetFit:
    """Fit the model of sets to answers, which may have been read already.

    ``options`` are the model's; ``refused`` are options of `annotruth.fit` that are not for sets, by
    name with flag.
    """
    estimator = _estimator(model, options)
    estimator.check_engine()
    for name, value in refused.items():
        if value is not None:
            raise InputError(f"{name} is not for sets of labels: leave it out")
    if read.memory is not None:
        raise InputError("sets of labels need all answers in memory: leave out memory (`--memory`)")
    if is_fit(data):
        refuse_sets()
    if not (isinstance(data, Labels) and data.scale.has_sets):
        start_stage(progress, reading_stage(data))
        data = load_labels(data, read, gold=gold)
    return estimator.fit(data, progress=progress).with_separator(read.separator)


def _estimator(model: object, options: Mapping[str, Any]) -> SetModel:
    if isinstance(model, SetModel):
        return model
    if model not in (None, SetModel.name):
        name = model if isinstance(model, str) else getattr(model, "name", type(model).__name__)
        raise InputError(
            f"these answers are sets of labels, which {name} does not fit: leave out model (`--model`)"
        )
    SetModel.check_options(options)
    return SetModel(**options)


def set_entries(fit: SetFit) -> dict[str, Any]:
    """Return the object that ``fit --json`` prints for a fit of sets."""
    return {
        "model": fit.model,
        "n_items": fit.data.n_items,
        "n_annotators": fit.data.n_annotators,
        "n_answers": fit.data.n_labels,
        "n_labels": fit.n_labels,
        "n_types": len(fit.parameters["types"]),
        "n_iter": fit.n_iter,
        "converged": fit.converged,
        "stop_reason": fit.stop_reason,
        "log_likelihood": fit.log_likelihood,
        "spammers": fit.n_spammers,
    }
