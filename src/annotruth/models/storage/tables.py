"""The tables of a saved fit: written and read by one schema (`annotruth.models.storage.schema`)."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.models.base_fit import RANKING, SETS, Column
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.fits.past_fits import check_past_fits
from annotruth.models.pairs.posterior import ScorePosterior
from annotruth.models.result import Fit
from annotruth.models.storage.schema import (
    COMPARISONS,
    COVARIANCE,
    LABELS,
    MAX_VALUE,
    OPTIONAL_TABLES,
    PAST_FITS,
    SCHEMAS,
    Read,
    check,
)
from annotruth.observations import Comparisons, Labels, Scale
from annotruth.observations.arrays import Covariates
from annotruth.observations.frames import as_arrow, default_frame
from annotruth.observations.layout import check_index
from annotruth.observations.pairs.table import OUTCOMES
from annotruth.observations.sets import members

_MATRICES = {"data.classifier": None, "data.annotator_prior": ("serious", "irregular")}
"""Arrays with a column per name; of the classifier per code."""

_CODE_PARAMETERS = ("level", "repeated", "repeated_label", "category_group")
_PARAMETER_TYPES = dict.fromkeys(
    (*_CODE_PARAMETERS, *(f"pooled_{name}" for name in _CODE_PARAMETERS)), (pa.int64(),)
)
_FLOATS = (pa.float64(), pa.float32())  # engines hold large parameters in single precision
_PAIR_TYPES = (*_FLOATS, pa.int64(), pa.int32(), pa.uint8(), pa.int8())
_ITEM_CODES = {"favoured"}  # parameters of comparisons that are codes of items, or -1
_SCALARS = {"spread", "tie"}  # parameters of comparisons whose first value is read alone
_OF_SETS = ("probability", "sets", "confidence")  # fields that are saved as parameters

# What fits of a model always have; of other models of labels, distributions.
_SERIOUS = ("distribution", "reliability", "low", "high", "behavior", "p_serious")
_FIELDS = {
    **dict.fromkeys(("mean", "median", "subject-bias"), ("score",)),
    **dict.fromkeys(("gpm", "robust-gpm"), _SERIOUS),
    **dict.fromkeys(
        ("dawid-skene", "one-coin", "ibcc", "ebcc", "bwa", "mace", "glad"),
        ("distribution", "reliability"),
    ),
    "ordinal-mixture": (*_SERIOUS, "score"),
    SETS: _SERIOUS[1:],
}


def make_tables(fit: Fit[Any]) -> tuple[dict[str, pa.Table], dict[str, NDArray[Any]]]:
    """Return the tables to save, one per length, and the parameters."""
    parameters = dict(fit.parameters)
    if fit.kind == SETS:
        parameters |= {name: np.asarray(getattr(fit, name), np.float64) for name in _OF_SETS}
    tables = {}
    for name, columns in (COMPARISONS if fit.kind == "comparisons" else LABELS).items():
        values: dict[str, Any] = {}
        for column, (path, _) in columns.items():
            value: Any = fit
            for part in path.split("."):
                value = None if value is None else getattr(value, part)
            if value is None:
                continue
            if path in _MATRICES:
                value = dict(zip(_MATRICES[path] or range(value.shape[1]), value.T, strict=True))
            if column.endswith("*"):
                values |= {f"{column[:-1]}{key}": each for key, each in value.items()}
            else:
                key = column.removesuffix("?")
                values[key] = value[:-1] if key.endswith("_from") else value
        if name == "comparisons":
            values["annotator"] = values["annotator"]().astype(np.int32)
            values["row"] = np.argsort(np.argsort(values["row"]))  # without those left out
        if values or name not in OPTIONAL_TABLES:
            tables[name] = pa.table(values)
    if fit.earlier_fits is not None:
        tables[PAST_FITS] = fit.earlier_fits
    return tables, parameters


class ModelColumns(dict[str, Column]):
    """The model-specific columns of a table; a missing one is an `InputError`."""

    def __missing__(self, name: str) -> Column:
        raise InputError(
            f"this saved fit has no column {name}: it was saved by another version of annotruth, or "
            "changed; fit the labels again"
        )


def check_table(name: str, table: pa.Table) -> None:
    """Refuse a table that Arrow finds invalid, or that has a column name twice."""
    table.validate(full=True)
    columns = table.column_names
    check(len(set(columns)) == len(columns), f"{name} has a column twice")


def make_fit(
    entries: Mapping[str, Any], tables: Mapping[str, pa.Table], arrays: Mapping[str, pa.Tensor]
) -> Fit[Any]:
    """Return the fit of checked entries of ``fit.json``, and of tables and arrays to check.

    ``arrays`` are the parameters, and the covariance of scores.
    """
    kind = entries.get("kind")
    for name, table in tables.items():
        check_table(name, table)
    values = _read_columns(SCHEMAS[kind], tables, entries)
    chosen, history = entries.get("chosen"), entries["history"]
    types = dict.fromkeys(arrays, _PAIR_TYPES) if kind == RANKING else _PARAMETER_TYPES
    fit: Fit[Any] = Fit(
        model=entries["model"],
        settings=entries["settings"],
        data=(_comparisons if kind == RANKING else _labels)(entries, values),
        history=History(
            log_likelihood=np.array(history["log_likelihood"], dtype=np.float64),
            objective=np.array(history["objective"], dtype=np.float64),
            converged=entries["converged"],
            stop_reason=entries["stop_reason"],
        ),
        parameters={
            name: _parameter(name, tensor, types.get(name, _FLOATS))
            for name, tensor in arrays.items()
            if name != COVARIANCE
        },
        verdict=entries.get("verdict"),
        chosen={"why": chosen} if isinstance(chosen, str) else chosen,
        fitted_at=datetime.fromisoformat(entries["fitted_at"]),
        readout=entries.get("readout", "right"),
        distribution=_distribution(values.get("distribution", {})),
        other_distribution=_distribution(values.get("other_distribution", {})),
        earlier_fits=tables.get(PAST_FITS),
        **values[""],
    )
    if kind == RANKING:
        return _with_scores(fit, entries, values["scores"]["mean"], arrays[COVARIANCE])
    if fit.earlier_fits is not None:
        check_past_fits(fit.earlier_fits)
    for name in _FIELDS.get(fit.model, ("distribution",)):
        check(getattr(fit, name) is not None, f"{fit.model} has no {name}")
    return _with_sets(fit, entries) if kind == SETS else fit


def _read_columns(
    schema: Mapping[str, Mapping[str, tuple[str, Read]]],
    tables: Mapping[str, pa.Table],
    entries: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """Return the checked columns of a schema by the object that has them: "data", or "" for the fit."""
    lengths = {name: table.num_rows for name, table in tables.items()}
    lengths |= {"parts": entries.get("parts", 0), "outcomes": len(OUTCOMES)}
    found: dict[str, dict[str, Any]] = {"": {}}
    for name, table in tables.items():
        for key, (path, read) in schema[name].items():
            owner, _, field = path.rpartition(".")
            column = key.rstrip("?*")
            if key.endswith("*"):
                several = {
                    each.removeprefix(column): read(each.removeprefix(column), table[each], lengths)
                    for each in table.column_names
                    if each.startswith(column)
                }
                value: Any = ModelColumns(several)
                if path in _MATRICES:
                    names = _MATRICES[path] or map(str, range(lengths["categories"]))
                    value = np.column_stack([several[each] for each in names]) if several else None
                found.setdefault(owner, {})[field] = value
            elif column in table.column_names:
                found.setdefault(owner, {})[field] = read(column, table[column], lengths)
            else:
                check(key.endswith("?"), f"{name} has no {column}")
    return found


def _parameter(name: str, tensor: pa.Tensor, types: tuple[pa.DataType, ...]) -> NDArray[Any]:
    """Return a parameter of one of the types; `Fit.parameter` checks its shape."""
    check(tensor.type in types, f"parameter {name} is not of type {types[0]}")
    values = np.array(tensor.to_numpy(), order="C")
    check(np.isfinite(values).all(), f"parameter {name} has a value that is not finite")
    return values


def _distribution(columns: Mapping[str, Any]) -> Distribution | None:
    if "ptr" not in columns:
        return None
    check(len(columns) == 3, "a distribution has no probabilities")
    ascends = _is_ascending(columns["category"], columns["ptr"])
    check(ascends, "categories of a distribution do not ascend")
    return Distribution(**columns)


def _is_ascending(codes: NDArray[np.int32], pointers: NDArray[np.int64]) -> bool:
    """Return whether codes ascend from each pointer to the next."""
    rises = np.diff(codes) > 0
    rises[pointers[1:-1] - 1] = True  # between the last of an item and the first of the next
    return bool(rises.all())


def _with_sets(fit: Fit, entries: Mapping[str, Any]) -> Fit:
    names, parameters = entries["labels"], dict(fit.parameters)
    check(len(set(names)) == len(names) == entries["n_labels"] > 0, "labels are not all different")
    scale = replace(fit.data.scale, set_labels=as_arrow(names))
    members(scale)  # every category must be a set of these labels
    n_items, n_people, n = fit.data.n_items, fit.data.n_annotators, len(names)
    shapes = {
        **dict.fromkeys(("sensitivity", "specificity"), (n_people, n)),
        "probability": (n_items, n),
        "sets": (n_items, n),
        "confidence": (n_items,),
    }
    for name, shape in shapes.items():
        values = fit.parameter(name, *shape)
        inside = values.min() >= -1e-9 and values.max() <= 1.0 + 1e-9
        check(inside, f"{name} has a value outside 0..1")
    probability, sets, confidence = (parameters.pop(name) for name in _OF_SETS)
    return replace(
        fit,
        data=replace(fit.data, scale=scale),
        probability=probability,
        sets=sets > 0.5,
        confidence=confidence,
        parameters=parameters,
        separator=entries["separator"],
    )


def _with_scores(
    fit: Fit[Any], entries: Mapping[str, Any], mean: NDArray[np.float64], tensor: pa.Tensor
) -> Fit[Any]:
    """Return the fit with the estimates that only fits of comparisons have.

    The covariance of scores has one or two axes of items.
    """
    n, covariance = len(mean), _parameter(COVARIANCE, tensor, _FLOATS)
    for name in _ITEM_CODES & fit.parameters.keys():
        check_index(name, fit.parameters[name], n, least=-1)
    for name in _SCALARS & fit.parameters.keys():
        check(fit.parameters[name].size > 0, f"{name} is empty")
    check(len(np.unique(fit.part)) == entries["parts"], "parts is not the number of parts")
    check(covariance.shape in ((n,), (n, n)), "the covariance is not of the items")
    check(np.abs(covariance).max() < MAX_VALUE, "the covariance has too large a value")
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    check(variances.min() >= 0, "a variance is below 0")
    side_bias, coefficients = entries["side_bias"], entries["coefficients"]
    return replace(
        fit,
        scores=ScorePosterior(mean, covariance),
        side_bias=None if side_bias is None else np.array(side_bias, dtype=np.float64),
        coefficients={
            name: np.array(values, dtype=np.float64) for name, values in coefficients.items()
        },
    )


def _check_counts(entries: Mapping[str, Any], **counts: int) -> None:
    for name, count in counts.items():
        check(entries[name] == count > 0, f"{name} is not the number of rows")


def _about_rows(entries: Mapping[str, Any]) -> dict[str, Any]:
    frame = entries["frame"]
    return {
        "n_dropped": entries["n_dropped"],
        "n_repeated": entries["n_repeated"],
        "unused": entries.get("unused") or {},
        "frame": frame if importlib.util.find_spec(frame) else default_frame(),
        "read_as": entries["read_as"] or "",
        "left_out": entries["left_out"] or "",
    }


def _comparisons(entries: Mapping[str, Any], values: dict[str, dict[str, Any]]) -> Comparisons:
    data = values["data"]
    annotator, n_annotators = data.pop("annotator_of_comparison"), len(data["annotators"])
    n_items, n = len(data["items"]), len(annotator)
    _check_counts(entries, n_items=n_items, n_annotators=n_annotators, n_comparisons=n)
    check((np.diff(annotator) >= 0).all(), "comparisons are not sorted by annotator")
    check((data["left"] != data["right"]).all(), "an item is compared with itself")
    check(("context" in data) == ("contexts" in data), "contexts are not those of comparisons")
    per_annotator = np.bincount(annotator, minlength=n_annotators)
    return Comparisons(
        annotator_ptr=np.append(0, np.cumsum(per_annotator)).astype(np.int64),
        sides_known=entries["sides_known"],
        **data,
        **_about_rows(entries),
    )


def _labels(entries: Mapping[str, Any], values: dict[str, dict[str, Any]]) -> Labels:
    data, scale = values["data"], _scale(entries, **values["data.scale"])
    n_annotators, are_sets = len(data["annotators"]), entries.get("kind") == SETS
    counts = {
        "n_answers" if are_sets else "n_labels": len(data["annotator"]),
        "n_sets" if are_sets else "n_categories": len(scale),
    }
    _check_counts(entries, n_items=len(data["items"]), n_annotators=n_annotators, **counts)
    ascends = _is_ascending(data["cell_category"], data["item_ptr"])
    check(ascends, "categories of an item do not ascend")
    per_annotator = np.bincount(data["annotator"], minlength=n_annotators)
    check(per_annotator.min() > 0, "an annotator has no label")
    prior, predictions = data["annotator_prior"], data["classifier"]
    check(prior is None or (prior >= 0).all(), "a prior of annotators is below 0")
    if predictions is not None:
        rows = predictions[~np.isnan(predictions).all(axis=1)]
        is_right = (rows >= 0.0).all() and (np.abs(rows.sum(axis=1) - 1.0) < 1e-6).all()
        check(is_right, "a prediction of the classifier is no distribution")
    covariates = Covariates(**values["data.covariates"])
    return Labels(scale=scale, covariates=covariates, **data, **_about_rows(entries))


def _scale(entries: Mapping[str, Any], categories: pa.Array, values: NDArray[np.float64]) -> Scale:
    check(np.abs(values).max() < MAX_VALUE, "a category has too large a value")
    check(len(categories.unique()) == len(categories), "a category is there twice")
    edges = entries.get("bins")
    if edges is not None:
        edges = np.array(edges, dtype=np.float64)
        right = len(edges) == len(categories) + 1 and (np.diff(edges) > 0).all()
        check(right, "bins do not ascend")
    kind = entries.get("scale", "nominal")
    return Scale(kind, categories, values, edges, entries.get("scale_reason") or "")
