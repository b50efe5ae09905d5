r"""Fits with the paper's settings, and the paper's measures of their results.

`run_published_program` fits GPM as the authors' published program iterates, to trace where printed figures
come from. The program differs from the paper's equations in one point: the distribution of item e is
divided by the sum of the *previous* step, :math:`\theta_{e,n} = \sum_{s \in l_{e,n}} \mu_{e,s} /
\lambda_e`, where :math:`\lambda_e` is the sum of :math:`\mu_{e,s}` one step before, and 1 at the
start. The fixed points are the same, but the path to them is not: after the first step theta
sums to the number of serious labels of the item, so that nearly every label looks serious and
reliabilities start near 1. The program stops after 10 or 100 steps without a warning and leaves
theta as it is after the last step; here it is normalised at the end.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, xlogy

from annotruth import metrics
from annotruth.errors import ConvergenceWarning
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.registry import get_model
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.paper.experiment import Settings

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


def fit_gpm(labels: Labels, settings: Settings) -> GPMEstimate:
    """Fit GPM with the iteration and the maximum number of iterations in the settings."""
    if settings["iteration"] == "program":
        return run_published_program(labels, max_iter=settings["max_iter"])
    fit = fit_model(labels, "gpm", max_iter=settings["max_iter"])
    assert fit.reliability is not None
    assert fit.distribution is not None
    return GPMEstimate(fit.reliability, fit.distribution.dense(labels.n_categories), fit.converged)


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


class GPMEstimate(NamedTuple):
    """Reliabilities and item distributions from GPM, by either iteration."""

    reliability: Floats
    distribution: Floats
    converged: bool


def run_published_program(labels: Labels, *, max_iter: int, tol: float = 1e-4) -> GPMEstimate:
    """Fit GPM by the program's iteration until Q changes by less than ``tol``."""
    cell = labels.cell_of_label()
    item, category = labels.item_of_cell()[cell], labels.cell_category[cell]
    annotator = labels.annotator
    irregular = 1.0 / labels.n_categories

    eps = np.full(labels.n_annotators, 0.5)
    theta = labels.observed_shares()
    divisor = np.ones(labels.n_items)
    previous_q, converged = 0.0, False
    for _ in range(max_iter):
        serious = eps[annotator] * theta[item, category]
        mu = serious / (serious + (1.0 - eps[annotator]) * irregular)
        q = float(
            np.sum(xlogy(mu, serious) + xlogy(1.0 - mu, (1.0 - eps[annotator]) * irregular))
            - np.sum(divisor * (theta.sum(axis=1) - 1.0))
        )
        if converged := abs(q - previous_q) < tol:
            break
        previous_q = q
        eps = np.bincount(annotator, mu, labels.n_annotators) / labels.labels_per_annotator
        sums = np.bincount(item * labels.n_categories + category, mu, theta.size)
        sums = sums.reshape(theta.shape)
        theta, divisor = sums / divisor[:, np.newaxis], sums.sum(axis=1)
    return GPMEstimate(eps, theta / theta.sum(axis=1, keepdims=True), converged)
