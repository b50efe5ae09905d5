"""When labels were given: the order in which annotators gave them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels


class SortedLabels(NamedTuple):
    """Labels sorted by annotator, and within one by something else."""

    order: Codes  # the places of the labels in the layout
    annotator: Codes  # the annotators of these labels, each once
    # the labels of each of them are ``order[begin:end]``
    begin: Codes
    end: Codes

    def first(self) -> NDArray[np.bool_]:
        """Return which labels are the first of their annotator."""
        is_first = np.zeros(len(self.order), dtype=np.bool_)
        is_first[self.begin] = True
        return is_first


class Clock(NamedTuple):
    """Labels in order of time within each annotator."""

    kind: str  # what the order is by: "time" or "order"
    values: pa.Array  # the time or order of each label, in the layout; null where it is missing
    numbers: Floats  # the same as numbers
    # the labels that have one, as in `SortedLabels`
    order: Codes
    annotator: Codes
    begin: Codes
    end: Codes

    @property
    def is_date(self) -> bool:
        """Whether labels have dates."""
        return bool(pa.types.is_timestamp(self.values.type))

    def at(self, places: Codes) -> pa.Array:
        """Return the times of the sorted labels at some places."""
        return self.values.take(pa.array(self.order[places]))


def read_clock(session: Session, labels: Labels) -> Clock | None:
    """Return the order of the labels by their time, else by their order.

    None if labels have neither, or no annotator has labels of different times. Labels of the same
    time are in the order of the column ``order``, and then of the input.
    """
    ranks = {}
    for kind in ("time", "order"):
        values = labels.covariates.labels.get(kind)
        if values is not None and (pa.types.is_timestamp(values.type) or is_number(values)):
            ranks[kind] = values
    for kind, values in ranks.items():
        numbers, has_time = to_floats(values)
        found = sort_labels(session, labels, has_time, numbers)
        steps = np.diff(numbers[found.order])[~found.first()[1:]]
        if not (steps > 0.0).any():
            continue
        if kind == "time" and "order" in ranks and (steps == 0.0).any():
            among_equal = np.nan_to_num(to_floats(ranks["order"])[0], nan=np.inf)
            found = sort_labels(session, labels, has_time, among_equal, numbers)
        return Clock(kind, values, numbers, *found)
    return None


def sort_labels(
    session: Session, labels: Labels, some: NDArray[np.bool_], *keys: Floats
) -> SortedLabels:
    """Return some labels sorted by annotator, by the last key, .., and by row."""
    order = np.empty(labels.n_labels, dtype=np.int64)
    order[labels.row] = np.arange(labels.n_labels)
    if not some.all():
        order = order[some[order]]
    annotator = labels.annotator[order]
    # The stable sort of small integers is many times as fast.
    small = np.uint16 if labels.n_annotators <= 1 << 16 else np.int64
    order = order[np.argsort(annotator.astype(small), kind="stable")]
    n_labels = np.bincount(annotator, minlength=labels.n_annotators)
    names = np.flatnonzero(n_labels)
    end = np.cumsum(n_labels[names])
    begin = end - n_labels[names]
    for key in keys:
        session.run_over_annotators("over_time.sort_within", len(names), begin, end, key, order)
    return SortedLabels(order, names, begin, end)


def is_number(values: pa.Array) -> bool:
    """Return whether a column holds numbers."""
    return bool(pa.types.is_floating(values.type) or pa.types.is_integer(values.type))


def to_floats(values: pa.Array) -> tuple[Floats, NDArray[np.bool_]]:
    """Return times as numbers, NaN where they are missing, and which are not."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    numbers = pc.fill_null(values.cast(pa.float64(), safe=False), np.nan).to_numpy()
    return numbers, np.isfinite(numbers)
