"""Models of pair comparisons by name; to add one, add a line to `PAIR_MODELS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from annotruth.models.registry import check_given, find_class

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
    estimator: type[PairEstimator] = find_class(PAIR_MODELS, name)
    return estimator


def make_pair_estimator(model: str | PairEstimator, options: Mapping[str, Any]) -> PairEstimator:
    """Return an estimator of the named model; raise for options it does not have."""
    if isinstance(model, str):
        cls = get_pair_model(model)
        cls.check_options(options)
        return cls(**options)
    return check_given(model, options, "comparisons", "of pair comparisons")
