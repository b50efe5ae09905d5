"""The tables of a saved fit of comparisons: from a fit to tables, and back, every value checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.pairs.posterior import ScorePosterior
from annotruth.models.pairs.result import RankFit
from annotruth.models.storage.columns import (
    MAX_VALUE,
    ModelColumns,
    check,
    check_table,
    covariates_in,
    installed_frame,
    make_table,
    prefixed,
    read_codes,
    read_finite,
    read_history,
    read_ids,
    read_parameter,
    read_rows,
    read_shares,
    read_texts,
)
from annotruth.observations.layout import check_index
from annotruth.observations.pairs.table import OUTCOMES, Comparisons

RANK_TABLES = ("items", "annotators", "comparisons")
"""The tables that every saved fit of comparisons has."""

CONTEXTS = "contexts"
"""The table of the contexts, where comparisons have any."""

COVARIANCE = "covariance"
"""The array of the scores' covariance: items x items, or one variance per item."""

_ANNOTATOR_FIELDS = ("reliability", "low", "high", "behavior")
_OUTCOME = (pa.int8(),)
_PART = (pa.int64(),)
_FURTHER = "further:"  # before the names of further columns of comparisons
# Model-specific columns that are not of type float64, and the types of parameters.
_COLUMN_TYPES = {"evidence": pa.string(), "group": pa.int64()}
_ITEM_CODES = {"favoured"}  # parameters that are codes of items, or -1
_NUMBERS = (pa.float64(), pa.float32(), pa.int64(), pa.int32(), pa.uint8(), pa.int8())


def make_rank_tables(fit: RankFit) -> dict[str, pa.Table]:
    """Return the tables to save, one per length."""
    data = fit.data
    comparisons = {
        "annotator": data.annotator_of_comparison().astype(np.int32),
        "left": data.left,
        "right": data.right,
        "outcome": data.outcome,
        "row": np.argsort(np.argsort(data.row)),  # without the rows that were left out
        "context": data.context,
        "p_serious": fit.p_serious,
    }
    annotators = {name: getattr(fit, name) for name in _ANNOTATOR_FIELDS}
    annotators["annotator_weight"] = data.annotator_weight
    tables = {
        "items": pa.table({"item": data.items, "score": fit.scores.mean, "part": fit.part}),
        "annotators": make_table(
            {"annotator": data.annotators, **annotators}, fit.annotator_columns
        ),
        "comparisons": make_table(
            {
                **comparisons,
                **prefixed(data.covariates),
                **{f"{_FURTHER}{name}": column for name, column in data.further.items()},
            }
        ),
    }
    if data.contexts is not None:
        tables[CONTEXTS] = pa.table({"context": data.contexts})
    return tables


def make_rank_fit(
    entries: Mapping[str, Any],
    tables: Mapping[str, pa.Table],
    parameters: Mapping[str, pa.Tensor],
    covariance: pa.Tensor,
) -> RankFit:
    """Return the fit of checked entries of ``fit.json``, and of tables and arrays to check."""
    for name, table in tables.items():
        check_table(name, table)
    items, annotators, comparisons = (tables[name] for name in RANK_TABLES)
    side_bias = entries["side_bias"]
    arrays = {
        name: read_parameter(name, tensor, {name: _NUMBERS}) for name, tensor in parameters.items()
    }
    for name in _ITEM_CODES & arrays.keys():
        check_index(name, arrays[name], items.num_rows, least=-1)
    return RankFit(
        model=entries["model"],
        settings=entries["settings"],
        data=_comparisons(entries, tables),
        history=read_history(entries),
        scores=_scores(items, covariance),
        part=_parts(items, entries["parts"]),
        reliability=read_shares(annotators, "reliability"),
        low=read_shares(annotators, "low"),
        high=read_shares(annotators, "high"),
        behavior=read_texts(annotators, "behavior"),
        annotator_columns=ModelColumns(annotators, _COLUMN_TYPES),
        p_serious=read_shares(comparisons, "p_serious"),
        side_bias=None if side_bias is None else np.array(side_bias, dtype=np.float64),
        coefficients={
            name: np.array(values, dtype=np.float64)
            for name, values in entries["coefficients"].items()
        },
        parameters=arrays,
        verdict=entries.get("verdict"),
        chosen=entries.get("chosen") or "",
        fitted_at=datetime.fromisoformat(entries["fitted_at"]),
    )


def _comparisons(entries: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Comparisons:
    items, annotators, comparisons = (tables[name] for name in RANK_TABLES)
    n_items, n_annotators, n = items.num_rows, annotators.num_rows, comparisons.num_rows
    counts = {"n_items": n_items, "n_annotators": n_annotators, "n_comparisons": n}
    for name, count in counts.items():
        check(entries[name] == count > 0, f"{name} is not the number of rows")
    annotator = read_codes(comparisons, "annotator", n_annotators)
    check((np.diff(annotator) >= 0).all(), "comparisons are not sorted by annotator")
    left, right = (read_codes(comparisons, side, n_items) for side in ("left", "right"))
    check((left != right).all(), "an item is compared with itself")
    per_annotator = np.bincount(annotator, minlength=n_annotators)
    contexts = tables.get(CONTEXTS)
    context = None
    if contexts is not None:
        context = read_codes(comparisons, "context", contexts.num_rows)
    names = covariates_in(comparisons)
    return Comparisons(
        items=read_ids(items, "item"),
        annotators=read_ids(annotators, "annotator"),
        left=left,
        right=right,
        outcome=read_codes(comparisons, "outcome", len(OUTCOMES), types=_OUTCOME),
        annotator_ptr=np.append(0, np.cumsum(per_annotator)).astype(np.int64),
        row=read_rows(comparisons, "row", n),
        sides_known=entries["sides_known"],
        covariates={name: read_finite(comparisons, f"covariate:{name}") for name in names},
        contexts=None if contexts is None else read_ids(contexts, "context", may_be_missing=True),
        context=context,
        n_dropped=entries["n_dropped"],
        n_repeated=entries["n_repeated"],
        frame=installed_frame(entries["frame"]),
        read_as=entries["read_as"] or "",
        left_out=entries["left_out"] or "",
        annotator_weight=read_shares(annotators, "annotator_weight"),
        further={
            name.removeprefix(_FURTHER): read_ids(comparisons, name, may_be_missing=True)
            for name in comparisons.column_names
            if name.startswith(_FURTHER)
        },
    )


def _scores(items: pa.Table, tensor: pa.Tensor) -> ScorePosterior:
    """Return the posterior of the scores; its covariance has one or two axes of items."""
    mean = read_finite(items, "score")
    check(mean is not None, "items have no scores")
    covariance: Floats = read_parameter(COVARIANCE, tensor, {})
    n = items.num_rows
    check(covariance.shape in ((n,), (n, n)), "the covariance is not of the items")
    check(np.abs(covariance).max() < MAX_VALUE, "the covariance has too large a value")
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    check(variances.min() >= 0, "a variance is below 0")
    return ScorePosterior(mean, covariance)


def _parts(items: pa.Table, n_parts: int) -> NDArray[np.int64]:
    part: NDArray[np.int64] = read_codes(items, "part", n_parts, types=_PART)
    check(len(np.unique(part)) == n_parts, "parts is not the number of parts")
    return part
