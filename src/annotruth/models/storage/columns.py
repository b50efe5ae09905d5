"""Columns of saved fits: written under their prefixes, and read with every value checked.

Tables may come from anywhere. Kernels index with codes and pointers without checks of their own, so
whatever is wrong must be found here; it raises a ValueError.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.models.base_fit import Column
from annotruth.models.em import History
from annotruth.observations.frames import default_frame
from annotruth.observations.layout import check_index, check_pointers
from annotruth.observations.scale import is_text

MAX_VALUE = 1e150
"""The largest number of a column, so that squares are finite."""

MODEL_COLUMN = "model:"
"""Prefix of the names of model-specific columns."""

_COVARIATE = "covariate:"  # prefix of the names of covariates
_POINTER = (pa.int64(),)
_CODE = (pa.int32(),)
_ROW = (pa.int32(), pa.int64())
_NUMBER = (pa.float64(),)
_PROBABILITY_SLACK = 1e-6  # of rounding, by which a probability may be above 1


def make_table(columns: dict[str, Any], model_columns: Mapping[str, Any] | None = None) -> pa.Table:
    """Return a table of the columns that are not None; model-specific ones get a prefix."""
    prefixed = {f"{MODEL_COLUMN}{name}": column for name, column in (model_columns or {}).items()}
    return pa.table(
        {name: column for name, column in {**columns, **prefixed}.items() if column is not None}
    )


def prefixed(covariates: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return covariates under the names of their columns."""
    return {f"{_COVARIATE}{name}": column for name, column in covariates.items()}


def check_table(name: str, table: pa.Table) -> None:
    """Refuse a table that Arrow finds invalid, or that has a column name twice."""
    table.validate(full=True)
    columns = table.column_names
    check(len(set(columns)) == len(columns), f"{name} has a column twice")


def check(is_right: bool | np.bool_, otherwise: str) -> None:
    """Raise a ValueError with the text unless something is right."""
    if not is_right:
        raise ValueError(otherwise)


def covariates_in(table: pa.Table) -> dict[str, pa.Array]:
    """Return the covariates in a table, without the prefix."""
    return {
        name.removeprefix(_COVARIATE): column.combine_chunks()
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name.startswith(_COVARIATE)
    }


class ModelColumns(dict[str, Column]):
    """The model-specific columns of a table, without the prefix; a missing one is an `InputError`.

    ``types`` are the types of columns that are not of type float64.
    """

    def __init__(self, table: pa.Table, types: Mapping[str, pa.DataType]) -> None:
        for name, column in zip(table.column_names, table.columns, strict=True):
            if name.startswith(MODEL_COLUMN):
                plain = name.removeprefix(MODEL_COLUMN)
                type_ = types.get(plain, pa.float64())
                if is_text(type_):
                    right = column.type == type_ and not column.null_count
                    check(right, f"{name} is not of type {type_}")
                    self[plain] = column.combine_chunks()
                else:
                    self[plain] = read_numbers(table, name, (type_,))
                    too_large = np.abs(self[plain]) > MAX_VALUE  # or infinite
                    check(not too_large.any(), f"{name} has too large a value")

    def __missing__(self, name: str) -> Column:
        raise InputError(
            f"this saved fit has no column {name}: it was saved by another version of annotruth, or "
            "changed; fit the labels again"
        )


def read_parameter(
    name: str, tensor: pa.Tensor, types: tuple[pa.DataType, ...] = (pa.float64(), pa.float32())
) -> NDArray[Any]:
    """Return a parameter of one of the types; `Fit.parameter` checks its shape.

    Engines hold large parameters in single precision.
    """
    check(tensor.type in types, f"parameter {name} is not of type {types[0]}")
    values = np.array(tensor.to_numpy(), order="C")
    check(np.isfinite(values).all(), f"parameter {name} has a value that is not finite")
    return values


def installed_frame(library: str) -> str:
    """Return the frame library, or the default one where it is not installed."""
    return library if importlib.util.find_spec(library) else default_frame()


def read_ids(table: pa.Table, name: str, *, may_be_missing: bool = False) -> pa.Array:
    """Return ids or categories: numbers, text or times, none of them missing unless said."""
    column = table[name]
    check(not pa.types.is_nested(column.type), f"{name} has a nested value")
    check(may_be_missing or not column.null_count, f"{name} has a missing value")
    return column.combine_chunks()


def read_texts(table: pa.Table, name: str) -> list[str] | None:
    """Return a column of texts, or None if there is none."""
    if name not in table.column_names:
        return None
    check(is_text(table[name].type) and not table[name].null_count, f"{name} is not text")
    texts: list[str] = table[name].to_pylist()
    return texts


def read_numbers(table: pa.Table, name: str, types: tuple[pa.DataType, ...]) -> Any:
    """Return a column without missing values and of one of the types; raise otherwise."""
    column = table[name]
    check(column.type in types and not column.null_count, f"{name} is not of type {types[0]}")
    return column.to_numpy()


def read_finite(table: pa.Table, name: str) -> Any:
    """Return a column of finite numbers, or None if there is none."""
    if name not in table.column_names:
        return None
    numbers = read_numbers(table, name, _NUMBER)
    check(np.isfinite(numbers).all(), f"{name} has a value that is not finite")
    return numbers


def read_shares(table: pa.Table, name: str) -> Any:
    """Return a column of numbers from 0 to 1, or None if there is none."""
    shares = read_finite(table, name)
    if shares is not None and len(shares):
        inside = shares.min() >= 0.0 and shares.max() <= 1.0 + _PROBABILITY_SLACK
        check(inside, f"{name} has a value outside 0..1")
    return shares


def read_pointers(table: pa.Table, name: str, length: int) -> NDArray[np.int64]:
    """Return the starts and the end; raise unless they ascend, as kernels index with them."""
    pointers = np.append(read_numbers(table, name, _POINTER), length)
    check_pointers(name, pointers, length)
    return pointers


def read_codes(
    table: pa.Table, name: str, n: int, least: int = 0, types: tuple[pa.DataType, ...] = _CODE
) -> Any:
    """Return codes; raise unless they are in range, as kernels index with them."""
    codes = read_numbers(table, name, types)
    check_index(name, codes, n, least)
    return codes


def is_ascending(codes: NDArray[np.int32], pointers: NDArray[np.int64]) -> bool:
    """Return whether codes ascend from each pointer to the next."""
    rises = np.diff(codes) > 0
    rises[pointers[1:-1] - 1] = True  # between the last of an item and the first of the next
    return bool(rises.all())


def read_rows(table: pa.Table, name: str, n: int) -> Any:
    """Return each row's position in the input; raise unless each of n positions is there once."""
    row = read_codes(table, name, n, types=_ROW)
    is_there = np.zeros(n, dtype=np.bool_)
    is_there[row] = True
    check(is_there.all(), "a row is there twice")
    return row


def read_history(entries: Mapping[str, Any]) -> History:
    """Return the history in the entries of ``fit.json``."""
    history = entries["history"]
    return History(
        log_likelihood=np.array(history["log_likelihood"], dtype=np.float64),
        objective=np.array(history["objective"], dtype=np.float64),
        converged=entries["converged"],
        stop_reason=entries["stop_reason"],
    )
