"""The models by the name they have on the command line; one line a model."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.models.base import Estimator

# name: (module, class)
MODELS = {
    "majority": ("annotruth.models.baselines", "MajorityVote"),
    "mean": ("annotruth.models.baselines", "MeanScore"),
    "median": ("annotruth.models.baselines", "MedianScore"),
    "gpm": ("annotruth.models.gpm", "GPM"),
    "robust-gpm": ("annotruth.models.robust_gpm", "RobustGPM"),
    "dawid-skene": ("annotruth.models.dawid_skene", "DawidSkene"),
    "glad": ("annotruth.models.glad", "GLAD"),
    "ordinal-binary": ("annotruth.models.ordinal_binary", "OrdinalBinary"),
    "ordinal-mixture": ("annotruth.models.ordinal_mixture", "OrdinalMixture"),
    "subject-bias": ("annotruth.models.subject_bias", "SubjectBias"),
}

DEFAULT_MODEL = "robust-gpm"
"""What is fitted when no model is named."""

UPDATABLE = ("gpm", "robust-gpm", "dawid-skene")
"""The models that take in more labels without a new fit of all."""


def model_named(name: str) -> type[Estimator]:
    """Return the estimator class of that name."""
    if name not in MODELS:
        raise InputError(f"unknown model {name!r}: choose one of {', '.join(MODELS)}")
    module, cls = MODELS[name]
    estimator: type[Estimator] = getattr(importlib.import_module(module), cls)
    return estimator
