"""The tables of a saved fit: from a fit to tables and arrays, and back with every value checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import FLAGGED, RANKING, SETS
from annotruth.models.distribution import Distribution
from annotruth.models.fits.past_fits import check_past_fits
from annotruth.models.pairs.posterior import ScorePosterior
from annotruth.models.result import Fit
from annotruth.models.storage.checks import (
    MAX_VALUE,
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
from annotruth.observations import Comparisons, Labels, Scale
from annotruth.observations.arrays import Covariates
from annotruth.observations.frames import as_arrow
from annotruth.observations.layout import check_index
from annotruth.observations.pairs.table import OUTCOMES
from annotruth.observations.sets import members

TABLES = {
    RANKING: ("items", "annotators", "comparisons"),
    None: ("items", "cells", "labels", "annotators", "categories", "distribution"),
}
"""The tables that every saved fit has, by the entry ``kind``; those of sets are those of labels."""

OTHER_TABLE, PAST_FITS, CONTEXTS = "other-distribution", "past-fits", "contexts"
"""Tables of fits that have both read-outs, that continue earlier ones, and of comparisons in contexts."""

COVARIANCE = "covariance"
"""The array of the scores' covariance: items x items, or one variance per item."""

_START, _OTHER_START = "entries_from", "other_entries_from"  # of an item in those tables
_PRIOR_COLUMNS = ("record_serious", "record_irregular")
_CLASSIFIER = "classifier:"  # prefix of columns of a classifier's probabilities, by category code
_FURTHER = "further:"  # prefix of further columns of comparisons
_ESTIMATES = ("reliability", "low", "high")
_OF_SETS = ("probability", "sets", "confidence")  # fields that are saved as parameters

# Model-specific columns and parameters that are not of type float64.
_COLUMN_TYPES = {"may_lead": pa.string(), "at_floor": pa.bool_(), FLAGGED: pa.bool_()}
_PAIR_COLUMN_TYPES = {"evidence": pa.string(), "group": pa.int64()}
_CODES = ("level", "repeated", "repeated_label", "category_group")
_PARAMETER_TYPES = dict.fromkeys((*_CODES, *(f"pooled_{name}" for name in _CODES)), (pa.int64(),))
_PAIR_TYPES = (pa.float64(), pa.float32(), pa.int64(), pa.int32(), pa.uint8(), pa.int8())
_ITEM_CODES = {"favoured"}  # parameters of comparisons that are codes of items, or -1

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
    if fit.kind == "comparisons":
        return _comparison_tables(fit), parameters
    if fit.kind == SETS:
        parameters |= {name: np.asarray(getattr(fit, name), np.float64) for name in _OF_SETS}
    return _label_tables(fit), parameters


def _annotator_table(fit: Fit[Any], covariates: Mapping[str, pa.Array], **more: Any) -> pa.Table:
    columns = {
        "annotator": fit.data.annotators,
        **{name: getattr(fit, name) for name in (*_ESTIMATES, "behavior")},
        **more,
        "annotator_weight": fit.data.annotator_weight,
        **prefixed(covariates),
    }
    return make_table(columns, fit.annotator_columns)


