"""The models by the name they have on the command line; one line a model."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from annotruth.errors import InputError
from annotruth.labels.formatting import shown

if TYPE_CHECKING:
    from annotruth.models.base import Estimator

# name: (module, class)
MODELS = {
    "majority": ("annotruth.models.baselines", "MajorityVote"),
    "mean": ("annotruth.models.baselines", "MeanScore"),
    "median": ("annotruth.models.baselines", "MedianScore"),
    "gpm": ("annotruth.models.gpm.model", "GPM"),
    "robust-gpm": ("annotruth.models.robust_gpm.model", "RobustGPM"),
    "dawid-skene": ("annotruth.models.dawid_skene.model", "DawidSkene"),
    "glad": ("annotruth.models.glad", "GLAD"),
    "ordinal-binary": ("annotruth.models.ordinal_binary", "OrdinalBinary"),
    "ordinal-mixture": ("annotruth.models.ordinal_mixture.model", "OrdinalMixture"),
    "subject-bias": ("annotruth.models.subject_bias", "SubjectBias"),
}

DEFAULT_MODEL = "robust-gpm"
"""What is fitted when no model is named."""


def get_model(name: str) -> type[Estimator]:
    """Return the estimator class of that name."""
    if name not in MODELS:
        raise InputError(f"unknown model {name!r}: choose one of {', '.join(MODELS)}")
    module, cls = MODELS[name]
    estimator: type[Estimator] = getattr(importlib.import_module(module), cls)
    return estimator


def make_estimator(model: str | Estimator, options: Mapping[str, Any]) -> Estimator:
    """Make the named model with its options, refusing options it does not have."""
    if not isinstance(model, str):
        from annotruth.models.base import Estimator

        if not isinstance(model, Estimator):
            raise InputError(
                f"model is {shown(model)}: give a name, or an estimator such as annotruth.GPM()"
            )
        if options:
            raise InputError("give the options to the estimator itself, not to fit")
        return model
    cls = get_model(model)
    cls.check_options(options)
    return cls(**options)
