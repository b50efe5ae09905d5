"""Fits with the paper's settings, and the paper's measures of their results."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from annotruth import metrics
from annotruth.errors import ConvergenceWarning
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.registry import get_model
from annotruth.models.result import Fit
from annotruth.observations import Labels

Measured = dict[str, float | None]


def fit_model(labels: Labels, model: str, **options: Any) -> Fit:
    """Fit a model by plain EM steps, as in the papers, so that tables do not depend on SQUAREM.

    A fit that reaches its maximum number of iterations raises no warning; ``converged`` is
    stored with the run.
    """
    if "acceleration" in get_model(model)().settings():
        options = {"acceleration": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return get_model(model)(**options).fit(labels).result_


def finite_or_none(value: float) -> float | None:
    """Return the number, or None for nan and infinity, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


def _finite(**values: float) -> Measured:
    return {name: finite_or_none(value) for name, value in values.items()}


def measure_reliability(truth: ArrayLike, predicted: ArrayLike) -> Measured:
    """Compare reliabilities, and the spammers they imply by every variant of F1."""
    is_spammer = np.asarray(truth) < SPAMMER_BELOW
    called_spammer = np.asarray(predicted) < SPAMMER_BELOW
    return {
        **_finite(
            f1_spammer=metrics.f1_binary(is_spammer, called_spammer, True),
            f1_serious=metrics.f1_binary(is_spammer, called_spammer, False),
            f1_macro=metrics.f1_macro(is_spammer, called_spammer),
            f1_weighted=metrics.f1_weighted(is_spammer, called_spammer),
        ),
        **measure_scores(truth, predicted),
    }


def measure_scores(truth: ArrayLike, predicted: ArrayLike) -> Measured:
    """Compare scores."""
    return _finite(
        plcc=metrics.plcc(truth, predicted),
        srocc=metrics.srocc(truth, predicted),
        rmse=metrics.rmse(truth, predicted),
    )


def measure_distributions(truth: Floats, predicted: Floats) -> Measured:
    """Compare the items' distributions, and their entropies as measures of difficulty."""
    return _finite(
        rmse=metrics.rmse(truth, predicted),
        hellinger=metrics.hellinger(truth, predicted).mean(),
        difficulty=metrics.plcc(entr(truth).sum(axis=1), entr(predicted).sum(axis=1)),
    )


def measure_classes(truth: ArrayLike, predicted: ArrayLike) -> Measured:
    """Compare classes by accuracy and every average of F1."""
    return _finite(
        accuracy=metrics.accuracy(truth, predicted),
        f1_macro=metrics.f1_macro(truth, predicted),
        f1_micro=metrics.f1_micro(truth, predicted),
        f1_weighted=metrics.f1_weighted(truth, predicted),
    )


def label_values(fit: Fit) -> Floats:
    """Return the value of each item's label: the score of a model that only names a class."""
    assert fit.label is not None
    values: Floats = fit.data.scale.values[fit.label]
    return values


def spammer_share(fit: Fit) -> float:
    """Return the share of annotators classified as spammers."""
    assert fit.n_spammers is not None
    return fit.n_spammers / fit.data.n_annotators
