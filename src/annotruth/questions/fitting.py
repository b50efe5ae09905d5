"""Fits of several questions, with what is known of annotators shared between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.registry import MODELS, get_model, make_estimator
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.questions.result import QuestionFits
from annotruth.questions.sharing import SharedEvidence, Sharing, choose_sharing


def share_between_questions(
    fits: Mapping[str, Fit],
    refit: Callable[[Fit, Labels], Fit],
    settings: Mapping[str, Mapping[str, Any]],
    progress: ProgressCallback | None = None,
) -> QuestionFits:
    """Return the fits of all questions, refitted with priors from the others where that helps.

    Parameters
    ----------
    fits
        The fit of each question alone.
    refit
        Fits labels with the model and the options of a fit.
    settings
        The options of each fit's model.
    progress
        Called after every iteration.
    """
    reason = _why_not(fits)
    if reason:
        return QuestionFits(fits, Sharing(0.0, reason))
    start_stage(progress, "choosing what to share between questions")
    evidence = SharedEvidence(fits)
    estimators = {
        name: make_estimator(fit.model, dict(settings[name])) for name, fit in fits.items()
    }
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
