"""Fits that may end before they converge, and labels that are few enough to fit by hand."""

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


NUMBERS = [
    *(("a", "ann", 1), ("a", "bob", 1), ("a", "cy", 2)),
    *(("b", "ann", 2), ("b", "bob", 2), ("b", "cy", 1)),
    *(("c", "ann", 3), ("c", "bob", 1)),
]
"""Labels that are few enough to fit by hand."""

WORDS = [
    *(("a", "x", "cat"), ("a", "y", "cat"), ("a", "z", "dog")),
    *(("b", "x", "dog"), ("b", "y", "owl")),
    *(("c", "x", "owl"), ("c", "z", "owl")),
]
CLASSES = ("cat", "dog", "owl")
