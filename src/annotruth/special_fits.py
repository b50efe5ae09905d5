"""Fits of `annotruth.fit` beyond labels of one question by people who are all alike.

They are loaded only where a classifier, groups, machines, sets of labels or several questions are given.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from annotruth.earlier_fits import settings_of
from annotruth.engines import Engine, get_engine, native_engine
from annotruth.errors import InputError, shown
from annotruth.fitting import FitRequest, fit_labels, warn_of_scale
from annotruth.io.options import ReadOptions
from annotruth.io.readers import reading_stage
from annotruth.io.reading.file_errors import file_named_in_errors
from annotruth.io.reading.tables import load_table
from annotruth.labels import Labels, LabelSummary
from annotruth.models.base import Estimator
from annotruth.models.capabilities import check_classifier
from annotruth.models.em import start_stage
from annotruth.models.em_estimator import EMEstimator
from annotruth.models.registry import AUTO, DEFAULT_MODEL
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.model import RobustGPM

if TYPE_CHECKING:
    from annotruth.questions.result import QuestionFits
    from annotruth.sets.fit import SetFit

_LOGGER = logging.getLogger(__name__)


def check_special(request: FitRequest, estimator: Estimator | None, engine: Engine) -> None:
    """Refuse a classifier, groups and machines that cannot be used, before labels are read."""
    if request.classifier is not None:
        _check_classifier(estimator, engine, request.read)
    if request.by is not None or request.annotators is not None:
        from annotruth.groups.fit import check_groups

        check_groups(
            *(estimator, engine, request.read),
            by=request.by,
            classifier=request.classifier,
            warm_start=request.warm_start,
        )
    if request.machines or request.machine_margin is not None:
        _check_machines(request, estimator, engine)


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


def _check_machines(request: FitRequest, estimator: Estimator | None, engine: Engine) -> None:
    from annotruth.machines.judges import refuse_margin_alone
    from annotruth.machines.label_fit import check_machine_options

    refuse_margin_alone(request.machines, request.machine_margin)
    others = (
        ("memory (`--memory`)", request.read.memory),
        ("a classifier (`--classifier`)", request.classifier),
        ("a warm start (`--warm-start`)", request.warm_start),
        ("groups (`--by`)", request.by),
    )
    check_machine_options(estimator, engine, margin=request.machine_margin, others=others)


def with_classifier(labels: LabelSummary, request: FitRequest) -> Labels:
    """Return labels with a classifier's probabilities, read from a file or given."""
    assert isinstance(labels, Labels)
    with file_named_in_errors(request.classifier):
        table = load_table(request.classifier, max_size=request.read.max_size)
        return labels.with_classifier(table)


def fit_groups_or_machines(request: FitRequest, estimator: Estimator, labels: LabelSummary) -> Fit:
    """Return the fit of labels with groups of annotators, or with machines among them."""
    assert isinstance(labels, Labels)
    assert isinstance(estimator, RobustGPM)
    if request.machines:
        from annotruth.machines.label_fit import fit_labels_with_machines

        return fit_labels_with_machines(
            estimator,
            labels,
            request.machines,
            margin=request.machine_margin,
            progress=request.progress,
        )
    from annotruth.groups.fit import fit_groups

    assert request.by is not None
    return fit_groups(
        *(estimator, labels),
        by=request.by,
        annotators=request.annotators,
        progress=request.progress,
        max_size=request.read.max_size,
    )


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


def fit_questions(request: FitRequest) -> QuestionFits:
    """Fit every question, and share what is known of annotators where that predicts better."""
    _check_questions(request)
    from annotruth.questions.fitting import share_between_questions
    from annotruth.questions.reading import question_named_in_errors, read_questions

    read, progress = request.read, request.progress
    start_stage(progress, reading_stage(request.data))
    labels = read_questions(
        request.data, read, gold=request.gold, annotator_prior=request.annotator_prior
    )
    of_one = FitRequest(data=None, model=request.model, options=request.options, progress=progress)
    fits: dict[str, Fit] = {}
    for name, of_question in labels.items():
        with question_named_in_errors(name):
            made = fit_labels(replace(of_one, data=of_question))
            if not isinstance(made, Fit):
                raise InputError(
                    "its answers are sets of labels: fit it alone (`--question NAME`), and the "
                    "others from a file without it"
                )
        fits[name] = made
        warn_of_scale(made, read, f"question {shown(name)}: ")

    def refit(before: Fit, with_prior: Labels) -> Fit:
        again = fit_labels(
            replace(of_one, data=with_prior, model=before.model, options=settings_of(before))
        )
        assert isinstance(again, Fit)
        return replace(again, chosen=before.chosen)

    settings = {name: settings_of(each) for name, each in fits.items()}
    return share_between_questions(fits, refit, settings, progress)


def with_flag(name: str) -> str:
    """Return the name of an option with its flag, as messages have it."""
    flag = {"machines": "machine"}.get(name, name.replace("_", "-"))
    return f"{name} (`--{flag}`)"


def _check_questions(request: FitRequest) -> None:
    """Refuse what all questions at once do not take."""
    given = [with_flag(name) for name in request.special()]
    if request.is_of_sets:
        given.append("sets (`--sets`, `--separator`)")
    for what in given:
        raise InputError(
            f"{what} is of one question: name the question (`--question NAME`), or leave it out"
        )
    model = request.model
    is_estimator = isinstance(model, EMEstimator)
    engine = model.engine if is_estimator else request.options.get("engine", "memory")
    if native_engine(request.data) is not None or get_engine(engine).capabilities.distributed:
        raise InputError(
            "all questions at once are fitted on this machine: leave out the engine (`--engine`), "
            "or name one question of a file of its own"
        )
