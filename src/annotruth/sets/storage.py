"""Saved fits of sets: they are stored as fits of labels whose categories are sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.kernels.arrays import Floats
from annotruth.models.result import Fit
from annotruth.models.storage.columns import check
from annotruth.models.storage.tables import make_fit
from annotruth.observations.frames import as_arrow
from annotruth.observations.sets import members
from annotruth.sets.fit import SetFit

_SLACK = 1e-9


def stored_fit(fit: SetFit) -> Fit:
    """Return the fit of labels whose tables and parameters are saved for a fit of sets."""
    return Fit(
        model=fit.model,
        settings=dict(fit.settings),
        data=fit.data,
        history=fit.history,
        reliability=fit.reliability,
        low=fit.low,
        high=fit.high,
        behavior=fit.behavior,
        p_serious=fit.p_serious,
        annotator_columns=fit.annotator_columns,
        parameters={
            **fit.parameters,
            "probability": fit.probability,
            "sets": fit.sets.astype(np.float64),
            "confidence": fit.confidence,
        },
        fitted_at=fit.fitted_at,
    )


def make_set_fit(
    entries: Mapping[str, Any], tables: Mapping[str, pa.Table], parameters: Mapping[str, pa.Tensor]
) -> SetFit:
    """Return the fit of checked entries of ``fit.json``, and of tables and parameters to check."""
    as_labels = {
        **entries,
        "n_labels": entries["n_answers"],
        "n_categories": entries["n_sets"],
        "scale": "nominal",
        "readout": "right",
        "chosen": None,
    }
    fit = make_fit(as_labels, tables, parameters)
    names = entries["labels"]
    check(len(set(names)) == len(names) == entries["n_labels"] > 0, "labels are not all different")
    scale = replace(fit.data.scale, set_labels=as_arrow(names))
    members(scale)  # every category must be a set of these labels
    shape = fit.data.n_items, len(names)
    assert fit.reliability is not None
    assert fit.low is not None
    assert fit.high is not None
    assert fit.behavior is not None
    assert fit.p_serious is not None
    for name in ("sensitivity", "specificity"):
        _shares(fit, name, fit.data.n_annotators, len(names))
    return SetFit(
        model=fit.model,
        settings=fit.settings,
        data=replace(fit.data, scale=scale),
        history=fit.history,
        probability=_shares(fit, "probability", *shape),
        sets=_shares(fit, "sets", *shape) > 0.5,
        confidence=_shares(fit, "confidence", shape[0]),
        p_serious=fit.p_serious,
        reliability=fit.reliability,
        low=fit.low,
        high=fit.high,
        behavior=fit.behavior,
        annotator_columns=fit.annotator_columns,
        parameters={
            name: values
            for name, values in fit.parameters.items()
            if name not in ("probability", "sets", "confidence")
        },
        chosen=entries["chosen"] or "",
        separator=entries["separator"],
        fitted_at=fit.fitted_at,
    )


def _shares(fit: Fit, name: str, *shape: int) -> Floats:
    """Return a parameter of numbers from 0 to 1."""
    values: Floats = fit.parameter(name, *shape)
    inside = values.min() >= -_SLACK and values.max() <= 1.0 + _SLACK
    check(inside, f"{name} has a value outside 0..1")
    return values
