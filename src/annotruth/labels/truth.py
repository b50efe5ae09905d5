"""Known truths: gold for the fit, truth for the metrics, matched to the labels by item."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthWarning, InputError, listed, shown
from annotruth.labels import validate
from annotruth.labels.encode import match_ids
from annotruth.labels.frames import TRUTH_ROLES, as_arrow, find_columns, make_column, to_arrow
from annotruth.labels.scale import Scale, parse_numbers, to_plain

if TYPE_CHECKING:
    from annotruth.labels.arrays import LabelArrays

# What rows of items without labels are called where they are counted.
_COUNTED_AS = {"gold": "gold truths", "classifier": "predictions of the classifier"}


class TruthTable(NamedTuple):
    """Known truths before they are matched: the id of an item, and its label or score.

    Examples
    --------
    >>> TruthTable(pa.array(["a", "b"]), pa.array([1, 5])).ids.to_pylist()
    ['a', 'b']
    """

    ids: pa.Array
    values: pa.Array


@dataclass(frozen=True, eq=False)
class MatchedTruth:
    """Known truths of some items.

    Attributes
    ----------
    item
        The code of each item in the labels that it was matched with.
    values
        The truths: categories, or scores on an ordinal scale.
    scale
        The scale of the labels.
    role
        What it is for, "gold" or "truth", in messages.

    Examples
    --------
    >>> from annotruth import Labels
    >>> labels = Labels.of([("a", "ann", 1), ("b", "ann", 5)])
    >>> match_truth({"b": 5}, labels, role="truth").categories().tolist()
    [1]
    """

    item: NDArray[np.int64]
    values: pa.Array
    scale: Scale
    role: str

    def codes(self) -> NDArray[np.int32]:
        """Return the truths as category codes, -1 where a truth is not a category."""
        return self.scale.codes_of(self.values)

    def categories(self) -> NDArray[np.int32]:
        """Return the truths as category codes; every truth must be a category."""
        codes = self.codes()
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            value = self.values[int(unknown[0])].as_py()
            hint = "correct it, or list every category (`--categories`)"
            if self._may_be_scores():
                hint = "if it is a score, pass scores=True (`--scale ordinal`)"
            raise InputError(
                f"the {self.role} names label {shown(value)}, which is not among the categories "
                f"{listed(self.scale.names)}: {hint}"
            )
        return codes

    def scores(self) -> NDArray[np.float64]:
        """Return the truths as numbers within the scale; text counts as its category's value."""
        numbers = parse_numbers(self.values, leading_zeros=self.scale.takes_leading_zeros)
        if numbers is None or parse_numbers(self.scale.categories) is None:
            return self.scale.values[self.categories()]
        low, high = self.scale.bounds
        outside = np.flatnonzero((numbers < low) | (numbers > high))
        if len(outside):
            raise InputError(
                f"the {self.role} has score {numbers[outside[0]]:g}, outside the scale "
                f"{low:g} to {high:g}"
            )
        return numbers

    def _may_be_scores(self) -> bool:
        """Return whether these may be scores to measure against: numbers within an ordinal scale."""
        numbers = parse_numbers(self.values, leading_zeros=self.scale.takes_leading_zeros)
        if self.role != "truth" or not self.scale.is_ordinal or numbers is None:
            return False
        low, high = self.scale.bounds
        return bool(numbers.min() >= low and numbers.max() <= high)


def read_truths(data: Any, *, role: str, columns: Mapping[str, str] | None = None) -> TruthTable:
    """Return known truths; none of them may be empty.

    ``data`` is a frame with an item and a label column, a mapping of item to label, or a
    pandas Series of labels by item.
    """
    table = truth_table(data, columns)
    names = find_columns(table.column_names, TRUTH_ROLES, columns)
    by_role = {role: table.column(names[role]) for role in TRUTH_ROLES}
    validate.check_types(by_role, names)
    ids, values = (to_plain(column) for column in by_role.values())
    if table.num_rows == 0:
        raise InputError(f"the {role} has no rows")
    if validate.missing(ids).any() or validate.missing(values).any():
        raise InputError(f"the {role} has a row without an item or a label: remove it")
    return TruthTable(ids.combine_chunks(), values.combine_chunks())


def match_truth(
    data: Any, labels: LabelArrays, *, role: str, columns: Mapping[str, str] | None = None
) -> MatchedTruth:
    """Match known truths, as `read_truths` reads them, with the items of the labels.

    Truths of items without labels are left out, and a warning counts them; an error is raised if
    no item matches.
    """
    return match_truth_to_items(data, labels.items, labels.scale, role=role, columns=columns)


def match_truth_to_items(
    data: Any,
    items: pa.Array,
    scale: Scale,
    *,
    role: str,
    columns: Mapping[str, str] | None = None,
) -> MatchedTruth:
    """Match known truths with items by their ids, as `match_truth` does."""
    ids, values = read_truths(data, role=role, columns=columns)
    item = match_ids(ids, items)
    matched = np.flatnonzero(item >= 0)
    check_matches(len(matched), ids, role)
    item, ids, values = item[matched], ids.take(as_arrow(matched)), values.take(as_arrow(matched))
    validate.check_items_once(item, ids, role)
    return MatchedTruth(item, values, scale, role)


def check_matches(n_matched: int, ids: pa.Array, role: str, *, what: str = "labels") -> None:
    """Warn of rows about items without labels, or ``what``; refuse them if no item has any."""
    n_left_out = len(ids) - n_matched
    if n_matched == 0:
        raise InputError(
            f"no item of the {role} has {what} (first: {shown(ids[0].as_py())}, {len(ids):,} in "
            "all): check that the ids match"
        )
    if n_left_out:
        which = (
            f"is of an item without {what} and was"
            if n_left_out == 1
            else f"are of items without {what} and were"
        )
        kind = _COUNTED_AS.get(role, "truths")
        warnings.warn(
            f"{n_left_out:,} of {len(ids):,} {kind} {which} left out",
            AnnotruthWarning,
            stacklevel=2,
        )


def truth_table(data: Any, columns: Mapping[str, str] | None = None) -> pa.Table:
    """Return known truths as a table, whose columns may have other names than item and label."""
    if isinstance(data, Mapping):
        return _table_of_pairs(list(data), list(data.values()))
    import narwhals as nw

    series = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(series, nw.Series) and hasattr(data, "index"):
        return _table_of_pairs(list(data.index), data.to_list())
    return to_arrow(data, lambda names: find_columns(names, TRUTH_ROLES, columns).values())[0]


def _table_of_pairs(items: list[Any], labels: list[Any]) -> pa.Table:
    return pa.table({"item": make_column("item", items), "label": make_column("label", labels)})
