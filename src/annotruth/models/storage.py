"""Saved fits: a folder with one JSON file and several Arrow files.

Both are open formats that hold data only, so loading a fit never runs code from it. The names of
the files, columns and entries are part of the format (`FORMAT`) and do not change with the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather

from annotruth.errors import InputError
from annotruth.io.atomic import atomic_write_folder
from annotruth.labels import Labels, Scale
from annotruth.labels.arrays import Covariates
from annotruth.labels.scale import is_text
from annotruth.models.base_fit import FORMAT, Readout
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.result import Fit

_TABLES = ("items", "cells", "labels", "annotators", "categories", "distribution")
_OTHER_TABLE = "other-distribution"  # only of fits that have both read-outs
_START, _OTHER_START = "entries_from", "other_entries_from"  # of an item in those tables
_MODEL_COLUMN = "model:"  # prefix of the names of model-specific columns
_COVARIATE = "covariate:"  # prefix of the names of covariates
_PARAMETER_FILE = "parameter-"
_PRIOR_COLUMNS = ("record_serious", "record_irregular")
_ANNOTATOR_FIELDS = ("reliability", "low", "high", "behavior")


def save(fit: Fit, path: Path) -> None:
    """Write a fit to a folder; if that fails, the folder stays as it was."""
    with atomic_write_folder(path) as folder:
        # The list shows which parameter files belong to the fit: those of a fit that was saved
        # here before may stay in the folder.
        text = fit.to_json(parameters=sorted(fit.parameters))
        (folder / "fit.json").write_text(text, encoding="utf-8")
        for name, table in _tables(fit).items():
            feather.write_feather(table, str(folder / f"{name}.arrow"))
        for name, values in fit.parameters.items():
            with pa.OSFile(str(folder / f"{_PARAMETER_FILE}{name}.arrow"), "wb") as file:
                pa.ipc.write_tensor(pa.Tensor.from_numpy(np.ascontiguousarray(values)), file)


def load(path: str | Path) -> Fit:
    """Read a fit that `Fit.save` or ``annotruth fit --save`` wrote.

    Parameters
    ----------
    path
        The folder of the saved fit.

    Examples
    --------
    >>> import tempfile
    >>> import annotruth as at
    >>> fit = at.fit([("a", "ann", 1), ("a", "bob", 2), ("b", "ann", 1)], "gpm")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(folder)
    ...     at.load(folder).log_likelihood == fit.log_likelihood
    True
    """
    folder = Path(path)
    for file in ("fit.json", *(f"{name}.arrow" for name in _TABLES)):
        if not (folder / file).exists():
            hint = (
                ""
                if file == "fit.json"
                else "; the tables of `--out` are not a saved fit, use save or `--save`"
            )
            raise InputError(f"no saved fit in {folder}: {folder / file} is missing{hint}")
    try:
        entries = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
        if entries["format"] != FORMAT:
            raise InputError(
                f"the fit in {folder} was saved in format {entries['format']}, which this version "
                f"of annotruth cannot read (it reads format {FORMAT}): fit the labels again and "
                "save the fit, or use the version that saved it"
            )
        tables = {
            name: feather.read_table(str(folder / f"{name}.arrow"), memory_map=False)
            for name in _TABLES
        }
        # The items say whether the fit has this file: that of a fit that was saved here before may
        # stay in the folder.
        if _OTHER_START in tables["items"].column_names:
            path = str(folder / f"{_OTHER_TABLE}.arrow")
            tables[_OTHER_TABLE] = feather.read_table(path, memory_map=False)
        return _fit(entries, tables, _parameters(folder, entries.get("parameters", ())))
    except (OSError, ValueError, KeyError, TypeError, IndexError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())
        raise InputError(
            f"the fit in {folder} cannot be read ({reason}): fit the labels again and save the fit"
        ) from None


def _tables(fit: Fit) -> dict[str, pa.Table]:
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
    return tables if other is None else tables | {_OTHER_TABLE: _distribution_table(other)}


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


def _covariates(table: pa.Table) -> dict[str, pa.Array]:
    """Return the covariates in a table, without the prefix."""
    return {
        name.removeprefix(_COVARIATE): column.combine_chunks()
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name.startswith(_COVARIATE)
    }


def _model_columns(table: pa.Table) -> dict[str, Any]:
    """Return the model-specific columns of a table, without the prefix."""
    return {
        name.removeprefix(_MODEL_COLUMN): (
            column.combine_chunks() if is_text(column.type) else column.to_numpy()
        )
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name.startswith(_MODEL_COLUMN)
    }


def _parameters(folder: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Read the parameters, one tensor per file; `BaseFit.parameter` checks their shapes."""
    parameters = {}
    for name in names:
        path = folder / f"{_PARAMETER_FILE}{name}.arrow"
        if path.exists():
            with pa.OSFile(str(path), "rb") as file:
                parameters[name] = pa.ipc.read_tensor(file).to_numpy()
    return parameters


