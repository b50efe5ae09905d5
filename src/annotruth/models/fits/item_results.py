"""Results per item and per label, as models compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats, concatenate, map_slices, reduce_rows
from annotruth.labels import Labels
from annotruth.models.base_fit import Column
from annotruth.models.distribution import Distribution

_ITEMS_AT_ONCE = 1 << 16  # temporary arrays stay in the cache


class ItemResults(NamedTuple):
    """Results per item and per label: the fields of `Fit` of the same names.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.distribution import Distribution
    >>> results = ItemResults(Distribution.of_dense(np.array([[0.2, 0.8]])))
    >>> results.distribution.mode().tolist(), results.p_serious
    ([1], None)
    """

    distribution: Distribution
    p_serious: Floats | None = None
    item_columns: Mapping[str, Column] = {}
    other_distribution: Distribution | None = None


BuildItemResults: TypeAlias = Callable[[Labels, Mapping[str, NDArray[Any]]], ItemResults]
"""Builds item results from labels and the session's arrays: of all items, or of a partition."""


def normalise_rows(values: Floats) -> Floats:
    """Return rows that sum to 1, in proportion to the values."""
    normalised: Floats = values / reduce_rows(np.add, values)[:, np.newaxis]
    return normalised


def map_items(
    compute: Callable[[slice], ItemResults], n_items: int, p_serious: Floats
) -> ItemResults:
    """Return the results of all items, computed of slices of them on all cores.

    ``p_serious`` has one entry per label. Where rounding has put it above 1, it is set to 1: in place,
    unless it is read-only, as files are.
    """
    at_most_one = p_serious if p_serious.flags.writeable else np.empty_like(p_serious)

    def limit(labels: slice) -> None:
        np.minimum(p_serious[labels], 1.0, out=at_most_one[labels])

    map_slices(limit, len(p_serious))
    parts = map_slices(compute, n_items, _ITEMS_AT_ONCE)
    distributions, _, columns, others = zip(*parts, strict=True)
    return ItemResults(
        Distribution.concatenate(distributions),
        at_most_one,
        {name: _concatenate([part[name] for part in columns]) for name in columns[0]},
        Distribution.concatenate(others),
    )


def _concatenate(columns: list[Column]) -> Column:
    if isinstance(columns[0], np.ndarray):
        return concatenate(columns)
    return pa.concat_arrays(columns)
