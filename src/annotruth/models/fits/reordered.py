"""A fit of the same labels in another order, of some of them, and the mean of such fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Distribution
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import as_arrow
from annotruth.observations.layout import CanonicalOrder

_FIELDS = (
    *("reliability", "low", "high", "annotator_columns", "parameters"),
    *("distribution", "other_distribution", "score", "p_serious", "item_columns"),
)


def fit_of_original(
    fit: Fit, labels: Labels, order: CanonicalOrder, position: Codes, axes: Mapping[str, str]
) -> Fit:
    """Return a fit of reordered labels as one of the original ``labels``.

    ``order`` and ``position`` are those of `Labels.reordered`, ``axes`` those of the parameters
    (`Estimator.parameter_axes`).
    """
    item, annotator, category = map(np.argsort, order)
    p_serious = None if fit.p_serious is None else fit.p_serious[position]
    return _rearranged(fit, labels, item, annotator, category, axes, p_serious)


def restricted_fit(fit: Fit, labels: Labels, axes: Mapping[str, str]) -> Fit:
    """Return a fit for some of its labels, without results per label, to start another fit from."""
    item = match_ids(labels.items, fit.data.items)
    annotator = match_ids(labels.annotators, fit.data.annotators)
    category = np.arange(labels.n_categories)
    return _rearranged(fit, labels, item, annotator, category, axes, p_serious=None)


def _rearranged(
    fit: Fit,
    labels: Labels,
    item: Codes,
    annotator: Codes,
    category: Codes,
    axes: Mapping[str, str],
    p_serious: Floats | None,
) -> Fit:
    """Return the results for the items, annotators and categories with the given codes."""

    def per(places: Codes, values: Any) -> Any:
        if values is None:
            return None
        return values.take(as_arrow(places)) if isinstance(values, pa.Array) else values[places]

    def distribution(of: Distribution | None) -> Distribution | None:
        return None if of is None else of.take(item).with_codes(np.argsort(category))

    return replace(
        fit,
        data=labels,
        **{name: per(annotator, getattr(fit, name)) for name in ("reliability", "low", "high")},
        behavior=None if fit.behavior is None else [fit.behavior[s] for s in annotator],
        annotator_columns={
            name: per(annotator, column) for name, column in fit.annotator_columns.items()
        },
        parameters={
            name: _reordered(values, axes[name], annotator, category)
            for name, values in fit.parameters.items()
        },
        distribution=distribution(fit.distribution),
        other_distribution=distribution(fit.other_distribution),
        score=per(item, fit.score),
        p_serious=p_serious,
        item_columns={name: per(item, column) for name, column in fit.item_columns.items()},
    )


def _reordered(values: NDArray[Any], axes: str, annotator: Codes, category: Codes) -> NDArray[Any]:
    """Return a parameter in another order of annotators and categories."""
    axes, _, code = axes.partition(" -> ")
    for axis, name in enumerate(axes.split()):
        n = values.shape[axis]
        if name == "annotator":
            values = values.take(annotator, axis=axis)
        elif name == "category":  # what follows the last category stays, such as a total
            places = np.append(category, np.arange(len(category), n))
            values = values.take(places, axis=axis)
        elif name == "state":
            states = np.arange(n).reshape(len(category), -1)
            values = values.take(states[category].ravel(), axis=axis)
    return np.where(values < 0, values, np.argsort(category)[values]) if code else values


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
