"""From labels to a model's answer, and from an answer to the paper's measures."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from annotruth import metrics
from annotruth.errors import ConvergenceWarning
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.registry import get_model
from annotruth.models.result import Fit
from annotruth.paper.base import Settings
from annotruth.paper.program import Answer, iterate

Measured = dict[str, float | None]


def fitted(labels: Labels, model: str, **options: Any) -> Fit:
    """Fit a model; that it reached its cap is recorded with the run instead of warned of.

    By EM's steps alone, as the papers have it, so that tables do not depend on what saves steps.
    """
    if "acceleration" in get_model(model)().settings():
        options = {"acceleration": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return get_model(model)(**options).fit(labels).result_


def gpm(labels: Labels, settings: Settings) -> Answer:
    """Fit GPM by the iteration and up to the cap that the settings say."""
    if settings["iteration"] == "program":
        return iterate(labels, max_iter=settings["max_iter"])
    fit = fitted(labels, "gpm", max_iter=settings["max_iter"])
    assert fit.reliability is not None
    assert fit.distribution is not None
    return Answer(fit.reliability, fit.distribution.dense(labels.n_categories), fit.converged)


def number(value: float) -> float | None:
    """Return a number that JSON has: nan is None."""
    return float(value) if math.isfinite(value) else None


def of_reliability(truth: ArrayLike, found: ArrayLike) -> Measured:
    """Compare reliabilities; F1 in each of the ways it may have been counted."""
    is_spammer = np.asarray(truth) < SPAMMER_BELOW
    called_spammer = np.asarray(found) < SPAMMER_BELOW
    return {
        "f1_spammer": number(metrics.f1_binary(is_spammer, called_spammer, True)),
        "f1_serious": number(metrics.f1_binary(is_spammer, called_spammer, False)),
        "f1_macro": number(metrics.f1_macro(is_spammer, called_spammer)),
        "f1_weighted": number(metrics.f1_weighted(is_spammer, called_spammer)),
        **of_scores(truth, found),
    }


def of_scores(truth: ArrayLike, found: ArrayLike) -> Measured:
    """Compare scores."""
    return {
        "plcc": number(metrics.plcc(truth, found)),
        "srocc": number(metrics.srocc(truth, found)),
        "rmse": number(metrics.rmse(truth, found)),
    }


def of_distributions(truth: Floats, found: Floats) -> Measured:
    """Compare items' distributions, and the difficulties (entropies) read off them."""
    from scipy.special import entr

    return {
        "rmse": number(metrics.rmse(truth, found)),
        "hellinger": number(metrics.hellinger(truth, found).mean()),
        "difficulty": number(metrics.plcc(entr(truth).sum(axis=1), entr(found).sum(axis=1))),
    }


def of_classes(truth: ArrayLike, found: ArrayLike) -> Measured:
    """Compare classes; F1 in each of the ways it may have been averaged."""
    return {
        "accuracy": number(metrics.accuracy(truth, found)),
        "f1_macro": number(metrics.f1_macro(truth, found)),
        "f1_micro": number(metrics.f1_micro(truth, found)),
        "f1_weighted": number(metrics.f1_weighted(truth, found)),
    }


def label_scores(fit: Fit) -> Floats:
    """Return the value of each item's label: the score of a model that only names a class."""
    assert fit.label is not None
    values: Floats = fit.data.scale.values[fit.label]
    return values


def spammer_share(fit: Fit) -> float:
    """Return the share of annotators found to be spammers."""
    assert fit.n_spammers is not None
    return fit.n_spammers / fit.data.n_annotators
