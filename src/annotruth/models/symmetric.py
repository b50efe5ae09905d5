"""The mean of fits of symmetric labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from annotruth.models.distribution import Distribution
from annotruth.models.result import Fit

_FIELDS = (
    *("reliability", "low", "high", "annotator_columns", "parameters"),
    *("distribution", "other_distribution", "score", "p_serious", "item_columns"),
)


def mean_fit(images: Sequence[Fit]) -> Fit:
    """Return the mean of fits that differ by a symmetry of the labels.

    If exchanging some items, annotators and categories gives the same labels, exchanging their
    results gives a fit that is as good. Where rounding, amplified by EM, has chosen between the two,
    the mean is undecided, as it is without rounding. What is no floating-point number is that of the
    first.
    """
    n = images[0].data.n_categories
    means: dict[str, Any] = {
        name: _mean([getattr(image, name) for image in images], n) for name in _FIELDS
    }
    return replace(images[0], **means)


def _mean(values: Sequence[Any], n_categories: int) -> Any:
    first = values[0]
    if isinstance(first, Mapping):
        return {name: _mean([each[name] for each in values], n_categories) for name in first}
    if isinstance(first, Distribution):
        dense = [each.dense(n_categories) for each in values]
        return Distribution.of_dense(np.mean(dense, axis=0))
    is_float = isinstance(first, np.ndarray) and first.dtype.kind == "f"
    return np.mean(values, axis=0) if is_float else first
