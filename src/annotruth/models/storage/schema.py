"""The schema of saved fits: the columns of their tables, and how every value is checked when it is read.

Tables may come from anywhere. Kernels index with codes and pointers without checks of their own, so
whatever is wrong must be found here; it raises a ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.models.base_fit import FLAGGED, RANKING, SETS, Column
from annotruth.observations.layout import check_index, check_pointers
from annotruth.observations.scale import is_text

MAX_VALUE = 1e150
"""The largest number of a column, so that squares are finite."""

OTHER_TABLE, PAST_FITS, CONTEXTS = "other-distribution", "past-fits", "contexts"
"""Tables of fits that have both read-outs, that continue earlier ones, and of comparisons in contexts."""

COVARIANCE = "covariance"
"""The array of the scores' covariance: items x items, or one variance per item."""

_PROBABILITY_SLACK = 1e-6  # of rounding, by which a probability may be above 1
_CODE = pa.int32()

Read: TypeAlias = Callable[[str, pa.ChunkedArray, Mapping[str, int]], Any]
"""Returns the checked values of a column, given its name and the numbers of rows of the tables."""


def check(is_right: bool | np.bool_, otherwise: str) -> None:
    """Raise a ValueError with the text unless something is right."""
    if not is_right:
        raise ValueError(otherwise)


def _any_values(name: str, column: pa.ChunkedArray, _: Mapping[str, int]) -> pa.Array:
    return column.combine_chunks()


def _values(name: str, column: pa.ChunkedArray, _: Mapping[str, int]) -> pa.Array:
    """Return numbers, text or times, of which some may be missing."""
    check(not pa.types.is_nested(column.type), f"{name} has a nested value")
    return column.combine_chunks()


def _ids(name: str, column: pa.ChunkedArray, _: Mapping[str, int]) -> pa.Array:
    check(not column.null_count, f"{name} has a missing value")
    return _values(name, column, _)


def _texts(name: str, column: pa.ChunkedArray, _: Mapping[str, int]) -> list[str]:
    check(is_text(column.type) and not column.null_count, f"{name} is not text")
    texts: list[str] = column.to_pylist()
    return texts


def _numbers(name: str, column: pa.ChunkedArray, *types: pa.DataType) -> Any:
    """Return a column without missing values and of one of the types; raise otherwise."""
    check(column.type in types and not column.null_count, f"{name} is not of type {types[0]}")
    return column.to_numpy()


def _finite(name: str, column: pa.ChunkedArray, _: Mapping[str, int]) -> Any:
    numbers = _numbers(name, column, pa.float64())
    check(np.isfinite(numbers).all(), f"{name} has a value that is not finite")
    return numbers


def _shares(name: str, column: pa.ChunkedArray, _: Mapping[str, int]) -> Any:
    shares = _finite(name, column, _)
    inside = not len(shares) or (shares.min() >= 0.0 and shares.max() <= 1.0 + _PROBABILITY_SLACK)
    check(inside, f"{name} has a value outside 0..1")
    return shares


def _codes(of: str, type_: pa.DataType = _CODE, *, least: int = 0) -> Read:
    """Return what reads codes of the rows of a table, which must be in range."""

    def read(name: str, column: pa.ChunkedArray, lengths: Mapping[str, int]) -> Any:
        codes = _numbers(name, column, type_)
        check_index(name, codes, lengths[of], least)
        return codes

    return read


def _starts(of: str) -> Read:
    """Return what reads where the rows of another table start, and adds the end; they must ascend."""

    def read(name: str, column: pa.ChunkedArray, lengths: Mapping[str, int]) -> NDArray[np.int64]:
        pointers = np.append(_numbers(name, column, pa.int64()), lengths[of])
        check_pointers(name, pointers, lengths[of])
        return pointers

    return read


def _rows(name: str, column: pa.ChunkedArray, _: Mapping[str, int]) -> Any:
    """Return each row's position in the input; raise unless each position is there once."""
    row = _numbers(name, column, _CODE, pa.int64())
    check_index(name, row, len(row))
    check(np.bincount(row, minlength=len(row)).all(), "a row is there twice")
    return row


