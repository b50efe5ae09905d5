"""What is known beside the labels: truths, covariates, priors of annotators, a classifier's opinion.

All of it comes in small tables with ids, in any form that callers have, and is matched with labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthWarning, InputError, listed, option, shorten, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import validate
from annotruth.observations.arrays import LabelArrays
from annotruth.observations.columns.names import TRUTH_ROLES, find_columns
from annotruth.observations.covariates import scatter, to_array
from annotruth.observations.encode import encode_column, match_ids
from annotruth.observations.frames import (
    ChooseColumns,
    as_arrow,
    make_column,
    to_arrow,
    tuples_to_arrow,
)
from annotruth.observations.scale import Scale, parse_numbers

# What rows of items without labels are called where they are counted.
_COUNTED_AS = {"gold": "gold truths", "classifier": "predictions of the classifier"}


def small_table(data: Any, names: tuple[str, str], choose: ChooseColumns | None = None) -> pa.Table:
    """Return a frame as a table; a mapping, a pandas Series or a list of pairs with two columns."""
    if isinstance(data, list | tuple) and data and not isinstance(data[0], Mapping):
        return tuples_to_arrow(data, names)
    if isinstance(data, Mapping):
        pairs = list(data), list(data.values())
    else:
        import narwhals as nw

        series = nw.from_native(data, pass_through=True, allow_series=True)
        if not isinstance(series, nw.Series) or not hasattr(data, "index"):
            return to_arrow(data, choose)[0]
        pairs = list(data.index), data.to_list()
    return pa.table(
        {name: make_column(name, each) for name, each in zip(names, pairs, strict=True)}
    )


def _ids_of(table: pa.Table, role: str, what: str) -> pa.Array:
    """Return the ids of a table; ``what`` has them, such as "classifier has", in messages."""
    ids = to_array(table.column(find_columns(table.column_names, (role,))[role]))
    if validate.missing(ids).any():
        raise InputError(f"the {what} a row without an {role}: remove it")
    return ids


def _numbers(table: pa.Table, name: str, what: str, hint: str = "") -> Floats:
    """Return a column of numbers, none of them missing."""
    column = to_array(table.column(name))
    numbers = None if validate.missing(column).any() else parse_numbers(column)
    if numbers is None:
        raise InputError(
            f"column {shown(name)} of the {what} must hold a number in every row{hint}"
        )
    return numbers


def match_rows(ids: pa.Array, items: pa.Array, role: str) -> tuple[Codes, Codes]:
    """Return the rows about items of labels, and the codes of these; a warning counts the others."""
    item = match_ids(ids, items)
    rows = np.flatnonzero(item >= 0)
    check_matches(len(rows), ids, role)
    validate.check_items_once(item[rows], ids.take(as_arrow(rows)), role)
    return rows, item[rows]


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


class TruthTable(NamedTuple):
    """Known truths before they are matched: the id of an item, and its label or score."""

    ids: pa.Array
    values: pa.Array


@dataclass(frozen=True, eq=False)
class MatchedTruth:
    """Known truths of some items.

    ``item`` is the code of each among the items of labels, ``values`` are categories or scores on
    their ``scale``, and ``role`` is what the truths are for in messages, "gold" or "truth".
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
            hint = f"correct it, or list every category ({option('categories')})"
            numbers = parse_numbers(self.values, leading_zeros=self.scale.takes_leading_zeros)
            low, high = self.scale.bounds
            may_be_scores = self.role == "truth" and self.scale.is_ordinal
            if (
                may_be_scores
                and numbers is not None
                and ((low <= numbers) & (numbers <= high)).all()
            ):
                hint = f"if it is a score, pass {option('scores', True)}"
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


def truth_table(data: Any, columns: Mapping[str, str] | None = None) -> pa.Table:
    """Return known truths as a table, whose columns may have other names than item and label."""
    return small_table(
        data, ("item", "label"), lambda names: find_columns(names, TRUTH_ROLES, columns).values()
    )


def read_truths(data: Any, *, role: str, columns: Mapping[str, str] | None = None) -> TruthTable:
    """Return known truths; none of them may be empty.

    ``data`` is a frame with an item and a label column, a mapping of item to label, a pandas Series of
    labels by item, or a list of (item, label).
    """
    table = truth_table(data, columns)
    names = find_columns(table.column_names, TRUTH_ROLES, columns)
    by_role = {role: table.column(names[role]) for role in TRUTH_ROLES}
    validate.check_types(by_role, names)
    ids, values = (to_array(column) for column in by_role.values())
    if table.num_rows == 0:
        raise InputError(f"the {role} has no rows")
    if validate.missing(ids).any() or validate.missing(values).any():
        raise InputError(f"the {role} has a row without an item or a label: remove it")
    return TruthTable(ids, values)


