"""Known answers: gold for the fit, truth for the metrics, matched to the labels by item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.labels import validate
from annotruth.labels.columns import TRUTH_ROLES, find_columns
from annotruth.labels.encode import match_ids
from annotruth.labels.formatting import listed, shown
from annotruth.labels.frames import column_of, to_arrow
from annotruth.labels.scale import Scale, numbers_behind, plain


class Named(Protocol):
    """Items by their ids, with the scale of their labels."""

    @property
    def items(self) -> pa.Array | pa.ChunkedArray:
        """The ids."""

    @property
    def scale(self) -> Scale:
        """The scale."""


@dataclass(frozen=True, eq=False)
class Truth:
    """Known answers of some items.

    Attributes
    ----------
    item
        The code of each item in the labels it was matched with.
    values
        The answers as they came.
    scale
        The scale of the labels.
    role
        What it is for, "gold" or "truth", for messages.
    """

    item: NDArray[np.int64]
    values: pa.Array
    scale: Scale
    role: str

    def codes(self) -> NDArray[np.int32]:
        """Return the answers as category codes, -1 where an answer is no category."""
        return self.scale.codes_of(self.values)

    def categories(self) -> NDArray[np.int32]:
        """Return the answers as category codes; every answer must be a category."""
        codes = self.codes()
        strange = np.flatnonzero(codes < 0)
        if len(strange):
            value = self.values[int(strange[0])].as_py()
            hint = "; if it is a score, say that the scale is ordinal" if self._scored() else ""
            raise InputError(
                f"the {self.role} names label {shown(value)}, which is not among the categories "
                f"{listed(self.scale.names)}{hint}"
            )
        return codes

    def scores(self) -> NDArray[np.float64]:
        """Return the answers as numbers on the scale, which must lie within it."""
        numbers = numbers_behind(self.values)
        if numbers is None or numbers_behind(self.scale.categories) is None:
            return self.scale.values[self.categories()]
        low, high = self.scale.bounds
        outside = np.flatnonzero((numbers < low) | (numbers > high))
        if len(outside):
            raise InputError(
                f"the {self.role} has score {numbers[outside[0]]:g}, outside the scale "
                f"{low:g} to {high:g}"
            )
        return numbers

    def _scored(self) -> bool:
        """Whether these may be scores to measure against: numbers within an ordinal scale."""
        numbers = numbers_behind(self.values)
        if self.role != "truth" or not self.scale.is_ordinal or numbers is None:
            return False
        low, high = self.scale.bounds
        return bool(numbers.min() >= low and numbers.max() <= high)


class Answers(NamedTuple):
    """Known answers as they came: ids of items, and a value each."""

    ids: pa.Array
    values: pa.Array


def answers_of(data: Any, *, role: str, columns: Mapping[str, str] | None = None) -> Answers:
    """Read known answers; none of them may be empty.

    ``data`` is a frame with an item and a label column, a mapping of item to label, or a
    pandas Series of labels by item.
    """
    table = _truth_table(data, columns)
    found = find_columns(table.column_names, TRUTH_ROLES, columns)
    by_role = {name: table.column(found[name]) for name in TRUTH_ROLES}
    validate.check_types(by_role, found)
    ids, values = (plain(column) for column in by_role.values())
    if table.num_rows == 0:
        raise InputError(f"the {role} has no rows")
    if validate.missing(ids).any() or validate.missing(values).any():
        raise InputError(f"the {role} has a row without an item or a label: remove it")
    return Answers(ids.combine_chunks(), values.combine_chunks())


def match_truth(
    data: Any, labels: Named, *, role: str, columns: Mapping[str, str] | None = None
) -> Truth:
    """Match known answers, as `answers_of` reads them, with the items of the labels.

    An unknown item is refused.
    """
    ids, values = answers_of(data, role=role, columns=columns)
    item = match_ids(ids, labels.items)
    validate.check_known_items(item, ids, role)
    return Truth(item, values, labels.scale, role)


def _truth_table(data: Any, columns: Mapping[str, str] | None) -> pa.Table:
    if isinstance(data, Mapping):
        return _pairs_to_arrow(list(data), list(data.values()))
    import narwhals as nw

    series = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(series, nw.Series) and hasattr(data, "index"):
        return _pairs_to_arrow(list(data.index), data.to_list())
    roles = TRUTH_ROLES
    return to_arrow(data, lambda names: find_columns(names, roles, columns).values())[0]


def _pairs_to_arrow(items: list[Any], labels: list[Any]) -> pa.Table:
    return pa.table({"item": column_of("item", items), "label": column_of("label", labels)})