def _of_model(**types: pa.DataType) -> Read:
    """Return what reads model-specific columns, of type float64 unless another one is given."""

    def read(name: str, column: pa.ChunkedArray, _: Mapping[str, int]) -> Column:
        type_ = types.get(name, pa.float64())
        if is_text(type_):
            check(column.type == type_ and not column.null_count, f"{name} is not of type {type_}")
            return column.combine_chunks()
        numbers: Column = _numbers(name, column, type_)
        too_large = np.abs(numbers) > MAX_VALUE  # or infinite
        check(not too_large.any(), f"{name} has too large a value")
        return numbers

    return read


def _predictions(name: str, column: pa.ChunkedArray, _: Mapping[str, int]) -> Any:
    return _numbers(name, column, pa.float64())  # nan where there is no prediction


_of_labels = _of_model(may_lead=pa.string(), at_floor=pa.bool_(), **{FLAGGED: pa.bool_()})
_of_pairs = _of_model(evidence=pa.string(), group=pa.int64())
_ANNOTATORS: dict[str, tuple[str, Read]] = {
    "annotator": ("data.annotators", _ids),
    "reliability?": ("reliability", _shares),
    "low?": ("low", _shares),
    "high?": ("high", _shares),
    "behavior?": ("behavior", _texts),
    "annotator_weight?": ("data.annotator_weight", _shares),
}
LABELS: Mapping[str, Mapping[str, tuple[str, Read]]] = {
    "items": {
        "item": ("data.items", _ids),
        "cells_from": ("data.item_ptr", _starts("cells")),
        "known": ("data.known", _codes("categories", least=-1)),
        "entries_from?": ("distribution.ptr", _starts("distribution")),
        "other_entries_from?": ("other_distribution.ptr", _starts(OTHER_TABLE)),
        "score?": ("score", _finite),
        "covariate:*": ("data.covariates.items", _any_values),
        "classifier:*": ("data.classifier", _predictions),  # by category code
        "model:*": ("item_columns", _of_labels),
    },
    "cells": {
        "category": ("data.cell_category", _codes("categories")),
        "labels_from": ("data.cell_ptr", _starts("labels")),
    },
    "labels": {
        "annotator": ("data.annotator", _codes("annotators")),
        "row": ("data.row", _rows),
        "p_serious?": ("p_serious", _shares),
        "covariate:*": ("data.covariates.labels", _any_values),
    },
    "annotators": {
        **_ANNOTATORS,
        "record_*": ("data.annotator_prior", _finite),
        "covariate:*": ("data.covariates.annotators", _any_values),
        "model:*": ("annotator_columns", _of_labels),
    },
    "categories": {
        "category": ("data.scale.categories", _ids),
        "value": ("data.scale.values", _finite),
    },
    "distribution": {
        "category?": ("distribution.category", _codes("categories")),
        "probability?": ("distribution.probability", _shares),
    },
    OTHER_TABLE: {
        "category?": ("other_distribution.category", _codes("categories")),
        "probability?": ("other_distribution.probability", _shares),
    },
    PAST_FITS: {},
}
COMPARISONS: Mapping[str, Mapping[str, tuple[str, Read]]] = {
    "items": {
        "item": ("data.items", _ids),
        "score": ("scores.mean", _finite),
        "part": ("part", _codes("parts", pa.int64())),
    },
    "annotators": {**_ANNOTATORS, "model:*": ("annotator_columns", _of_pairs)},
    "comparisons": {
        "annotator": ("data.annotator_of_comparison", _codes("annotators")),
        "left": ("data.left", _codes("items")),
        "right": ("data.right", _codes("items")),
        "outcome": ("data.outcome", _codes("outcomes", pa.int8())),
        "row": ("data.row", _rows),
        "context?": ("data.context", _codes(CONTEXTS)),
        "p_serious?": ("p_serious", _shares),
        "covariate:*": ("data.covariates", _finite),
        "further:*": ("data.further", _values),
    },
    CONTEXTS: {"context?": ("data.contexts", _values)},
}
SCHEMAS = {RANKING: COMPARISONS, SETS: LABELS, None: LABELS}
"""The tables of saved fits, by the entry ``kind``: the columns, where the fit has them, and how they are read.

A name with ? may be missing, and one with * begins the names of any number of columns. Of pointers, named
``*_from``, the starts are stored.
"""

OPTIONAL_TABLES = frozenset({OTHER_TABLE, PAST_FITS, CONTEXTS})
"""The tables that not every fit of their kind has."""
