"""Warm starts: parameters of a previous fit, extended to new items and annotators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.encode import to_text
from annotruth.models.base_fit import BaseFit
from annotruth.models.result import Fit

OFF_BOUND = 1e-3
"""The distance that probabilities keep from 0 and 1, which EM cannot leave."""

_OBSERVED = 0.01  # weight of the observed shares, so that a category new to an item is above 0


def check_warm_start(model: str, previous: BaseFit, labels: LabelSummary) -> Fit:
    """Return the previous fit; raise if it is of another model or of other labels."""
    if not (isinstance(previous, Fit) and isinstance(labels, Labels)):
        raise InputError("warm_start is for labels on this machine: leave it out")
    if previous.model != model:
        raise InputError(f"warm_start is a fit of {previous.model}, not of {model}")
    data = previous.data
    same_ids = all(
        # Ids that were numbers are text once there are words among them.
        (old if old.type == new.type else to_text(old)).equals(new[: len(old)])
        for old, new in ((data.items, labels.items), (data.annotators, labels.annotators))
    )
    if not (same_ids and data.scale.categories.equals(labels.scale.categories)):
        raise InputError(
            "warm_start is a fit of other labels: its items, annotators and categories must come "
            "first in the data, in the same order"
        )
    return previous


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
