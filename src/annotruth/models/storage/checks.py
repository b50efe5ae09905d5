"""What is read of saved fits: columns and the entries of ``fit.json``, with every value checked.

Tables may come from anywhere. Kernels index with codes and pointers without checks of their own, so
whatever is wrong must be found here; it raises a ValueError.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.bindings import bound
from annotruth.errors import InputError, shown
from annotruth.models.base_fit import RANKING, SETS, Column, Readout, Verdict
from annotruth.models.em import History
from annotruth.models.fits.further import further_kinds
from annotruth.models.pairs.registry import PAIR_MODELS, get_pair_model
from annotruth.models.registry import MODELS, get_model
from annotruth.observations.frames import default_frame
from annotruth.observations.layout import check_index, check_pointers
from annotruth.observations.scale import is_text
from annotruth.observations.validate import check_option

if TYPE_CHECKING:
    from annotruth.models.options import OptionsBase

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


_FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf")
_SHA256 = "[0-9a-f]{64}"
_TIME = r"[12]\d{3}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\+00:00"
_MAX_DEPTH = 8
_OPTIONAL = {"chosen", "n_repeated", "left_out", "fitted_at", "scale_reason", "further"}

Check: TypeAlias = Callable[[Any], bool]
"""Returns whether the value of an entry is right."""


def check_entries(entries: Mapping[str, Any]) -> None:
    """Raise a ValueError for entries that are missing, unexpected, or of a wrong type."""
    kind = entries.get("kind")
    checks = {**_COMMON_CHECKS, **_KIND_CHECKS.get(kind, _LABEL_CHECKS)}
    # Fits that were saved before comparisons were tested have no verdict.
    optional = _OPTIONAL | ({"verdict"} if kind == RANKING else set())
    for name in entries.keys() - checks.keys():
        raise ValueError(f"unexpected entry {shown(name)} in fit.json")
    for name in checks.keys() - entries.keys() - optional:
        raise ValueError(f"no entry {name} in fit.json")
    for name, value in entries.items():
        if not checks[name](value):
            raise ValueError(f"the entry {name} in fit.json is {shown(value)}")
    if entries["n_iter"] != len(entries["history"]["objective"]):
        raise ValueError("n_iter is not the length of the history")
    _check_settings(_model_class(kind, entries["model"]), entries["settings"])


def _model_class(kind: str | None, model: str) -> type[OptionsBase]:
    """Return the class of a model that fits of the kind have."""
    if kind == SETS:
        return cast("type[OptionsBase]", bound("sets.model"))
    return get_pair_model(model) if kind == RANKING else get_model(model)


def _check_settings(cls: type[OptionsBase], settings: Mapping[str, Any]) -> None:
    """Refuse options that the model does not have, and values of a wrong type."""
    try:
        cls.check_options(settings)
        for option in fields(cls):
            if option.name in settings:
                check_option(option.name, str(option.type), settings[option.name])
    except InputError as error:
        raise ValueError(f"in the settings, {error}") from None
    texts = [option.name for option in fields(cls) if isinstance(option.default, str)]
    if not all(isinstance(settings.get(name, ""), str) for name in texts):
        raise ValueError(f"in the settings, one of {', '.join(texts)} is not text")


def _is_text(value: Any) -> bool:
    # Half of a surrogate pair cannot be printed.
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 1 << 62)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool) or _is_text(value) or _is_number(value)


def _is_any(value: Any, depth: int = 0) -> bool:
    """Return whether a value can be printed and written again."""
    if depth > _MAX_DEPTH:
        return False
    if isinstance(value, dict):
        return all(_is_text(key) and _is_any(each, depth + 1) for key, each in value.items())
    if isinstance(value, list):
        return all(_is_any(each, depth + 1) for each in value)
    return _is_scalar(value)


def _is_one_of(*values: Any) -> Check:
    return lambda value: any(type(value) is type(one) and value == one for one in values)


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _dict_of(check: Check) -> Check:
    """Return a check of an object with any keys and such values."""
    return lambda value: (
        isinstance(value, dict) and all(map(_is_text, value)) and all(map(check, value.values()))
    )


def _object_of(**checks: Check) -> Check:
    """Return a check of an object with these keys, each with a check of its value."""
    return lambda value: (
        isinstance(value, dict)
        and value.keys() == checks.keys()
        and all(check(value[name]) for name, check in checks.items())
    )


def _is_chosen(value: Any) -> bool:
    return isinstance(value, dict) and _is_any(value) and isinstance(value.get("why"), str)


def _matches(pattern: str) -> Check:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _is_further(value: Any) -> bool:
    """Return whether a value is what ``fit.json`` says of further results."""
    each = _object_of(facts=_dict_of(_is_any), lines=_list_of(_is_text))
    return _dict_of(each)(value) and value.keys() <= further_kinds().keys()


def _is_estimate(value: Any) -> bool:
    """Return whether a value is an estimate with the ends of its interval."""
    return isinstance(value, list) and len(value) == 3 and all(map(_is_finite, value))


_COMMON_CHECKS: Mapping[str, Check] = {
    "format": _is_count,
    "settings": _dict_of(_is_scalar),
    "n_items": _is_count,
    "n_annotators": _is_count,
    "n_dropped": _is_count,
    "n_repeated": _is_count,
    "read_as": _or_none(_is_text),
    "left_out": _or_none(_is_text),
    "fitted_at": _matches(_TIME),
    "frame": _is_one_of(*_FRAMES),
    "n_iter": _is_count,
    "converged": _is_one_of(True, False),
    "stop_reason": _is_text,
    "log_likelihood": _or_none(_is_number),
    "history": _object_of(log_likelihood=_list_of(_is_number), objective=_list_of(_is_number)),
    "versions": _dict_of(_is_text),
    "further": _is_further,
    "data": _is_text,
    "files": _dict_of(_object_of(bytes=_is_count, sha256=_matches(_SHA256))),
    "checksum": _is_text,
}
_is_verdict = _or_none(_is_one_of(*get_args(Verdict)))
_LABEL_CHECKS: Mapping[str, Check] = {
    "model": _is_one_of(*MODELS),
    "n_labels": _is_count,
    "n_categories": _is_count,
    "scale": _is_one_of("nominal", "ordinal"),
    "scale_reason": _or_none(_is_text),
    "bins": _or_none(_list_of(_is_finite)),
    "readout": _is_one_of(*get_args(Readout)),
    "verdict": _is_verdict,
    "chosen": _or_none(_is_chosen),
}
_KIND_CHECKS: Mapping[Any, Mapping[str, Check]] = {
    RANKING: {
        "kind": _is_one_of(RANKING),
        "model": _is_one_of(*PAIR_MODELS),
        "n_comparisons": _is_count,
        "sides_known": _is_one_of(True, False),
        "parts": _is_count,
        "side_bias": _or_none(_is_estimate),
        "coefficients": _dict_of(_is_estimate),
        "verdict": _is_verdict,
        "chosen": _or_none(_is_text),
    },
    SETS: {
        "kind": _is_one_of(SETS),
        "model": _is_one_of(SETS),
        "n_answers": _is_count,
        "n_labels": _is_count,
        "n_sets": _is_count,
        "labels": _list_of(_is_text),
        "separator": _is_text,
        "chosen": _or_none(_is_text),
    },
}
