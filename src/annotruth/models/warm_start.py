"""Warm starts: parameters of a previous fit, extended to new items and annotators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.engines import DistributedLabels
from annotruth.errors import InputError, listed
from annotruth.kernels.arrays import Floats
from annotruth.models.fits.make_fit import restricted_fit
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.encode import match_ids, to_text

OFF_BOUND = 1e-3
"""The distance that probabilities keep from 0 and 1, which EM cannot leave."""

_OBSERVED = 0.01  # weight of the observed shares, so that a category new to an item is above 0


def prepare_warm_start(
    model: str, previous: Fit, labels: Any, axes: Mapping[str, str] | None
) -> tuple[Labels, Fit]:
    """Return labels and a previous fit whose items and annotators come first among theirs.

    Labels that were appended to those of the fit are returned as they are. Of others, such as a
    later export of all labels, the items and annotators that the fit has are put first, and the
    fit is restricted to them, by the axes of its parameters (`Estimator.parameter_axes`).
    """
    if previous.kind == "distributed" or isinstance(labels, DistributedLabels):
        raise InputError("warm_start is for labels on this machine: leave it out")
    if previous.model != model:
        raise InputError(
            f"warm_start is a fit of {previous.model}, not of {model}: leave out warm_start "
            "(`--warm-start`), or choose that model"
        )
    data = previous.data
    if not data.scale.categories.equals(labels.scale.categories):
        raise InputError(
            f"warm_start is a fit of other labels: it has the categories {listed(data.scale.names)}"
            f", not {listed(labels.scale.names)}"
        )
    if _come_first(data.items, labels.items) and _come_first(data.annotators, labels.annotators):
        return labels, previous
    if labels.on_disk or axes is None:
        what = "labels on disk" if labels.on_disk else model
        raise InputError(f"{what}: no warm start where items come in another order; leave it out")
    has_item = match_ids(data.items, labels.items) >= 0
    has_annotator = match_ids(data.annotators, labels.annotators) >= 0
    kept = has_item[data.item_of_label()] & has_annotator[data.annotator]
    if not kept.any():
        raise InputError("warm_start is a fit of other labels: it has none of their items")
    common = restricted_fit(previous, data.subset(kept), axes)
    return labels.with_first(common.data.items, common.data.annotators), common


def _come_first(old: pa.Array, new: pa.Array) -> bool:
    """Return whether new ids begin with the old ones; they are text once words are among them."""
    return bool((old if old.type == new.type else to_text(old)).equals(new[: len(old)]))


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
