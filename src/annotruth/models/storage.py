"""A fit on disk: one JSON file for what a person reads, Arrow files for the numbers.

Both are open formats that hold data alone, so loading a fit never runs code from it.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather

from annotruth.errors import InputError
from annotruth.io.atomic import atomic_write_folder
from annotruth.labels import Labels, Scale
from annotruth.labels.scale import is_text
from annotruth.models.base_fit import BaseFit
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.result import Fit

FORMAT = 1
_TABLES = ("items", "cells", "labels", "annotators", "categories", "distribution")
_LIBRARIES = ("annotruth", "numpy", "numba", "pyarrow")
_OWN = "model:"
_PARAMETER = "parameter-"
_ANNOTATOR_PRIOR = ("record_serious", "record_irregular")
_PER_ANNOTATOR = ("reliability", "low", "high", "behavior")


def save(fit: Fit, path: Path) -> None:
    """Write the fit to a folder, whole or not at all."""
    with atomic_write_folder(path) as aside:
        # Files of another fit's parameters may stay in the folder, so it says which are its own.
        told = record(fit, parameters=sorted(fit.parameters))
        (aside / "fit.json").write_text(told, encoding="utf-8")
        for name, table in _tables(fit).items():
            feather.write_feather(table, str(aside / f"{name}.arrow"))
        for name, values in fit.parameters.items():
            with pa.OSFile(str(aside / f"{_PARAMETER}{name}.arrow"), "wb") as file:
                pa.ipc.write_tensor(pa.Tensor.from_numpy(np.ascontiguousarray(values)), file)


def load(path: str | Path) -> Fit:
    """Read a fit that `Fit.save` wrote."""
    folder = Path(path)
    for file in ("fit.json", *(f"{name}.arrow" for name in _TABLES)):
        if not (folder / file).exists():
            hint = "" if file == "fit.json" else "; save a fit for that, which tables alone are not"
            raise InputError(f"no saved fit in {folder}: {folder / file} is missing{hint}")
    try:
        told = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            raise InputError(
                f"{folder} was saved in format {told['format']}; this annotruth reads {FORMAT}"
            )
        tables = {
            name: feather.read_table(str(folder / f"{name}.arrow"), memory_map=False)
            for name in _TABLES
        }
        return _fit(told, tables, _parameters(folder, told.get("parameters", ())))
    except (OSError, ValueError, KeyError, TypeError, IndexError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"the fit in {folder} cannot be read ({reason}): save it again") from None


def record(fit: BaseFit, **more: Any) -> str:
    """Tell a fit in JSON: settings, counts, history, why it stopped, versions, and more."""
    data = fit.data
    told = {
        "format": FORMAT,
        "model": fit.model,
        "settings": fit.settings,
        "n_items": data.n_items,
        "n_annotators": data.n_annotators,
        "n_labels": data.n_labels,
        "n_categories": data.n_categories,
        "n_dropped": data.n_dropped,
        "read_as": data.read_as or None,
        "scale": data.scale.kind,
        "bins": None if data.scale.edges is None else data.scale.edges.tolist(),
        "frame": data.frame,
        "n_iter": fit.n_iter,
        "converged": fit.converged,
        "stop_reason": fit.stop_reason,
        "log_likelihood": fit.log_likelihood,
        "history": {
            "log_likelihood": fit.history.log_likelihood.tolist(),
            "objective": fit.history.objective.tolist(),
        },
        "versions": {name: version(name) for name in _LIBRARIES}
        | {"python": platform.python_version()},
        **more,
    }
    if fit.chosen is not None:
        told["chosen"] = dict(fit.chosen)
    return json.dumps(told, indent=2) + "\n"


def _tables(fit: Fit) -> dict[str, pa.Table]:
    """Lay a fit out in tables, one for each length; pointers are stored by their starts."""
    data, theta = fit.data, fit.distribution
    annotators = {name: getattr(fit, name) for name in _PER_ANNOTATOR}
    if data.annotator_prior is not None:
        annotators |= dict(zip(_ANNOTATOR_PRIOR, data.annotator_prior.T, strict=True))
    labels = {"annotator": data.annotator, "row": data.row, "p_serious": fit.p_serious}
    return {
        "items": _table(
            {
                "item": data.items,
                "cells_from": data.item_ptr[:-1],
                "known": data.known,
                "entries_from": None if theta is None else theta.ptr[:-1],
                "score": fit.score,
            },
            fit.item_columns,
        ),
        "cells": pa.table({"category": data.cell_category, "labels_from": data.cell_ptr[:-1]}),
        "labels": _table(labels),
        "annotators": _table({"annotator": data.annotators, **annotators}, fit.annotator_columns),
        "categories": pa.table({"category": data.scale.categories, "value": data.scale.values}),
        "distribution": _table(
            {} if theta is None else {"category": theta.category, "probability": theta.probability}
        ),
    }


def _table(columns: dict[str, Any], extra: Mapping[str, Any] | None = None) -> pa.Table:
    """Make a table of what is there; a model's own columns go under a prefix."""
    own = {f"{_OWN}{name}": column for name, column in (extra or {}).items()}
    return pa.table(
        {name: column for name, column in {**columns, **own}.items() if column is not None}
    )


