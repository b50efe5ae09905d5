"""Parameters of a previous fit, extended to new items and annotators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.models.distribution import Distribution

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


def resumed_shares(labels: Labels, previous: Distribution, observed: Floats) -> Floats:
    """Return one share per cell: the previous distributions, and the observed shares of new items.

    Previous distributions are mixed with a little of the observed shares: a category that nobody
    had chosen for an item before would keep a share of 0.
    """
    old = (np.arange(labels.n_items) < len(previous)) & (labels.known < 0)
    weight = np.where(old, _OBSERVED, 1.0)[labels.item_of_cell()]
    return weight * observed + (1.0 - weight) * previous.of_each_cell(labels)
