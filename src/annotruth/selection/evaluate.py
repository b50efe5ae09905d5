"""How close a fit comes to known truths."""

from __future__ import annotations

from annotruth import metrics
from annotruth.labels.truth import Truth
from annotruth.models.result import Fit


def measured(fit: Fit, answers: Truth, *, scores: bool) -> dict[str, float]:
    """Do what `evaluate` does, with truths that are matched to the items already."""
    found: dict[str, float] = {}
    ordinal = fit.data.scale.is_ordinal
    are_labels = not (scores and ordinal) or bool((answers.codes() >= 0).all())
    if fit.label is not None and are_labels:
        true, predicted = answers.categories(), fit.label[answers.item]
        found["accuracy"] = metrics.accuracy(true, predicted)
        found["f1_macro"] = metrics.f1_macro(true, predicted)
    if fit.expectation is not None and ordinal:
        scored, expected = answers.scores(), fit.expectation[answers.item]
        found["plcc"] = metrics.plcc(scored, expected)
        found["srocc"] = metrics.srocc(scored, expected)
        found["rmse"] = metrics.rmse(scored, expected)
    return found
