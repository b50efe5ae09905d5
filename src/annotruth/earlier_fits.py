"""Earlier fits as an input: loaded, refused, and what is taken from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from annotruth.engines import AUTO, ENGINES
from annotruth.errors import ComparisonsError, InputError
from annotruth.models.base_fit import AnnotatorResults
from annotruth.models.pairs.result import RankFit
from annotruth.models.result import Fit
from annotruth.observations.options import ReadOptions


def loaded_fit(fit: Fit | RankFit | str | Path) -> Fit:
    """Return a fit, or the one that is saved in a folder."""
    if isinstance(fit, Fit):
        return fit
    from annotruth.models.storage import load_fit, refuse_sets

    if isinstance(fit, AnnotatorResults) and not isinstance(fit, RankFit):
        refuse_sets()
    found = fit if isinstance(fit, RankFit) else load_fit(fit)
    if isinstance(found, RankFit):
        raise ComparisonsError(
            "this is a fit of comparisons, not of labels: use rank (`annotruth rank`)"
        )
    return found


def settings_of(fit: Fit | RankFit) -> dict[str, Any]:
    """Return the options that the model of a fit can be made with again."""
    settings = dict(fit.settings)
    engine = str(settings.pop("engine", "")).partition(" ")[0]  # "auto (gpu)" is auto
    # An engine object of the caller's is stored by its class name, and cannot be made again.
    return {**settings, "engine": engine} if engine in (*ENGINES, AUTO) else settings


def on_scale(fit: Fit, read: ReadOptions) -> ReadOptions:
    """Return options that read labels on the scale of a fit, unless they name a scale."""
    if read.changed().keys() & {"scale", "categories", "bins"}:
        return read
    scale = fit.data.scale
    if scale.edges is not None:
        return replace(read, bins=scale.edges.tolist())
    return replace(read, scale=scale.kind, categories=scale.categories.to_pylist())


def refuse_machines(fit: Fit | RankFit) -> None:
    """Refuse to add labels to a fit with machines, whose weights depend on all labels."""
    if "machines" in fit.further:
        raise InputError(
            "this fit has machines, whose weights depend on all labels: fit all labels again, with "
            "machines (`--machine`)"
        )
