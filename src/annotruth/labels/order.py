"""Whether numbers are a scale or the codes of classes, by how annotators disagree."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.labels.layout import Layout
from annotruth.labels.scale import Scale

MAX_CODES = 12
"""More numbers than these are a scale in any case."""

_BINARY_CODES = {(0, 1), (1, 2), (-1, 1)}
_MAX_LABELS = 200_000  # of the first items; these decide as well as all
_MIN_DISPUTED = 20  # items with different labels; standard errors of fewer are too uncertain
_RATIO = 0.8  # on a scale, alpha of classes is less than this share of alpha of the numbers
_LEAST_CONFUSED = 0.5  # on a scale, neighbours are confused more than this share of chance
_STANDARD_ERRORS = 2.0
_N_STEPS = 500  # of the fixed-point iteration, which converges geometrically


def judge_order(scale: Scale, layout: Layout) -> Scale:
    r"""Return numbers as a scale or as the codes of classes, whichever labels speak for, and why.

    On a scale, annotators who disagree give neighbouring labels, so labels agree better as numbers than
    as classes. Krippendorff's :math:`\alpha` is compared for both: numbers are classes if
    :math:`0.8\,\alpha_\mathrm{interval} - \alpha_\mathrm{nominal}` is below 0 by two standard errors, over
    items; or if some neighbours are confused clearly less than half as often as chance would have it,
    because classes that come in pairs, 0 with 1 and 2 with 3, agree well as numbers, too. The codes
    of two classes are 0 and 1, 1 and 2, or -1 and 1. With too few labels to tell, and with more than `MAX_CODES` numbers or fractions,
    numbers are a scale.
    """
    values = scale.values
    if not scale.is_ordinal:
        return scale
    if tuple(values) in _BINARY_CODES:
        return _as_classes(scale, "there are only two")
    if not 2 < len(scale) <= MAX_CODES or (values != np.round(values)).any():
        return scale
    counts = _label_counts(layout, len(scale))
    counts = counts[counts.sum(axis=1) > 1]
    n_disputed = np.count_nonzero(np.count_nonzero(counts, axis=1) > 1)
    if n_disputed < _MIN_DISPUTED:
        return _as_scale(scale, "labels do not tell")
    as_numbers = _alpha(counts, (values[:, None] - values) ** 2)
    as_classes = _alpha(counts, (values[:, None] != values).astype(np.float64))
    difference = _RATIO * as_numbers.value - as_classes.value
    influence = _RATIO * as_numbers.influence - as_classes.influence
    error = _STANDARD_ERRORS * np.sqrt((influence**2).sum())
    alphas = f"(alpha {as_numbers.value:.2f}) than as classes ({as_classes.value:.2f})"
    if difference < -error:
        return _as_classes(scale, f"labels do not agree clearly better as numbers {alphas}")
    apart = _rarely_confused_neighbours(counts)
    if len(apart):
        low, high = scale.names[apart[0]], scale.names[apart[0] + 1]
        return _as_classes(scale, f"{low} and {high} are hardly ever confused")
    if difference > error:
        return _as_scale(scale, f"labels agree better as numbers {alphas}")
    return _as_scale(scale, "labels do not tell")


def _as_classes(scale: Scale, why: str) -> Scale:
    reason = f"numbers taken as classes: {why}; --scale ordinal takes them as a scale"
    return replace(scale, kind="nominal", reason=reason)


def _as_scale(scale: Scale, why: str) -> Scale:
    reason = f"numbers taken as a scale: {why}; --scale nominal takes them as classes"
    return replace(scale, reason=reason)


def _label_counts(layout: Layout, n_categories: int) -> Floats:
    """Return how many labels of each category the first items have, items x categories."""
    labels_before = layout.cell_ptr[layout.item_ptr]
    n_items = max(int(np.searchsorted(labels_before, _MAX_LABELS, side="right")) - 1, 1)
    n_items = min(n_items, len(layout.item_ptr) - 1)
    cells = slice(0, int(layout.item_ptr[n_items]))
    item = np.repeat(np.arange(n_items), np.diff(layout.item_ptr[: n_items + 1]))
    counts = np.zeros((n_items, n_categories))
    counts[item, layout.cell_category[cells]] = np.diff(layout.cell_ptr[: cells.stop + 1])
    return counts


class _Alpha(NamedTuple):
    """Krippendorff's alpha, and how much each item moves it."""

    value: float
    influence: Floats


def _alpha(counts: Floats, difference: Floats) -> _Alpha:
    """Return Krippendorff's alpha for squared differences of categories, and its influence function.

    Alpha is 1 - observed / expected disagreement. The sum of squared influences is the variance of
    alpha over samples of items.
    """
    per_item = counts.sum(axis=1)
    total = counts.sum(axis=0)
    n = total.sum()
    observed = (counts @ difference * counts).sum(axis=1) / (per_item - 1.0)
    expected = total @ difference @ total / (n - 1.0)
    ratio = observed.sum() / expected
    gradient = (2.0 * difference @ total - expected) / (n - 1.0)  # of expected, per label
    return _Alpha(1.0 - ratio, (ratio * (counts @ gradient) - observed) / expected)


def _rarely_confused_neighbours(counts: Floats) -> NDArray[np.intp]:
    """Return neighbours that are confused clearly less than half as often as chance would have it.

    Chance is quasi-independence: of the pairs of different labels of an item, a pair of categories has
    a share that is a product of a factor per category.
    """
    pairs = counts.T @ (counts / (counts.sum(axis=1, keepdims=True) - 1.0))
    np.fill_diagonal(pairs, 0.0)
    margin = pairs.sum(axis=1)
    factor = np.sqrt(margin)
    for _ in range(_N_STEPS):
        others = factor.sum() - factor
        factor = np.sqrt(factor * margin / np.maximum(others, np.finfo(np.float64).tiny))
    least = _LEAST_CONFUSED * factor[1:] * factor[:-1]
    return np.flatnonzero(least - np.diag(pairs, 1) > _STANDARD_ERRORS * np.sqrt(least))
