"""Metrics of a fit against known truths."""

from __future__ import annotations

from annotruth import metrics
from annotruth.labels.truth import MatchedTruth
from annotruth.models.result import Fit


def compute_metrics(fit: Fit, truth: MatchedTruth, *, scores: bool) -> dict[str, float]:
    """Return the metrics of `annotruth.evaluate`, from truths that are matched to the items."""
    results: dict[str, float] = {}
    ordinal = fit.data.scale.is_ordinal
    are_labels = not (scores and ordinal) or bool((truth.codes() >= 0).all())
    if fit.label is not None and are_labels:
        true, predicted = truth.categories(), fit.label[truth.item]
        results["accuracy"] = metrics.accuracy(true, predicted)
        results["f1_macro"] = metrics.f1_macro(true, predicted)
    if fit.expectation is not None and ordinal:
        true_scores, expected = truth.scores(), fit.expectation[truth.item]
        results["plcc"] = metrics.plcc(true_scores, expected)
        results["srocc"] = metrics.srocc(true_scores, expected)
        results["rmse"] = metrics.rmse(true_scores, expected)
    return results
