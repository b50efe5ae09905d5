"""Results per item and per label, as models compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats, concatenate, map_slices, reduce_rows
from annotruth.models.base_fit import Column
from annotruth.models.distribution import Distribution
from annotruth.observations import Labels

_ITEMS_AT_ONCE = 1 << 16  # temporary arrays stay in the cache


class ItemResults(NamedTuple):
    """Results per item and per label: the fields of `Fit` of the same names."""

    distribution: Distribution
    p_serious: Floats | None = None
    item_columns: Mapping[str, Column] = {}
    other_distribution: Distribution | None = None


BuildItemResults: TypeAlias = Callable[[Labels, Mapping[str, NDArray[Any]]], ItemResults]
"""Builds item results from labels and the session's arrays: of all items, or of a partition."""


ComputeColumns: TypeAlias = Callable[[slice, Floats, Floats], Mapping[str, Column]]
"""Computes the columns of some items, given their distributions and the other ones."""


def summarize_items(
    table: Floats, other_table: Floats, p_serious: Floats, columns: ComputeColumns
) -> ItemResults:
    """Return the results of all items, computed of slices of them on all cores.

    Rows of the tables, items x categories, are divided by their sums, and where rounding has put
    ``p_serious``, one number per label, above 1, it is set to 1: in place, unless an array is read-only,
    as files are.
    """
    shares, others, at_most_one = (
        array if array.flags.writeable else np.empty_like(array)
        for array in (table, other_table, p_serious)
    )

    def limit(labels: slice) -> None:
        np.minimum(p_serious[labels], 1.0, out=at_most_one[labels])

    def compute(items: slice) -> Mapping[str, Column]:
        for values, normalised in (
            (table[items], shares[items]),
            (other_table[items], others[items]),
        ):
            np.divide(values, reduce_rows(np.add, values)[:, np.newaxis], out=normalised)
        return columns(items, shares[items], others[items])

    map_slices(limit, len(p_serious))
    parts = map_slices(compute, len(table), _ITEMS_AT_ONCE)
    return ItemResults(
        Distribution.of_dense(shares),
        at_most_one,
        {name: _concatenate([part[name] for part in parts]) for name in parts[0]},
        Distribution.of_dense(others),
    )


def _concatenate(columns: list[Column]) -> Column:
    if isinstance(columns[0], np.ndarray):
        return concatenate(columns)
    return pa.concat_arrays(columns)
