"""What is known beside the labels: truths, priors of annotators, a classifier's probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthWarning, InputError, listed, shorten, shown
from annotruth.kernels.arrays import Floats
from annotruth.observations import validate
from annotruth.observations.arrays import LabelArrays
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import TRUTH_ROLES, as_arrow, find_columns, make_column, to_arrow
from annotruth.observations.scale import Scale, parse_numbers, to_plain

if TYPE_CHECKING:
    from annotruth.observations.arrays import LabelArrays


# What rows of items without labels are called where they are counted.
_COUNTED_AS = {"gold": "gold truths", "classifier": "predictions of the classifier"}


class TruthTable(NamedTuple):
    """Known truths before they are matched: the id of an item, and its label or score."""

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


_ROLE = "classifier"
_PREFIX = "p_"
_MAX_ROUNDING = 0.02  # by which the sum of a row may differ from 1


def match_classifier(data: Any, labels: LabelArrays) -> Floats:
    """Return a classifier's probabilities, items x categories; NaN for items without a prediction.

    ``data`` is a frame with an item column and one column per category, named as the category or
    with the prefix ``p_``; or an array with one column per category and one row per item, in the order
    of the items. Predictions of items without labels are left out, and a warning counts them.
    """
    if isinstance(data, np.ndarray):
        ids, probabilities = _rows_of_array(data, labels)
    else:
        ids, probabilities = _rows_of_table(data, labels.scale)
    _check_probabilities(ids, probabilities)
    item = match_ids(ids, labels.items)
    matched = np.flatnonzero(item >= 0)
    check_matches(len(matched), ids, _ROLE)
    validate.check_items_once(item[matched], ids.take(pa.array(matched)), _ROLE)
    predictions: Floats = np.full((labels.n_items, labels.n_categories), np.nan)
    rows = probabilities[matched]
    predictions[item[matched]] = rows / rows.sum(axis=1, keepdims=True)
    return predictions


def _rows_of_array(array: NDArray[Any], labels: LabelArrays) -> tuple[pa.Array, Floats]:
    """Return the ids and probabilities of an array: ids are row numbers, or those of the labels."""
    n_rows, n = len(array) if array.ndim else 0, labels.n_categories
    if array.ndim != 2 or array.shape[1] != n or array.dtype.kind not in "fiu":
        raise InputError(
            f"the classifier's array has shape {' x '.join(map(str, array.shape)) or '()'} and type "
            f"{array.dtype}: numbers of items x {n} categories ({listed(labels.scale.names)}) are "
            "needed"
        )
    numbers = array.astype(np.float64)
    if n_rows == 0:
        raise InputError("the classifier has no rows")
    if pa.types.is_integer(labels.items.type):
        return pa.array(np.arange(n_rows)), numbers
    if n_rows != labels.n_items:
        raise InputError(
            f"the classifier's array has {n_rows:,} rows for {labels.n_items:,} items: give a frame "
            "with a column item"
        )
    return labels.items, numbers


def _rows_of_table(data: Any, scale: Scale) -> tuple[pa.Array, Floats]:
    """Return the ids and probabilities of a table."""
    table = to_arrow(data)[0]
    item = find_columns(table.column_names, ("item",))["item"]
    names = _find_classes([name for name in table.column_names if name != item], scale)
    if table.num_rows == 0:
        raise InputError("the classifier has no rows")
    ids = to_plain(table.column(item))
    if validate.missing(ids).any():
        raise InputError("the classifier has a row without an item: remove it")
    columns = [_numbers(table, name) for name in names]
    return ids.combine_chunks(), np.column_stack(columns)


def _find_classes(columns: Sequence[str], scale: Scale) -> list[str]:
    """Return the column of each category; refuse categories without one, and others than these."""
    with_prefix = [f"{_PREFIX}{name}" for name in scale.names]
    has_prefix = any(name in columns for name in with_prefix)
    names = with_prefix if has_prefix else list(scale.names)
    absent = [name for name in names if name not in columns]
    if absent:
        raise InputError(
            f"the classifier has no column {listed(absent)} (found: {listed(columns)}): it needs "
            f"one column per category, {listed(with_prefix)}"
        )
    more = [name for name in columns if name not in names]
    if has_prefix:
        more = [name.removeprefix(_PREFIX) for name in more if name.startswith(_PREFIX)]
    if more:
        every = ",".join(map(shorten, [*scale.names, *more]))
        raise InputError(
            f"the classifier has columns for {listed(more)}, which no label names: remove them, or "
            f'pass `--categories "{every}"` (with `--scale nominal` if they have no order)'
        )
    return names


def _numbers(table: pa.Table, name: str) -> Floats:
    column = to_plain(table.column(name))
    numbers = None if validate.missing(column).any() else parse_numbers(column.combine_chunks())
    if numbers is None:
        raise InputError(
            f"column {shown(name)} of the classifier must hold a number in every row: leave out "
            "the rows of items that have no prediction"
        )
    return numbers


def _check_probabilities(ids: pa.Array, probabilities: Floats) -> None:
    """Refuse rows that are no probabilities; name the first."""
    sums = probabilities.sum(axis=1)
    inside = np.asarray((np.isfinite(probabilities) & (probabilities >= 0.0)).all(axis=1))
    wrong = np.flatnonzero(~(inside & (np.abs(sums - 1.0) <= _MAX_ROUNDING)))
    if not len(wrong):
        return
    row = int(wrong[0])
    values = ", ".join(f"{value:g}" for value in probabilities[row, :5])
    what = f"sum to {sums[row]:g}" if inside[row] else "are not all from 0 to 1"
    raise InputError(
        f"the classifier's probabilities of item {shown(ids[row].as_py())} {what} ({values}"
        f"{', ...' if probabilities.shape[1] > 5 else ''}): give probabilities that sum to 1, such as "
        "the softmax of logits"
    )
