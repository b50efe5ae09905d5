"""What is known about annotators from earlier work, matched to the labels by annotator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError, listed, shown
from annotruth.kernels.arrays import Floats
from annotruth.labels import validate
from annotruth.labels.encode import match_ids
from annotruth.labels.frames import find_columns, make_column, to_arrow
from annotruth.labels.scale import parse_numbers, to_plain

MAX_PSEUDO_COUNT = 100.0
"""As how many labels a prior counts at most: annotators change, so it may not outweigh many new ones."""

_DEFAULT_PSEUDO_COUNT = 10.0
_INTERVAL = ("low", "high")
_Z_95 = 1.96


def match_annotator_prior(data: Any, annotators: pa.Array) -> Floats:
    r"""Return the pseudo-counts of serious and of irregular labels, annotators x 2.

    ``data`` is a frame with the columns ``annotator`` and ``reliability``, such as the annotators
    of an earlier fit, or a mapping of annotator to reliability. A reliability r counts as
    r (1 - r) / sd^2 labels where its 95% interval ``low``, ``high`` is given
    (sd = (high - low) / 3.92), else as ``n_labels``, else as 10; never as more than 100.
    Annotators without a prior get zeros; priors of annotators without a label are ignored.
    """
    table = _prior_table(data)
    names = table.column_names
    annotator_column = find_columns(names, ("annotator",))["annotator"]
    if "reliability" not in names:
        raise InputError(
            f"the annotator prior has no column 'reliability' (found: {listed(names)}): give the "
            "annotators of an earlier fit"
        )
    ids = to_plain(table.column(annotator_column)).combine_chunks()
    reliability = _numeric_column(table, "reliability")
    outside = np.flatnonzero(~((reliability >= 0.0) & (reliability <= 1.0)))
    if len(outside):
        raise InputError(
            f"the annotator prior gives annotator {shown(ids[int(outside[0])].as_py())} a "
            f"reliability of {reliability[outside[0]]:g}: it must be from 0 to 1"
        )
    code = match_ids(ids, annotators)
    validate.check_annotators_match(code, ids, "the rows of the annotator prior")
    matched = np.flatnonzero(code >= 0)
    weight = np.minimum(_pseudo_counts(table, reliability), MAX_PSEUDO_COUNT)
    counts = np.zeros((len(annotators), 2))
    counts[code[matched], 0] = (weight * reliability)[matched]
    counts[code[matched], 1] = (weight * (1.0 - reliability))[matched]
    return counts


def _pseudo_counts(table: pa.Table, reliability: Floats) -> Floats:
    """Return how many labels each reliability counts as."""
    if all(name in table.column_names for name in _INTERVAL):
        low, high = (_numeric_column(table, name) for name in _INTERVAL)
        deviation = np.maximum((high - low) / (2.0 * _Z_95), 1e-3)
        # At 0 and 1 the variance r (1 - r) vanishes; take it at 0.1 and 0.9 there.
        inner = np.clip(reliability, 0.1, 0.9)
        counts: Floats = inner * (1.0 - inner) / deviation**2
        return counts
    if "n_labels" in table.column_names:
        return np.maximum(_numeric_column(table, "n_labels"), 0.0)
    return np.full(len(reliability), _DEFAULT_PSEUDO_COUNT)


def _prior_table(data: Any) -> pa.Table:
    if isinstance(data, Mapping):
        return pa.table(
            {
                "annotator": make_column("annotator", list(data)),
                "reliability": make_column("reliability", list(data.values())),
            }
        )
    return to_arrow(data)[0]


def _numeric_column(table: pa.Table, name: str) -> Floats:
    column = to_plain(table.column(name))
    numbers = None if validate.missing(column).any() else parse_numbers(column.combine_chunks())
    if numbers is None:
        raise InputError(f"column {name!r} of the annotator prior must hold a number in every row")
    return numbers
