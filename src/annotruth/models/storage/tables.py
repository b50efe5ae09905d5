"""The tables of a saved fit of labels: from a fit to tables, and back with every value checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.models.base_fit import FLAGGED, Readout
from annotruth.models.distribution import Distribution
from annotruth.models.fits.past_fits import check_past_fits, with_new_columns
from annotruth.models.result import Fit
from annotruth.models.storage.columns import (
    MAX_VALUE,
    MODEL_COLUMN,
    ModelColumns,
    check,
    check_table,
    covariates_in,
    installed_frame,
    is_ascending,
    make_table,
    prefixed,
    read_codes,
    read_finite,
    read_history,
    read_ids,
    read_numbers,
    read_parameter,
    read_pointers,
    read_rows,
    read_shares,
    read_texts,
)
from annotruth.observations import Labels, Scale
from annotruth.observations.arrays import Covariates

TABLES = ("items", "cells", "labels", "annotators", "categories", "distribution")
"""The tables that every saved fit has."""

OTHER_TABLE = "other-distribution"
"""The table of fits that have both read-outs."""

PAST_FITS = "past-fits"
"""The table of fits that continue earlier ones."""

_START, _OTHER_START = "entries_from", "other_entries_from"  # of an item in those tables
_PRIOR_COLUMNS = ("record_serious", "record_irregular")
_CLASSIFIER = "classifier:"  # prefix of columns of a classifier's probabilities, by category code
_ANNOTATOR_FIELDS = ("reliability", "low", "high", "behavior")


# Model-specific columns and parameters that are not of type float64.
_COLUMN_TYPES = {"may_lead": pa.string(), "at_floor": pa.bool_(), FLAGGED: pa.bool_()}
_CODES = ("level", "repeated", "repeated_label", "category_group")
_PARAMETER_TYPES = dict.fromkeys((*_CODES, *(f"pooled_{name}" for name in _CODES)), (pa.int64(),))

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
    "sets": _SERIOUS[1:],
}


def make_tables(fit: Fit) -> dict[str, pa.Table]:
    """Return the tables to save, one per length; of pointers, the starts are stored."""
    data, theta, other = fit.data, fit.distribution, fit.other_distribution
    annotators = {name: getattr(fit, name) for name in _ANNOTATOR_FIELDS}
    if data.annotator_prior is not None:
        annotators |= dict(zip(_PRIOR_COLUMNS, data.annotator_prior.T, strict=True))
    annotators["annotator_weight"] = data.annotator_weight
    covariates = data.covariates
    labels = {"annotator": data.annotator, "row": data.row, "p_serious": fit.p_serious}
    tables = {
        "items": make_table(
            {
                "item": data.items,
                "cells_from": data.item_ptr[:-1],
                "known": data.known,
                _START: None if theta is None else theta.ptr[:-1],
                _OTHER_START: None if other is None else other.ptr[:-1],
                "score": fit.score,
                **prefixed(covariates.items),
                **_classifier_columns(data),
            },
            fit.item_columns,
        ),
        "cells": pa.table({"category": data.cell_category, "labels_from": data.cell_ptr[:-1]}),
        "labels": make_table({**labels, **prefixed(covariates.labels)}),
        "annotators": make_table(
            {"annotator": data.annotators, **annotators, **prefixed(covariates.annotators)},
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


def _classifier_columns(data: Labels) -> dict[str, NDArray[np.float64]]:
    """Return a classifier's probabilities, one column per category; NaN for items without any."""
    if data.classifier is None:
        return {}
    return {f"{_CLASSIFIER}{code}": column for code, column in enumerate(data.classifier.T)}


def _distribution_table(theta: Distribution | None) -> pa.Table:
    """Return the entries of a distribution, without the items they belong to."""
    return make_table(
        {} if theta is None else {"category": theta.category, "probability": theta.probability}
    )


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
        check_table(name, table)
    items, annotators = tables["items"], tables["annotators"]
    n_categories = tables["categories"].num_rows
    fit = Fit(
        model=entries["model"],
        settings=entries["settings"],
        data=_labels(entries, tables),
        history=read_history(entries),
        distribution=_distribution(items, _START, tables["distribution"], n_categories),
        other_distribution=_distribution(
            items, _OTHER_START, tables.get(OTHER_TABLE), n_categories
        ),
        score=read_finite(items, "score"),
        reliability=read_shares(annotators, "reliability"),
        low=read_shares(annotators, "low"),
        high=read_shares(annotators, "high"),
        behavior=read_texts(annotators, "behavior"),
        p_serious=read_shares(tables["labels"], "p_serious"),
        item_columns=ModelColumns(items, _COLUMN_TYPES),
        annotator_columns=ModelColumns(annotators, _COLUMN_TYPES),
        parameters={
            name: read_parameter(name, tensor, _PARAMETER_TYPES)
            for name, tensor in parameters.items()
        },
        chosen=entries.get("chosen"),
        readout=entries.get("readout") or _old_readout(entries["model"], items),
        verdict=entries.get("verdict"),
        fitted_at=datetime.fromisoformat(entries["fitted_at"]),
        earlier_fits=with_new_columns(tables[PAST_FITS]) if PAST_FITS in tables else None,
    )
    if fit.earlier_fits is not None:
        check_past_fits(fit.earlier_fits)
    for name in _FIELDS.get(fit.model, ("distribution",)):
        check(getattr(fit, name) is not None, f"{fit.model} has no {name}")
    return fit