def match_truth(
    data: Any, labels: LabelArrays, *, role: str, columns: Mapping[str, str] | None = None
) -> MatchedTruth:
    """Match known truths, as `read_truths` reads them, with the items of the labels.

    Truths of items without labels are left out, and a warning counts them; an error is raised if
    no item matches.
    """
    ids, values = read_truths(data, role=role, columns=columns)
    rows, item = match_rows(ids, labels.items, role)
    return MatchedTruth(item, values.take(as_arrow(rows)), labels.scale, role)


def match_covariates(data: Any, ids: pa.Array, role: str) -> dict[str, pa.Array]:
    """Return the columns of a frame with one row per item or annotator, in the order of the ids.

    Ids without a row get null. Rows of annotators without labels are ignored, and those of items
    without labels are refused.
    """
    table = to_arrow(data)[0]
    id_column = find_columns(table.column_names, (role,))[role]
    columns = {
        name: to_array(table.column(name)) for name in table.column_names if name != id_column
    }
    if not columns:
        raise InputError(f"the {role} covariates have no column besides {id_column!r}: add one")
    given = _ids_of(table, role, f"{role} covariates have")
    code = match_ids(given, ids)
    if role == "item":
        validate.check_known_items(code, given, "item covariates")
    else:
        validate.check_annotators_match(code, given, "the annotator covariates")
    return scatter(columns, code, len(ids))


def match_groups(data: Any, items: pa.Array, *, role: str) -> NDArray[np.int64]:
    """Return the group of each item, such as its source, in codes without gaps.

    ``data`` is a mapping or a pandas Series from item to group. An item may occur more than once,
    as in a table of labels, with one group; items without labels are ignored. ``role`` is what
    the groups are for, in messages.
    """
    is_series = getattr(data, "ndim", 0) == 1 and hasattr(data, "items")
    if not (isinstance(data, Mapping) or is_series):
        raise InputError(
            f"{role} cannot be read from {type(data).__name__}: give a mapping or a pandas "
            "Series from item to group"
        )
    ids, names = zip(*data.items(), strict=True) if len(data) else ((), ())
    item, name = match_ids(_ids_array(ids), items), _ids_array(names)
    used = np.flatnonzero((item >= 0) & ~validate.missing(name))
    item = item[used]
    code, groups, _ = encode_column(pa.chunked_array([name.take(pa.array(used))]))
    group = np.full(len(items), -1, dtype=np.int64)
    group[item] = code
    for e in np.flatnonzero(group < 0)[:1]:
        raise InputError(
            f"{role} gives item {items[int(e)].as_py()!r} no group "
            f"({np.count_nonzero(group < 0):,} such items): name a group for every item"
        )
    for row in np.flatnonzero(group[item] != code)[:1]:
        e = int(item[row])
        one, other = (groups[int(g)].as_py() for g in (code[row], group[e]))
        raise InputError(
            f"{role} puts item {items[e].as_py()!r} into groups {one!r} and {other!r}: "
            "name one group per item"
        )
    return group


def _ids_array(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


MAX_PSEUDO_COUNT = 100.0
"""As how many labels a prior counts at most: annotators change, so it may not outweigh many new ones."""

_PRIOR = "annotator prior"
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
    table = small_table(data, ("annotator", "reliability"))
    names = table.column_names
    annotator = find_columns(names, ("annotator",))["annotator"]
    if "reliability" not in names:
        raise InputError(
            f"the annotator prior has no column 'reliability' (found: {listed(names)}): give the "
            "annotators of an earlier fit"
        )
    ids = to_array(table.column(annotator))
    reliability = _numbers(table, "reliability", _PRIOR)
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
        low, high = (_numbers(table, name, _PRIOR) for name in _INTERVAL)
        deviation = np.maximum((high - low) / (2.0 * _Z_95), 1e-3)
        # At 0 and 1 the variance r (1 - r) vanishes; take it at 0.1 and 0.9 there.
        inner = np.clip(reliability, 0.1, 0.9)
        counts: Floats = inner * (1.0 - inner) / deviation**2
        return counts
    if "n_labels" in table.column_names:
        return np.maximum(_numbers(table, "n_labels", _PRIOR), 0.0)
    return np.full(len(reliability), _DEFAULT_PSEUDO_COUNT)


_CLASSIFIER = "classifier"
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
    matched, item = match_rows(ids, labels.items, _CLASSIFIER)
    predictions: Floats = np.full((labels.n_items, labels.n_categories), np.nan)
    rows = probabilities[matched]
    predictions[item] = rows / rows.sum(axis=1, keepdims=True)
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
    ids = _ids_of(table, "item", "classifier has")
    hint = ": leave out the rows of items that have no prediction"
    return ids, np.column_stack([_numbers(table, name, _CLASSIFIER, hint) for name in names])


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
        every = [shorten(name) for name in [*scale.names, *more]]
        raise InputError(
            f"the classifier has columns for {listed(more)}, which no label names: remove them, or "
            f"pass {option('categories', every)} (with {option('scale', 'nominal')} if they have no "
            "order)"
        )
    return names


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
