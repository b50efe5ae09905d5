"""Models of pair comparisons by name; to add one, add a line to `PAIR_MODELS`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from annotruth.errors import InputError, shown

if TYPE_CHECKING:
    from annotruth.models.pairs.base import PairEstimator

# name: (module, class)
PAIR_MODELS = {
    "bradley-terry": ("annotruth.models.pairs.bradley_terry", "BradleyTerry"),
    "thurstone": ("annotruth.models.pairs.thurstone", "Thurstone"),
    "crowd-bt": ("annotruth.models.pairs.crowd_bt", "CrowdBT"),
    "pair-gpm": ("annotruth.models.pairs.pair_gpm.model", "PairGPM"),
}

DEFAULT_PAIR_MODEL = "pair-gpm"
"""The model that is fitted if none is named."""


def get_pair_model(name: str) -> type[PairEstimator]:
    """Return the estimator class of a model of pair comparisons."""
    if name not in PAIR_MODELS:
        raise InputError(f"unknown model {shown(name)}: choose one of {', '.join(PAIR_MODELS)}")
    module, cls = PAIR_MODELS[name]
    estimator: type[PairEstimator] = getattr(importlib.import_module(module), cls)
    return estimator


def make_pair_estimator(model: str | PairEstimator, options: Mapping[str, Any]) -> PairEstimator:
    """Return an estimator of the named model; raise for options it does not have."""
    if not isinstance(model, str):
        from annotruth.models.pairs.base import PairEstimator

        if not isinstance(model, PairEstimator):
            raise InputError(
                f"model is {shown(model)}: pass a name, or an estimator of pair comparisons"
            )
        if options:
            raise InputError(
                "options are given beside an estimator: set them on the estimator instead"
            )
        return model
    cls = get_pair_model(model)
    cls.check_options(options)
    return cls(**options)
