"""Answers that are sets of labels: from what callers give to a fit."""

from __future__ import annotations

from typing import Any

from annotruth.errors import InputError
from annotruth.io.readers import load_labels, reading_stage
from annotruth.models.em import start_stage
from annotruth.models.result import Fit, is_fit
from annotruth.models.storage.folder import refuse_sets
from annotruth.sets.fit import label_names, with_separator
from annotruth.sets.model import SetModel


def fit_sets(request: Any, data: Any) -> Fit:
    """Return the fit of answers, which may have been read already, as `annotruth.fit` was asked for."""
    model, read = request.model, request.read
    if model in (None, SetModel.name):
        SetModel.check_options(request.options)
        model = SetModel(**request.options)
    if not isinstance(model, SetModel):
        name = model if isinstance(model, str) else getattr(model, "name", type(model).__name__)
        raise InputError(
            f"these answers are sets of labels, which {name} does not fit: leave out model (`--model`)"
        )
    model.check_engine()
    if read.memory is not None:
        raise InputError("sets of labels need all answers in memory: leave out memory (`--memory`)")
    if is_fit(data):
        refuse_sets()
    if getattr(data, "kind", "") != "sets":
        start_stage(request.progress, reading_stage(data))
        data = load_labels(data, read, gold=request.gold)
    return with_separator(model.fit(data, progress=request.progress), read.separator)


def set_entries(fit: Fit) -> dict[str, Any]:
    """Return the object that ``fit --json`` prints for a fit of sets."""
    return {
        "model": fit.model,
        "n_items": fit.data.n_items,
        "n_annotators": fit.data.n_annotators,
        "n_answers": fit.data.n_labels,
        "n_labels": len(label_names(fit.data)),
        "n_types": len(fit.parameters["types"]),
        "n_iter": fit.n_iter,
        "converged": fit.converged,
        "stop_reason": fit.stop_reason,
        "log_likelihood": fit.log_likelihood,
        "spammers": fit.n_spammers,
    }