def _fit(
    entries: dict[str, Any], tables: dict[str, pa.Table], parameters: Mapping[str, NDArray[Any]]
) -> Fit:
    items, annotators = tables["items"], tables["annotators"]
    history, n_categories = entries["history"], tables["categories"].num_rows
    return Fit(
        model=entries["model"],
        settings=entries["settings"],
        data=_labels(entries, tables),
        history=History(
            log_likelihood=np.array(history["log_likelihood"]),
            objective=np.array(history["objective"]),
            converged=entries["converged"],
            stop_reason=entries["stop_reason"],
        ),
        distribution=_distribution(items, _START, tables["distribution"], n_categories),
        other_distribution=_distribution(
            items, _OTHER_START, tables.get(_OTHER_TABLE), n_categories
        ),
        score=_numbers(items, "score"),
        reliability=_numbers(annotators, "reliability"),
        low=_numbers(annotators, "low"),
        high=_numbers(annotators, "high"),
        behavior=(
            annotators["behavior"].to_pylist() if "behavior" in annotators.column_names else None
        ),
        p_serious=_numbers(tables["labels"], "p_serious"),
        item_columns=_model_columns(items),
        annotator_columns=_model_columns(annotators),
        parameters=parameters,
        chosen=entries.get("chosen"),
        readout=entries.get("readout") or _old_readout(entries["model"], items),
        verdict=entries.get("verdict"),
    )


def _old_readout(model: str, items: pa.Table) -> Readout:
    """Return the read-out of a fit by version 0.1.0, which did not save it."""
    if model in ("dawid-skene", "glad", "ordinal-binary"):
        return "right"
    shares = f"{_MODEL_COLUMN}confidence_low"  # an interval of a share of opinion
    return "right" if model == "robust-gpm" and shares not in items.column_names else "opinion"


def _labels(entries: dict[str, Any], tables: dict[str, pa.Table]) -> Labels:
    items, cells, labels, annotators, categories = (tables[name] for name in _TABLES[:5])
    edges = entries.get("bins")
    return Labels(
        items=items["item"].combine_chunks(),
        annotators=annotators["annotator"].combine_chunks(),
        scale=Scale(
            entries["scale"],
            categories["category"].combine_chunks(),
            _numbers(categories, "value"),
            None if edges is None else np.array(edges, dtype=np.float64),
        ),
        item_ptr=_pointers(items, "cells_from", cells.num_rows),
        cell_category=_codes(cells, "category", categories.num_rows),
        cell_ptr=_pointers(cells, "labels_from", labels.num_rows),
        annotator=_codes(labels, "annotator", annotators.num_rows),
        row=_codes(labels, "row", labels.num_rows),
        known=_codes(items, "known", categories.num_rows, least=-1),
        annotator_prior=_annotator_prior(annotators),
        covariates=Covariates(_covariates(labels), _covariates(annotators), _covariates(items)),
        n_dropped=entries["n_dropped"],
        frame=entries["frame"],
        read_as=entries.get("read_as") or "",
    )


def _distribution(
    items: pa.Table, start: str, rows: pa.Table | None, n_categories: int
) -> Distribution | None:
    if rows is None or start not in items.column_names:
        return None
    return Distribution(
        _pointers(items, start, rows.num_rows),
        _codes(rows, "category", n_categories),
        _numbers(rows, "probability"),
    )


def _annotator_prior(annotators: pa.Table) -> NDArray[np.float64] | None:
    if _PRIOR_COLUMNS[0] not in annotators.column_names:
        return None
    return np.column_stack([annotators[name].to_numpy() for name in _PRIOR_COLUMNS])


def _numbers(table: pa.Table, name: str) -> Any:
    return table[name].to_numpy() if name in table.column_names else None


def _pointers(table: pa.Table, name: str, length: int) -> NDArray[np.int64]:
    """Return the starts and the end; raise unless they ascend, as kernels index with them."""
    pointers = np.append(table[name].to_numpy(), length)
    if pointers[0] != 0 or (np.diff(pointers) <= 0).any():
        raise ValueError(f"{name} does not rise")
    return pointers


def _codes(table: pa.Table, name: str, n: int, least: int = 0) -> Any:
    """Return codes; raise unless they are in range, as kernels index with them."""
    codes = table[name].to_numpy()
    if len(codes) and not (codes.min() >= least and codes.max() < n):
        raise ValueError(f"{name} has a code outside {least}..{n - 1}")
    return codes
