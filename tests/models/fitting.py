"""Fits that may end before they converge."""

import warnings

import annotruth as at
from annotruth.models.registry import get_model


def estimator(name, data, gold=None, **options):
    """Fit a model without a warning at the maximum number of iterations; return the estimator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        return get_model(name)(**options).fit(data, gold=gold)


def fitted(name, data, gold=None, **options):
    """Return the fit of such a model."""
    return estimator(name, data, gold, **options).result_
