"""Fits of several questions, with what is known of annotators shared between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from annotruth.engines import get_engine, native_engine
from annotruth.errors import InputError, shown
from annotruth.io.readers import reading_stage
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.options import settings_of, with_flag
from annotruth.models.registry import MODELS, get_model, make_estimator
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.questions.reading import question_named_in_errors, read_questions
from annotruth.questions.result import QuestionFits
from annotruth.questions.sharing import SharedEvidence, Sharing, choose_sharing


def fit_questions(
    request: Any, fit_labels: Callable[[Any], Fit], warn: Callable[..., None]
) -> QuestionFits:
    """Fit every question, and share what is known of annotators where that predicts better.

    ``request`` is what `annotruth.fit` was asked for, which ``fit_labels`` fits for one question, and
    ``warn`` warns of the scale of a fit.
    """
    _check_request(request)
    read, progress = request.read, request.progress
    start_stage(progress, reading_stage(request.data))
    prior = request.annotator_prior
    labels = read_questions(request.data, read, gold=request.gold, annotator_prior=prior)
    of_one = replace(request, gold=None, annotator_prior=None, read=type(read)())
    fits: dict[str, Fit] = {}
    for name, of_question in labels.items():
        with question_named_in_errors(name):
            fits[name] = fit_labels(replace(of_one, data=of_question))
            if fits[name].kind == "sets":
                raise InputError(
                    "its answers are sets of labels: fit it alone (`--question NAME`), and the "
                    "others from a file without it"
                )
        warn(fits[name], read, f"question {shown(name)}: ")

    def refit(before: Fit, with_prior: Labels) -> Fit:
        options = settings_of(before)
        again = replace(of_one, data=with_prior, model=before.model, options=options)
        return replace(fit_labels(again), chosen=before.chosen)

    return share_between_questions(fits, refit, progress)


def _check_request(request: Any) -> None:
    """Refuse what all questions at once do not take."""
    given = [with_flag(name) for name in request.special]
    if request.is_of_sets:
        given.append("sets (`--sets`, `--separator`)")
    for what in given:
        raise InputError(
            f"{what} is of one question: name the question (`--question NAME`), or leave it out"
        )
    engine = getattr(request.model, "engine", request.options.get("engine", "memory"))
    if native_engine(request.data) is not None or get_engine(engine).capabilities.distributed:
        raise InputError(
            "all questions at once are fitted on this machine: leave out the engine (`--engine`), "
            "or name one question of a file of its own"
        )


def share_between_questions(
    fits: Mapping[str, Fit],
    refit: Callable[[Fit, Labels], Fit],
    progress: ProgressCallback | None = None,
) -> QuestionFits:
    """Return the fits of all questions, refitted with priors from the others where that helps.

    ``fits`` are those of each question alone; ``refit`` fits labels with the model and the options of
    a fit.
    """
    reason = _why_not(fits)
    if reason:
        return QuestionFits(fits, Sharing(0.0, reason))
    start_stage(progress, "choosing what to share between questions")
    evidence = SharedEvidence(fits)
    estimators = {name: make_estimator(fit.model, settings_of(fit)) for name, fit in fits.items()}
    sharing = choose_sharing(fits, estimators, evidence, progress)
    if sharing.strength == 0.0:
        return QuestionFits(fits, sharing)
    shared = {
        name: refit(fit, evidence.with_prior(name, fit.data, sharing.strength))
        for name, fit in fits.items()
    }
    return QuestionFits(shared, sharing)


def _why_not(fits: Mapping[str, Fit]) -> str:
    """Return why nothing can be shared; empty if it can."""
    if len(fits) < 2:
        return "one question: there is nothing to share"
    without = [
        fit.model
        for fit in fits.values()
        if fit.model not in MODELS or not get_model(fit.model).capabilities.annotator_prior
    ]
    if without:
        return (
            f"annotators' reliability is not shared between questions: {without[0]} takes no "
            "annotator prior"
        )
    people = [set(map(str, fit.data.annotators.to_pylist())) for fit in fits.values()]
    if not any(one & other for k, one in enumerate(people) for other in people[:k]):
        return "annotators' reliability is not shared: nobody answered two questions"
    return ""
