"""When labels were given: the order in which annotators gave them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels


class Clock(NamedTuple):
    """Labels in order of time within each annotator.

    Attributes
    ----------
    kind
        What the order is by: "time" or "order".
    values
        The time or order of each label, in the layout; null where it is missing.
    order
        The places of the labels that have one, sorted by annotator and time.
    annotator
        The annotators of these labels, each once.
    begin, end
        The labels of each of them are ``order[begin:end]``.

    Examples
    --------
    >>> table = pa.table(
    ...     {"item": ["a", "b"], "annotator": ["x", "x"], "label": [1, 2], "order": [7, 3]}
    ... )
    >>> read_clock(Labels.of(table)).order.tolist()
    [1, 0]
    """

    kind: str
    values: pa.Array
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


def read_clock(labels: Labels) -> Clock | None:
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
        time, has_time = to_floats(values)
        keys = [to_floats(ranks["order"])[0]] if kind == "time" and "order" in ranks else []
        order = sort_labels(labels, has_time, *keys, time)
        later = (np.diff(labels.annotator[order]) == 0) & (np.diff(time[order]) > 0)
        if later.any():
            names, begin = np.unique(labels.annotator[order].astype(np.int64), return_index=True)
            return Clock(kind, values, order, names, begin, np.append(begin[1:], len(order)))
    return None


def sort_labels(labels: Labels, some: NDArray[np.bool_], *keys: Floats) -> Codes:
    """Return the places of some labels sorted by annotator, by the last key, .., and by row.

    Several stable sorts, the last of small integers, are faster than `numpy.lexsort`.
    """
    order = np.empty(labels.n_labels, dtype=np.int64)
    order[labels.row] = np.arange(labels.n_labels)
    order = order[some[order]]
    for key in keys:
        order = order[np.argsort(key[order], kind="stable")]
    small = np.uint16 if labels.n_annotators <= 1 << 16 else np.int64
    sorted_places: Codes = order[np.argsort(labels.annotator[order].astype(small), kind="stable")]
    return sorted_places


def is_number(values: pa.Array) -> bool:
    """Return whether a column holds numbers."""
    return bool(pa.types.is_floating(values.type) or pa.types.is_integer(values.type))


def to_floats(values: pa.Array) -> tuple[Floats, NDArray[np.bool_]]:
    """Return times as numbers, NaN where they are missing, and which are not."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    numbers = pc.fill_null(values.cast(pa.float64(), safe=False), np.nan).to_numpy()
    return numbers, np.isfinite(numbers)