def _own(table: pa.Table) -> dict[str, Any]:
    """Take a model's own columns out again."""
    return {
        name.removeprefix(_OWN): (
            column.combine_chunks() if is_text(column.type) else column.to_numpy()
        )
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name.startswith(_OWN)
    }


def _parameters(folder: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Read the model's own parameters, a tensor each; whoever uses one looks at its shape."""
    found = {}
    for name in names:
        path = folder / f"{_PARAMETER}{name}.arrow"
        if path.exists():
            with pa.OSFile(str(path), "rb") as file:
                found[name] = pa.ipc.read_tensor(file).to_numpy()
    return found


def _fit(
    told: dict[str, Any], tables: dict[str, pa.Table], parameters: Mapping[str, NDArray[Any]]
) -> Fit:
    items, cells, labels = tables["items"], tables["cells"], tables["labels"]
    people, categories, theta = (
        tables[name] for name in ("annotators", "categories", "distribution")
    )
    edges = told.get("bins")
    data = Labels(
        items=items["item"].combine_chunks(),
        annotators=people["annotator"].combine_chunks(),
        scale=Scale(
            told["scale"],
            categories["category"].combine_chunks(),
            _numbers(categories, "value"),
            None if edges is None else np.array(edges, dtype=np.float64),
        ),
        item_ptr=_pointers(items, "cells_from", cells.num_rows),
        cell_category=_codes(cells, "category", categories.num_rows),
        cell_ptr=_pointers(cells, "labels_from", labels.num_rows),
        annotator=_codes(labels, "annotator", people.num_rows),
        row=_codes(labels, "row", labels.num_rows),
        known=_codes(items, "known", categories.num_rows, least=-1),
        annotator_prior=_annotator_prior(people),
        n_dropped=told["n_dropped"],
        frame=told["frame"],
        read_as=told.get("read_as") or "",
    )
    history = told["history"]
    return Fit(
        model=told["model"],
        settings=told["settings"],
        data=data,
        history=History(
            log_likelihood=np.array(history["log_likelihood"]),
            objective=np.array(history["objective"]),
            converged=told["converged"],
            stop_reason=told["stop_reason"],
        ),
        distribution=_distribution(items, theta, categories.num_rows),
        score=_numbers(items, "score"),
        reliability=_numbers(people, "reliability"),
        low=_numbers(people, "low"),
        high=_numbers(people, "high"),
        behavior=people["behavior"].to_pylist() if "behavior" in people.column_names else None,
        p_serious=_numbers(labels, "p_serious"),
        item_columns=_own(items),
        annotator_columns=_own(people),
        parameters=parameters,
        chosen=told.get("chosen"),
    )


def _distribution(items: pa.Table, entries: pa.Table, n_categories: int) -> Distribution | None:
    if "entries_from" not in items.column_names:
        return None
    return Distribution(
        _pointers(items, "entries_from", entries.num_rows),
        _codes(entries, "category", n_categories),
        _numbers(entries, "probability"),
    )


def _annotator_prior(people: pa.Table) -> NDArray[np.float64] | None:
    if _ANNOTATOR_PRIOR[0] not in people.column_names:
        return None
    return np.column_stack([people[name].to_numpy() for name in _ANNOTATOR_PRIOR])


def _numbers(table: pa.Table, name: str) -> Any:
    return table[name].to_numpy() if name in table.column_names else None


def _pointers(table: pa.Table, name: str, length: int) -> NDArray[np.int64]:
    """Complete the starts with the end; they must rise, or kernels would read elsewhere."""
    pointers = np.append(table[name].to_numpy(), length)
    if pointers[0] != 0 or (np.diff(pointers) <= 0).any():
        raise ValueError(f"{name} does not rise")
    return pointers


def _codes(table: pa.Table, name: str, n: int, least: int = 0) -> Any:
    codes = table[name].to_numpy()
    if len(codes) and not (codes.min() >= least and codes.max() < n):
        raise ValueError(f"{name} has a code outside {least}..{n - 1}")
    return codes