def _old_readout(model: str, items: pa.Table) -> Readout:
    """Return the read-out of a fit by version 0.1.0, which did not save it."""
    if model in ("dawid-skene", "glad", "ordinal-binary"):
        return "right"
    shares = f"{MODEL_COLUMN}confidence_low"  # an interval of a share of opinion
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
        check(entries[name] == count > 0, f"{name} is not the number of rows")
    item_ptr = read_pointers(items, "cells_from", cells.num_rows)
    cell_category = read_codes(cells, "category", categories.num_rows)
    check(is_ascending(cell_category, item_ptr), "categories of an item do not ascend")
    annotator = read_codes(labels, "annotator", annotators.num_rows)
    per_annotator = np.bincount(annotator, minlength=annotators.num_rows)
    check(per_annotator.min() > 0, "an annotator has no label")
    return Labels(
        items=read_ids(items, "item"),
        annotators=read_ids(annotators, "annotator"),
        scale=_scale(entries, categories),
        item_ptr=item_ptr,
        cell_category=cell_category,
        cell_ptr=read_pointers(cells, "labels_from", n_labels),
        annotator=annotator,
        row=read_rows(labels, "row", n_labels),
        known=read_codes(items, "known", categories.num_rows, least=-1),
        annotator_prior=_annotator_prior(annotators),
        annotator_weight=read_shares(annotators, "annotator_weight"),
        classifier=_classifier(items, categories.num_rows),
        covariates=Covariates(
            covariates_in(labels), covariates_in(annotators), covariates_in(items)
        ),
        n_dropped=entries["n_dropped"],
        n_repeated=entries.get("n_repeated", 0),
        frame=installed_frame(entries["frame"]),
        read_as=entries.get("read_as") or "",
        left_out=entries.get("left_out") or "",
    )


def _scale(entries: Mapping[str, Any], categories: pa.Table) -> Scale:
    names, values = read_ids(categories, "category"), read_finite(categories, "value")
    check(values is not None, "categories have no values")
    check(np.abs(values).max() < MAX_VALUE, "a category has too large a value")
    check(len(names.unique()) == len(names), "a category is there twice")
    edges = entries.get("bins")
    if edges is not None:
        edges = np.array(edges, dtype=np.float64)
        check(len(edges) == len(names) + 1 and (np.diff(edges) > 0).all(), "bins do not ascend")
    return Scale(entries["scale"], names, values, edges, entries.get("scale_reason") or "")


def _distribution(
    items: pa.Table, start: str, rows: pa.Table | None, n_categories: int
) -> Distribution | None:
    if rows is None or start not in items.column_names:
        return None
    pointers = read_pointers(items, start, rows.num_rows)
    category = read_codes(rows, "category", n_categories)
    check(is_ascending(category, pointers), "categories of a distribution do not ascend")
    probability = read_shares(rows, "probability")
    check(probability is not None, "a distribution has no probabilities")
    return Distribution(pointers, category, probability)


def _annotator_prior(annotators: pa.Table) -> NDArray[np.float64] | None:
    if _PRIOR_COLUMNS[0] not in annotators.column_names:
        return None
    prior = np.column_stack([read_finite(annotators, name) for name in _PRIOR_COLUMNS])
    check((prior >= 0).all(), "a prior of annotators is below 0")
    return prior


def _classifier(items: pa.Table, n_categories: int) -> NDArray[np.float64] | None:
    names = [f"{_CLASSIFIER}{code}" for code in range(n_categories)]
    if names[0] not in items.column_names:
        return None
    predictions = np.column_stack([read_numbers(items, name, (pa.float64(),)) for name in names])
    rows = predictions[~np.isnan(predictions).all(axis=1)]
    is_right = (rows >= 0.0).all() and (np.abs(rows.sum(axis=1) - 1.0) < 1e-6).all()
    check(is_right, "a prediction of the classifier is no distribution")
    return predictions
