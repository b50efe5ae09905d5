"""What is known of annotators from earlier work, matched to the labels by annotator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats
from annotruth.labels import validate
from annotruth.labels.encode import match
from annotruth.labels.formatting import listed, shown
from annotruth.labels.frames import column_of, to_arrow
from annotruth.labels.scale import numbers_behind, plain

if TYPE_CHECKING:
    from annotruth.labels.table import Labels

_MOST = 100.0  # labels that a record counts for: people change
_ENDS = ("low", "high")
_Z_95 = 1.96


def match_record(data: Any, labels: Labels) -> Floats:
    r"""Turn a record into labels seen to be serious and not, annotators x 2.

    ``data`` is a frame with the columns ``annotator`` and ``reliability``, such as the annotators
    of an earlier fit, or a mapping of annotator to reliability. A reliability r counts as much as
    r (1 - r) / sd^2 labels where ``low`` and ``high``, its 95% interval, say how sure it is
    (sd = (high - low) / 3.92), else as ``n_labels``, else as 10; never more than 100. Annotators
    without a record keep zeros; records of people who gave no label here are left out.
    """
    table = _record_table(data)
    names = table.column_names
    found = validate.find_columns(names, ("annotator",))
    if "reliability" not in names:
        raise InputError(
            f"the record has no column 'reliability' (found: {listed(names)}): give the "
            "annotators of an earlier fit"
        )
    ids = plain(table.column(found["annotator"])).combine_chunks()
    reliability = _column(table, "reliability")
    outside = np.flatnonzero(~((reliability >= 0.0) & (reliability <= 1.0)))
    if len(outside):
        raise InputError(
            f"the record gives annotator {shown(ids[int(outside[0])].as_py())} a reliability of "
            f"{reliability[outside[0]]:g}: it must be from 0 to 1"
        )
    place = match(ids, labels.annotators)
    here = np.flatnonzero(place >= 0)
    if len(np.unique(place[here])) < len(here):
        raise InputError("the record names an annotator twice: keep one row an annotator")
    if len(here) == 0:
        raise InputError(
            "the record names none of the annotators of these labels: check that the ids match"
        )
    weight = np.minimum(_weights(table, reliability), _MOST)
    counts = np.zeros((labels.n_annotators, 2))
    counts[place[here], 0] = (weight * reliability)[here]
    counts[place[here], 1] = (weight * (1.0 - reliability))[here]
    return counts


def _weights(table: pa.Table, reliability: Floats) -> Floats:
    """Say how many labels each reliability stands for."""
    if all(name in table.column_names for name in _ENDS):
        low, high = (_column(table, name) for name in _ENDS)
        deviation = np.maximum((high - low) / (2.0 * _Z_95), 1e-3)
        # At the ends of the range no label need be wrong; count them as if one in ten were.
        inner = np.clip(reliability, 0.1, 0.9)
        weights: Floats = inner * (1.0 - inner) / deviation**2
        return weights
    if "n_labels" in table.column_names:
        return np.maximum(_column(table, "n_labels"), 0.0)
    return np.full(len(reliability), 10.0)


def _record_table(data: Any) -> pa.Table:
    if isinstance(data, Mapping):
        return pa.table(
            {
                "annotator": column_of("annotator", list(data)),
                "reliability": column_of("reliability", list(data.values())),
            }
        )
    return to_arrow(data)[0]


def _column(table: pa.Table, name: str) -> Floats:
    column = plain(table.column(name))
    numbers = None if validate.missing(column).any() else numbers_behind(column.combine_chunks())
    if numbers is None:
        raise InputError(f"column {name!r} of the record must hold a number in every row")
    return numbers
