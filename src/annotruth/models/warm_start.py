"""Parameters of a previous fit, extended to new items and annotators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.models.result import Fit

OFF_BOUND = 1e-3
"""How far probabilities are moved off 0 and 1, which EM cannot leave whatever the new labels are."""

_OBSERVED = 0.01  # weight of the observed shares, so that a category new to an item is above 0


def with_new_rows(previous: NDArray[Any], start: NDArray[Any]) -> NDArray[Any]:
    """Return ``start`` with its first rows replaced by those of a previous fit."""
    extended = np.array(start)
    extended[: len(previous)] = previous
    return extended


def off_bounds(probability: Floats) -> Floats:
    """Return probabilities at least `OFF_BOUND` away from 0 and 1."""
    inside: Floats = np.clip(probability, OFF_BOUND, 1.0 - OFF_BOUND)
    return inside


def resumed_shares(labels: Labels, previous: Fit, observed: Floats) -> Floats:
    """Return one share per cell: the previous distributions, or the observed shares.

    Items that are new, or that have new labels or a known truth, start at the observed shares:
    a previous distribution would hold its item where few labels had put it. The others are mixed
    with a little of the observed shares, because a share of 0 would stay 0.
    """
    assert previous.distribution is not None
    old = previous.data
    resumed = np.zeros(labels.n_items, dtype=bool)
    resumed[: old.n_items] = labels.labels_per_item[: old.n_items] == old.labels_per_item
    resumed &= labels.known < 0
    weight = np.where(resumed, _OBSERVED, 1.0)[labels.item_of_cell()]
    return weight * observed + (1.0 - weight) * previous.distribution.of_each_cell(labels)
