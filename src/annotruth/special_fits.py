"""Fits of `annotruth.fit` beyond labels of one question by people who are all alike.

They are loaded only where a classifier, groups, machines, sets of labels or several questions are given.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from annotruth.analyses import check_analyses, fit_with_analysis
from annotruth.engines import Engine
from annotruth.errors import InputError
from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.models.base import Estimator
from annotruth.models.capabilities import check_classifier
from annotruth.models.registry import AUTO, DEFAULT_MODEL
from annotruth.models.result import Fit
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.options import ReadOptions

if TYPE_CHECKING:
    from annotruth.fitting import FitRequest
    from annotruth.sets.fit import SetFit

_LOGGER = logging.getLogger(__name__)


def check_special(request: FitRequest, estimator: Estimator | None, engine: Engine) -> None:
    """Refuse a classifier, groups and machines that cannot be used, before labels are read."""
    if request.classifier is not None:
        _check_classifier(estimator, engine, request.read)
    check_analyses(request.special(), estimator, engine, request.read)


def _check_classifier(estimator: Estimator | None, engine: Engine, read: ReadOptions) -> None:
    if estimator is None:
        raise InputError(
            f"{AUTO} compares models without a classifier: name one that takes it (`--model "
            f"{DEFAULT_MODEL}`), or leave out classifier (`--classifier`)"
        )
    check_classifier(estimator, engine)
    if read.memory is not None:
        raise InputError(
            "a classifier (`--classifier`) needs the labels in memory: leave out memory "
            "(`--memory`), or the classifier"
        )


def with_classifier(labels: LabelSummary, request: FitRequest) -> Labels:
    """Return labels with a classifier's probabilities, read from a file or given."""
    assert isinstance(labels, Labels)
    with file_named_in_errors(request.classifier):
        table = load_table(request.classifier, max_size=request.read.max_size)
        return labels.with_classifier(table)


def fit_groups_or_machines(request: FitRequest, estimator: Estimator, labels: LabelSummary) -> Fit:
    """Return the fit of labels with groups of annotators, or with machines among them."""
    assert isinstance(labels, Labels)
    fit = fit_with_analysis(request.special(), estimator, labels, request.read, request.progress)
    assert fit is not None
    return fit


def fit_sets(request: FitRequest, data: Any) -> SetFit:
    """Return the fit of answers that are sets of labels."""
    from annotruth.sets import fitting

    prior = request.annotator_prior
    refused = {with_flag(name): value for name, value in request.special().items()}
    if prior is not None and not isinstance(
        data, Labels
    ):  # else it was refused when they were read
        refused[with_flag("annotator_prior")] = prior
    found = fitting.fit_sets(
        *(data, request.model, dict(request.options)),
        gold=request.gold,
        refused=refused,
        read=request.read,
        progress=request.progress,
    )
    _LOGGER.info("%s after %d iterations: %s", found.model, found.n_iter, found.stop_reason)
    return found


def with_flag(name: str) -> str:
    """Return the name of an option with its flag, as messages have it."""
    flag = {"machines": "machine"}.get(name, name.replace("_", "-"))
    return f"{name} (`--{flag}`)"
