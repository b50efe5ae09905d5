"""Groups of items, such as the versions of one source, matched to the labels by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.labels.encode import encode_column, match_ids
from annotruth.labels.validate import missing

if TYPE_CHECKING:
    from annotruth.labels.table import Labels


def match_groups(data: Any, labels: Labels, *, role: str) -> NDArray[np.int64]:
    """Return the group of each item, in codes without gaps.

    ``data`` is a mapping or a pandas Series from item to group. An item may stand there more
    than once, as it does in a table of labels, with one group; items without labels do not
    count. ``role`` says what the groups are for, in messages.
    """
    is_series = getattr(data, "ndim", 0) == 1 and hasattr(data, "items")
    if not (isinstance(data, Mapping) or is_series):
        raise InputError(
            f"{role} cannot be read from {type(data).__name__}: give a mapping or a pandas "
            "Series from item to group"
        )
    ids, names = zip(*data.items(), strict=True) if len(data) else ((), ())
    item, name = match_ids(_array(ids), labels.items), _array(names)
    told = np.flatnonzero((item >= 0) & ~missing(name))
    item = item[told]
    code, groups, _ = encode_column(pa.chunked_array([name.take(pa.array(told))]))
    group = np.full(labels.n_items, -1, dtype=np.int64)
    group[item] = code
    for e in np.flatnonzero(group < 0)[:1]:
        raise InputError(
            f"{role} gives item {labels.items[int(e)].as_py()!r} no group "
            f"({np.count_nonzero(group < 0):,} such items): name a group for every item"
        )
    for row in np.flatnonzero(group[item] != code)[:1]:
        e = int(item[row])
        one, other = (groups[int(g)].as_py() for g in (code[row], group[e]))
        raise InputError(
            f"{role} puts item {labels.items[e].as_py()!r} into groups {one!r} and {other!r}: "
            "name one group an item"
        )
    return group


def _array(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])
