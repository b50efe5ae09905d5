"""Metrics of a fit against known truths."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from annotruth import metrics
from annotruth.errors import AnnotruthWarning, InputError, shown
from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit, RankFit
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import as_arrow
from annotruth.observations.scale import first_not_number, parse_numbers
from annotruth.observations.truth import MatchedTruth, check_matches, match_truth, read_truths
from annotruth.observations.validate import check_items_once


def evaluate_labels(
    fit: Fit, truth: Any, *, scores: bool, max_size: str | int | None, **_: object
) -> dict[str, float]:
    """Return the metrics of `annotruth.evaluate` for a fit of labels and known truths."""
    with file_named_in_errors(truth):
        matched = match_truth(load_table(truth, max_size=max_size), fit.data, role="truth")
        return compute_metrics(fit, matched, scores=scores)


def evaluate_ranking(
    fit: RankFit, truth: Any, *, max_size: str | int | None = None, **_: object
) -> dict[str, float]:
    """Return the metrics of `annotruth.evaluate` for a fit of comparisons and known grades."""
    with file_named_in_errors(truth):
        grades = match_grades(fit, load_table(truth, max_size=max_size))
    if len(np.unique(grades.grade)) < 2:
        warnings.warn(
            "no two items of the truth have different grades: concordance and Kendall's tau need some",
            AnnotruthWarning,
            stacklevel=3,
        )
    return grade_metrics(fit, grades)


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


class KnownGrades(NamedTuple):
    """Known grades of some items, higher is better."""

    item: Codes
    """The codes of the items."""
    grade: Floats


def match_grades(fit: RankFit, truth: Any) -> KnownGrades:
    """Return the known grades of the items of a fit; grades of other items are left out."""
    ids, values = read_truths(truth, role="truth")
    item = match_ids(ids, fit.data.items)
    matched = np.flatnonzero(item >= 0)
    check_matches(len(matched), ids, "truth", what="comparisons")
    check_items_once(item[matched], ids.take(as_arrow(matched)), "truth")
    values = values.take(as_arrow(matched))
    grades = parse_numbers(values)
    if grades is None:
        raise InputError(
            f"the truth has the grade {shown(first_not_number(values))}: grades must be numbers, "
            "higher is better"
        )
    return KnownGrades(item[matched], grades)


def grade_metrics(fit: RankFit, grades: KnownGrades) -> dict[str, float]:
    """Return the metrics of `annotruth.evaluate` against known grades."""
    scores = fit.scores.mean[grades.item]
    return {
        "concordance": metrics.concordance(grades.grade, scores),
        "kendall_tau": metrics.kendall_tau(grades.grade, scores),
    }