def _label_tables(fit: Fit) -> dict[str, pa.Table]:
    """Return the tables of a fit of labels; of pointers, the starts are stored."""
    data, theta, other = fit.data, fit.distribution, fit.other_distribution
    prior = () if data.annotator_prior is None else data.annotator_prior.T
    predicted = () if data.classifier is None else data.classifier.T
    items = {
        "item": data.items,
        "cells_from": data.item_ptr[:-1],
        "known": data.known,
        _START: None if theta is None else theta.ptr[:-1],
        _OTHER_START: None if other is None else other.ptr[:-1],
        "score": fit.score,
        **prefixed(data.covariates.items),
        **{f"{_CLASSIFIER}{code}": column for code, column in enumerate(predicted)},
    }
    labels = {"annotator": data.annotator, "row": data.row, "p_serious": fit.p_serious}
    tables = {
        "items": make_table(items, fit.item_columns),
        "cells": pa.table({"category": data.cell_category, "labels_from": data.cell_ptr[:-1]}),
        "labels": make_table({**labels, **prefixed(data.covariates.labels)}),
        "annotators": _annotator_table(
            fit, data.covariates.annotators, **dict(zip(_PRIOR_COLUMNS, prior, strict=False))
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
    return make_table(
        {} if theta is None else {"category": theta.category, "probability": theta.probability}
    )


def _comparison_tables(fit: Fit[Comparisons]) -> dict[str, pa.Table]:
    """Return the tables of a fit of comparisons."""
    data = fit.data
    comparisons = {
        "annotator": data.annotator_of_comparison().astype(np.int32),
        "left": data.left,
        "right": data.right,
        "outcome": data.outcome,
        "row": np.argsort(np.argsort(data.row)),  # without the rows that were left out
        "context": data.context,
        "p_serious": fit.p_serious,
        **prefixed(data.covariates),
        **{f"{_FURTHER}{name}": column for name, column in data.further.items()},
    }
    tables = {
        "items": pa.table({"item": data.items, "score": fit.scores.mean, "part": fit.part}),
        "annotators": _annotator_table(fit, {}),
        "comparisons": make_table(comparisons),
    }
    if data.contexts is not None:
        tables[CONTEXTS] = pa.table({"context": data.contexts})
    return tables


def make_fit(
    entries: Mapping[str, Any], tables: Mapping[str, pa.Table], arrays: Mapping[str, pa.Tensor]
) -> Fit[Any]:
    """Return the fit of checked entries of ``fit.json``, and of tables and arrays to check.

    ``arrays`` are the parameters, and the covariance of scores.
    """
    for name, table in tables.items():
        check_table(name, table)
    is_ranking = entries.get("kind") == RANKING
    annotators, given = tables["annotators"], tables["comparisons" if is_ranking else "labels"]
    chosen = entries.get("chosen")
    types = _PARAMETER_TYPES if not is_ranking else dict.fromkeys(arrays, _PAIR_TYPES)
    fit: Fit[Any] = Fit(
        model=entries["model"],
        settings=entries["settings"],
        data=(_comparisons if is_ranking else _labels)(entries, tables),
        history=read_history(entries),
        **{name: read_shares(annotators, name) for name in _ESTIMATES},
        behavior=read_texts(annotators, "behavior"),
        annotator_columns=ModelColumns(
            annotators, _PAIR_COLUMN_TYPES if is_ranking else _COLUMN_TYPES
        ),
        p_serious=read_shares(given, "p_serious"),
        parameters={
            name: read_parameter(name, tensor, *([types[name]] if name in types else []))
            for name, tensor in arrays.items()
            if name != COVARIANCE
        },
        verdict=entries.get("verdict"),
        chosen={"why": chosen} if isinstance(chosen, str) else chosen,
        fitted_at=datetime.fromisoformat(entries["fitted_at"]),
    )
    if is_ranking:
        return _with_scores(fit, entries, tables["items"], arrays[COVARIANCE])
    fit = _with_distributions(fit, entries, tables)
    for name in _FIELDS.get(fit.model, ("distribution",)):
        check(getattr(fit, name) is not None, f"{fit.model} has no {name}")
    return _with_sets(fit, entries) if fit.model == SETS else fit


def _with_distributions(fit: Fit, entries: Mapping[str, Any], tables: Mapping[str, Any]) -> Fit:
    """Return the fit with the estimates that only fits of labels have."""
    items, n = tables["items"], tables["categories"].num_rows
    past = tables.get(PAST_FITS)
    if past is not None:
        check_past_fits(past)
    return replace(
        fit,
        distribution=_distribution(tables, "distribution", _START, n),
        other_distribution=_distribution(tables, OTHER_TABLE, _OTHER_START, n),
        score=read_finite(items, "score"),
        item_columns=ModelColumns(items, _COLUMN_TYPES),
        readout=entries.get("readout", "right"),
        earlier_fits=past,
    )


def _with_sets(fit: Fit, entries: Mapping[str, Any]) -> Fit:
    """Return the fit with the estimates that only fits of sets have."""
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
    fit: Fit[Any], entries: Mapping[str, Any], items: pa.Table, covariance: pa.Tensor
) -> Fit[Any]:
    """Return the fit with the estimates that only fits of comparisons have."""
    for name in _ITEM_CODES & fit.parameters.keys():
        check_index(name, fit.parameters[name], items.num_rows, least=-1)
    part: NDArray[np.int64] = read_codes(items, "part", entries["parts"], types=(pa.int64(),))
    check(len(np.unique(part)) == entries["parts"], "parts is not the number of parts")
    side_bias, coefficients = entries["side_bias"], entries["coefficients"]
    return replace(
        fit,
        scores=_scores(items, covariance),
        part=part,
        side_bias=None if side_bias is None else np.array(side_bias, dtype=np.float64),
        coefficients={
            name: np.array(values, dtype=np.float64) for name, values in coefficients.items()
        },
    )


def _scores(items: pa.Table, tensor: pa.Tensor) -> ScorePosterior:
    """Return the posterior of the scores; its covariance has one or two axes of items."""
    mean = read_finite(items, "score")
    check(mean is not None, "items have no scores")
    covariance: Floats = read_parameter(COVARIANCE, tensor)
    n = items.num_rows
    check(covariance.shape in ((n,), (n, n)), "the covariance is not of the items")
    check(np.abs(covariance).max() < MAX_VALUE, "the covariance has too large a value")
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    check(variances.min() >= 0, "a variance is below 0")
    return ScorePosterior(mean, covariance)


def _check_counts(entries: Mapping[str, Any], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        check(entries[name] == count > 0, f"{name} is not the number of rows")


def _about_rows(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known about the rows of the input."""
    return {
        "n_dropped": entries["n_dropped"],
        "n_repeated": entries.get("n_repeated", 0),
        "frame": installed_frame(entries["frame"]),
        "read_as": entries["read_as"] or "",
        "left_out": entries.get("left_out") or "",
    }


def _comparisons(entries: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Comparisons:
    items, annotators, comparisons = (tables[name] for name in TABLES[RANKING])
    n_items, n_annotators, n = items.num_rows, annotators.num_rows, comparisons.num_rows
    counts = {"n_items": n_items, "n_annotators": n_annotators, "n_comparisons": n}
    _check_counts(entries, counts)
    annotator = read_codes(comparisons, "annotator", n_annotators)
    check((np.diff(annotator) >= 0).all(), "comparisons are not sorted by annotator")
    left, right = (read_codes(comparisons, side, n_items) for side in ("left", "right"))
    check((left != right).all(), "an item is compared with itself")
    per_annotator = np.bincount(annotator, minlength=n_annotators)
    contexts, context = tables.get(CONTEXTS), None
    if contexts is not None:
        context = read_codes(comparisons, "context", contexts.num_rows)
    names = covariates_in(comparisons)
    return Comparisons(
        items=read_ids(items, "item"),
        annotators=read_ids(annotators, "annotator"),
        left=left,
        right=right,
        outcome=read_codes(comparisons, "outcome", len(OUTCOMES), types=(pa.int8(),)),
        annotator_ptr=np.append(0, np.cumsum(per_annotator)).astype(np.int64),
        row=read_rows(comparisons, "row", n),
        sides_known=entries["sides_known"],
        covariates={name: read_finite(comparisons, f"covariate:{name}") for name in names},
        contexts=None if contexts is None else read_ids(contexts, "context", may_be_missing=True),
        context=context,
        **_about_rows(entries),
        annotator_weight=read_shares(annotators, "annotator_weight"),
        further={
            name.removeprefix(_FURTHER): read_ids(comparisons, name, may_be_missing=True)
            for name in comparisons.column_names
            if name.startswith(_FURTHER)
        },
    )


def _labels(entries: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Labels:
    items, cells, labels, annotators, categories = (tables[name] for name in TABLES[None][:5])
    n_items, n_labels = items.num_rows, labels.num_rows
    are_sets = entries.get("kind") == SETS
    _check_counts(
        entries,
        {
            "n_items": n_items,
            "n_annotators": annotators.num_rows,
            "n_answers" if are_sets else "n_labels": n_labels,
            "n_sets" if are_sets else "n_categories": categories.num_rows,
        },
    )
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
        **_about_rows(entries),
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
    kind = entries.get("scale", "nominal")
    return Scale(kind, names, values, edges, entries.get("scale_reason") or "")


def _distribution(
    tables: Mapping[str, pa.Table], name: str, start: str, n_categories: int
) -> Distribution | None:
    if start not in tables["items"].column_names:
        return None
    items, rows = tables["items"], tables[name]
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
