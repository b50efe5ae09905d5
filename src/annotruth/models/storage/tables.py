"""The tables of a saved fit: from a fit to tables, and back with every value checked.

Tables may come from anywhere. Kernels index with codes and pointers without checks of their own, so
whatever is wrong must be found here; it raises a ValueError.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.labels import Labels, Scale
from annotruth.labels.arrays import Covariates
from annotruth.labels.frames import default_frame
from annotruth.labels.layout import check_index, check_pointers
from annotruth.labels.scale import is_text
from annotruth.models.base_fit import Column, Readout
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.past_fits import check_past_fits
from annotruth.models.result import Fit

TABLES = ("items", "cells", "labels", "annotators", "categories", "distribution")
"""The tables that every saved fit has."""

OTHER_TABLE = "other-distribution"
"""The table of fits that have both read-outs."""

PAST_FITS = "past-fits"
"""The table of fits that continue earlier ones."""

_START, _OTHER_START = "entries_from", "other_entries_from"  # of an item in those tables
_MODEL_COLUMN = "model:"  # prefix of the names of model-specific columns
_COVARIATE = "covariate:"  # prefix of the names of covariates
_PRIOR_COLUMNS = ("record_serious", "record_irregular")
_ANNOTATOR_FIELDS = ("reliability", "low", "high", "behavior")

_POINTER = (pa.int64(),)
_CODE = (pa.int32(),)
_ROW = (pa.int32(), pa.int64())
_NUMBER = (pa.float64(),)
_PROBABILITY_SLACK = 1e-6  # of rounding, by which a probability may be above 1
_MAX_VALUE = 1e150  # so that squares are finite

# Model-specific columns and parameters that are not of type float64.
_COLUMN_TYPES = {"may_lead": pa.string(), "at_floor": pa.bool_()}
_PARAMETER_TYPES = dict.fromkeys(("level", "repeated", "repeated_label"), (pa.int64(),))

# What fits of a model always have; of other models, distributions.
_SERIOUS = ("distribution", "reliability", "low", "high", "behavior", "p_serious")
_FIELDS = {
    **dict.fromkeys(("mean", "median", "subject-bias"), ("score",)),
    **dict.fromkeys(("gpm", "robust-gpm"), _SERIOUS),
    **dict.fromkeys(
        ("dawid-skene", "one-coin", "ibcc", "ebcc", "bwa", "mace", "glad"),
        ("distribution", "reliability"),
    ),
    "ordinal-mixture": (*_SERIOUS, "score"),
}


def make_tables(fit: Fit) -> dict[str, pa.Table]:
    """Return the tables to save, one per length; of pointers, the starts are stored."""
    data, theta, other = fit.data, fit.distribution, fit.other_distribution
    annotators = {name: getattr(fit, name) for name in _ANNOTATOR_FIELDS}
    if data.annotator_prior is not None:
        annotators |= dict(zip(_PRIOR_COLUMNS, data.annotator_prior.T, strict=True))
    covariates = data.covariates
    labels = {"annotator": data.annotator, "row": data.row, "p_serious": fit.p_serious}
    tables = {
        "items": _table(
            {
                "item": data.items,
                "cells_from": data.item_ptr[:-1],
                "known": data.known,
                _START: None if theta is None else theta.ptr[:-1],
                _OTHER_START: None if other is None else other.ptr[:-1],
                "score": fit.score,
                **_prefixed(covariates.items),
            },
            fit.item_columns,
        ),
        "cells": pa.table({"category": data.cell_category, "labels_from": data.cell_ptr[:-1]}),
        "labels": _table({**labels, **_prefixed(covariates.labels)}),
        "annotators": _table(
            {"annotator": data.annotators, **annotators, **_prefixed(covariates.annotators)},
            fit.annotator_columns,
        ),
        "categories": pa.table({"category": data.scale.categories, "value": data.scale.values}),
        "distribution": _distribution_table(theta),
    }
    if other is not None:
        tables[OTHER_TABLE] = _distribution_table(other)
    if fit.earlier_fits is not None:
        tables[PAST_FITS] = fit.earlier_fits
    return tables


def _distribution_table(theta: Distribution | None) -> pa.Table:
    """Return the entries of a distribution, without the items they belong to."""
    return _table(
        {} if theta is None else {"category": theta.category, "probability": theta.probability}
    )


def _table(columns: dict[str, Any], model_columns: Mapping[str, Any] | None = None) -> pa.Table:
    """Return a table of the columns that are not None; model-specific ones get a prefix."""
    prefixed = {f"{_MODEL_COLUMN}{name}": column for name, column in (model_columns or {}).items()}
    return pa.table(
        {name: column for name, column in {**columns, **prefixed}.items() if column is not None}
    )


def _prefixed(covariates: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    return {f"{_COVARIATE}{name}": column for name, column in covariates.items()}


def has_other_table(items: pa.Table) -> bool:
    """Return whether a fit with this table of items has the table of the other read-out."""
    return _OTHER_START in items.column_names


def make_fit(
    entries: Mapping[str, Any],
    tables: Mapping[str, pa.Table],
    parameters: Mapping[str, pa.Tensor],
) -> Fit:
    """Return the fit of checked entries of ``fit.json``, and of tables and parameters to check."""
    for name, table in tables.items():
        _check_table(name, table)
    items, annotators = tables["items"], tables["annotators"]
    history, n_categories = entries["history"], tables["categories"].num_rows
    fit = Fit(
        model=entries["model"],
        settings=entries["settings"],
        data=_labels(entries, tables),
        history=History(
            log_likelihood=np.array(history["log_likelihood"], dtype=np.float64),
            objective=np.array(history["objective"], dtype=np.float64),
            converged=entries["converged"],
            stop_reason=entries["stop_reason"],
        ),
        distribution=_distribution(items, _START, tables["distribution"], n_categories),
        other_distribution=_distribution(
            items, _OTHER_START, tables.get(OTHER_TABLE), n_categories
        ),
        score=_finite(items, "score"),
        reliability=_shares(annotators, "reliability"),
        low=_shares(annotators, "low"),
        high=_shares(annotators, "high"),
        behavior=_texts(annotators, "behavior"),
        p_serious=_shares(tables["labels"], "p_serious"),
        item_columns=_Columns(items),
        annotator_columns=_Columns(annotators),
        parameters={name: _parameter(name, tensor) for name, tensor in parameters.items()},
        chosen=entries.get("chosen"),
        readout=entries.get("readout") or _old_readout(entries["model"], items),
        verdict=entries.get("verdict"),
        fitted_at=datetime.fromisoformat(entries["fitted_at"]),
        earlier_fits=tables.get(PAST_FITS),
    )
    if fit.earlier_fits is not None:
        check_past_fits(fit.earlier_fits)
    for name in _FIELDS.get(fit.model, ("distribution",)):
        _check(getattr(fit, name) is not None, f"{fit.model} has no {name}")
    return fit


def _check_table(name: str, table: pa.Table) -> None:
    """Refuse a table that Arrow finds invalid, or that has a column name twice."""
    table.validate(full=True)
    columns = table.column_names
    _check(len(set(columns)) == len(columns), f"{name} has a column twice")


def _check(is_right: bool | np.bool_, otherwise: str) -> None:
    if not is_right:
        raise ValueError(otherwise)


def _covariates(table: pa.Table) -> dict[str, pa.Array]:
    """Return the covariates in a table, without the prefix."""
    return {
        name.removeprefix(_COVARIATE): column.combine_chunks()
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name.startswith(_COVARIATE)
    }


class _Columns(dict[str, Column]):
    """The model-specific columns of a table, without the prefix; a missing one is an `InputError`."""

    def __init__(self, table: pa.Table) -> None:
        for name, column in zip(table.column_names, table.columns, strict=True):
            if name.startswith(_MODEL_COLUMN):
                plain = name.removeprefix(_MODEL_COLUMN)
                type_ = _COLUMN_TYPES.get(plain, pa.float64())
                if is_text(type_):
                    right = column.type == type_ and not column.null_count
                    _check(right, f"{name} is not of type {type_}")
                    self[plain] = column.combine_chunks()
                else:
                    self[plain] = _numbers(table, name, (type_,))
                    too_large = np.abs(self[plain]) > _MAX_VALUE  # or infinite
                    _check(not too_large.any(), f"{name} has too large a value")

    def __missing__(self, name: str) -> Column:
        raise InputError(
            f"this saved fit has no column {name}: it was saved by another version of annotruth, or "
            "changed; fit the labels again"
        )


def _parameter(name: str, tensor: pa.Tensor) -> NDArray[Any]:
    """Return a parameter; `BaseFit.parameter` checks its shape."""
    # Engines hold large parameters in single precision.
    types = _PARAMETER_TYPES.get(name, (pa.float64(), pa.float32()))
    _check(tensor.type in types, f"parameter {name} is not of type {types[0]}")
    values = np.array(tensor.to_numpy(), order="C")
    _check(np.isfinite(values).all(), f"parameter {name} has a value that is not finite")
    return values


def _old_readout(model: str, items: pa.Table) -> Readout:
    """Return the read-out of a fit by version 0.1.0, which did not save it."""
    if model in ("dawid-skene", "glad", "ordinal-binary"):
        return "right"
    shares = f"{_MODEL_COLUMN}confidence_low"  # an interval of a share of opinion
    return "right" if model == "robust-gpm" and shares not in items.column_names else "opinion"


def _labels(entries: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Labels:
    items, cells, labels, annotators, categories = (tables[name] for name in TABLES[:5])
    n_items, n_labels = items.num_rows, labels.num_rows
    counts = {
        "n_items": n_items,
        "n_annotators": annotators.num_rows,
        "n_labels": n_labels,
        "n_categories": categories.num_rows,
    }
    for name, count in counts.items():
        _check(entries[name] == count > 0, f"{name} is not the number of rows")
    item_ptr = _pointers(items, "cells_from", cells.num_rows)
    cell_category = _codes(cells, "category", categories.num_rows)
    _check(_ascend(cell_category, item_ptr), "categories of an item do not ascend")
    annotator = _codes(labels, "annotator", annotators.num_rows)
    per_annotator = np.bincount(annotator, minlength=annotators.num_rows)
    _check(per_annotator.min() > 0, "an annotator has no label")
    row = _codes(labels, "row", n_labels, types=_ROW)
    is_there = np.zeros(n_labels, dtype=np.bool_)
    is_there[row] = True
    _check(is_there.all(), "a row is there twice")
    return Labels(
        items=_ids(items, "item"),
        annotators=_ids(annotators, "annotator"),
        scale=_scale(entries, categories),
        item_ptr=item_ptr,
        cell_category=cell_category,
        cell_ptr=_pointers(cells, "labels_from", n_labels),
        annotator=annotator,
        row=row,
        known=_codes(items, "known", categories.num_rows, least=-1),
        annotator_prior=_annotator_prior(annotators),
        covariates=Covariates(_covariates(labels), _covariates(annotators), _covariates(items)),
        n_dropped=entries["n_dropped"],
        n_repeated=entries.get("n_repeated", 0),
        frame=_frame(entries["frame"]),
        read_as=entries.get("read_as") or "",
        left_out=entries.get("left_out") or "",
    )


def _frame(library: str) -> str:
    """Return the frame library, or the default one where it is not installed."""
    return library if importlib.util.find_spec(library) else default_frame()


def _scale(entries: Mapping[str, Any], categories: pa.Table) -> Scale:
    names, values = _ids(categories, "category"), _finite(categories, "value")
    _check(values is not None, "categories have no values")
    _check(np.abs(values).max() < _MAX_VALUE, "a category has too large a value")
    _check(len(names.unique()) == len(names), "a category is there twice")
    edges = entries.get("bins")
    if edges is not None:
        edges = np.array(edges, dtype=np.float64)
        _check(len(edges) == len(names) + 1 and (np.diff(edges) > 0).all(), "bins do not ascend")
    return Scale(entries["scale"], names, values, edges, entries.get("scale_reason") or "")


def _distribution(
    items: pa.Table, start: str, rows: pa.Table | None, n_categories: int
) -> Distribution | None:
    if rows is None or start not in items.column_names:
        return None
    pointers = _pointers(items, start, rows.num_rows)
    category = _codes(rows, "category", n_categories)
    _check(_ascend(category, pointers), "categories of a distribution do not ascend")
    probability = _shares(rows, "probability")
    _check(probability is not None, "a distribution has no probabilities")
    return Distribution(pointers, category, probability)


def _annotator_prior(annotators: pa.Table) -> NDArray[np.float64] | None:
    if _PRIOR_COLUMNS[0] not in annotators.column_names:
        return None
    prior = np.column_stack([_finite(annotators, name) for name in _PRIOR_COLUMNS])
    _check((prior >= 0).all(), "a prior of annotators is below 0")
    return prior


def _ids(table: pa.Table, name: str) -> pa.Array:
    """Return ids or categories: numbers, text or times, none of them missing."""
    column = table[name]
    odd = pa.types.is_nested(column.type) or pa.types.is_null(column.type)
    _check(not (odd or column.null_count), f"{name} has a missing or nested value")
    return column.combine_chunks()


def _texts(table: pa.Table, name: str) -> list[str] | None:
    if name not in table.column_names:
        return None
    _check(is_text(table[name].type) and not table[name].null_count, f"{name} is not text")
    texts: list[str] = table[name].to_pylist()
    return texts


def _numbers(table: pa.Table, name: str, types: tuple[pa.DataType, ...]) -> Any:
    """Return a column without missing values and of one of the types; raise otherwise."""
    column = table[name]
    _check(column.type in types and not column.null_count, f"{name} is not of type {types[0]}")
    return column.to_numpy()


def _finite(table: pa.Table, name: str) -> Any:
    """Return a column of finite numbers, or None if there is none."""
    if name not in table.column_names:
        return None
    numbers = _numbers(table, name, _NUMBER)
    _check(np.isfinite(numbers).all(), f"{name} has a value that is not finite")
    return numbers


def _shares(table: pa.Table, name: str) -> Any:
    """Return a column of numbers from 0 to 1, or None if there is none."""
    shares = _finite(table, name)
    if shares is not None and len(shares):
        inside = shares.min() >= 0.0 and shares.max() <= 1.0 + _PROBABILITY_SLACK
        _check(inside, f"{name} has a value outside 0..1")
    return shares


def _pointers(table: pa.Table, name: str, length: int) -> NDArray[np.int64]:
    """Return the starts and the end; raise unless they ascend, as kernels index with them."""
    pointers = np.append(_numbers(table, name, _POINTER), length)
    check_pointers(name, pointers, length)
    return pointers


def _codes(
    table: pa.Table, name: str, n: int, least: int = 0, types: tuple[pa.DataType, ...] = _CODE
) -> Any:
    """Return codes; raise unless they are in range, as kernels index with them."""
    codes = _numbers(table, name, types)
    check_index(name, codes, n, least)
    return codes


def _ascend(codes: NDArray[np.int32], pointers: NDArray[np.int64]) -> bool:
    """Return whether codes ascend from each pointer to the next."""
    rises = np.diff(codes) > 0
    rises[pointers[1:-1] - 1] = True  # between the last of an item and the first of the next
    return bool(rises.all())
