"""`warm_start` of `annotruth.fit`: what a fit takes from the one that it continues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from annotruth.engines import Engine
from annotruth.errors import InputError, option
from annotruth.models.base import Estimator
from annotruth.models.options import settings_of
from annotruth.models.registry import AUTO
from annotruth.models.result import Fit, is_fit
from annotruth.observations import Labels


def as_before(request: Any, previous: Fit) -> Any:
    """Return a request of `annotruth.fit` with a fit's model, options and scale, unless it has others."""
    on_scale = isinstance(request.data, Labels) or is_fit(request.data)  # these have a scale
    if not on_scale and not request.read.changed().keys() & {"scale", "categories", "bins"}:
        scale = previous.data.scale
        if scale.edges is not None:
            read = replace(request.read, bins=scale.edges.tolist())
        else:
            categories = scale.categories.to_pylist()
            read = replace(request.read, scale=scale.kind, categories=categories)
        request = replace(request, read=read)
    if request.model is None:
        options = {**settings_of(previous), **request.options}
        request = replace(request, model=previous.model, options=options)
    return request


def check_continues(previous: Fit, estimator: Estimator | None, engine: Engine) -> None:
    """Refuse another model than that of the fit that is continued, and other machines."""
    if previous.kind == "distributed" or engine.capabilities.distributed:
        raise InputError(f"{option('warm_start')} is for labels on this machine: leave it out")
    name = AUTO if estimator is None else estimator.name
    if previous.model != name:
        raise InputError(
            f"{option('warm_start')} is a fit of {previous.model}, not of {name}: leave it out, or "
            "choose that model"
        )
