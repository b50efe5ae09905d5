"""Models by name; to add one, add a line to `MODELS`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from annotruth.errors import InputError

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
    "one-coin": ("annotruth.models.confusion.one_coin", "OneCoin"),
    "ibcc": ("annotruth.models.confusion.ibcc", "IBCC"),
    "ebcc": ("annotruth.models.confusion.ebcc", "EBCC"),
    "bwa": ("annotruth.models.bwa", "BWA"),
    "mace": ("annotruth.models.confusion.mace", "MACE"),
    "glad": ("annotruth.models.glad.model", "GLAD"),
    "ordinal-binary": ("annotruth.models.ordinal_binary", "OrdinalBinary"),
    "ordinal-mixture": ("annotruth.models.ordinal_mixture.model", "OrdinalMixture"),
    "subject-bias": ("annotruth.models.subject_bias.model", "SubjectBias"),
}

DEFAULT_MODEL = "robust-gpm"
"""The model that is fitted if none is named."""


def get_model(name: str) -> type[Estimator]:
    """Return the estimator class of a model."""
    if name not in MODELS:
        raise InputError(f"unknown model {name!r}: choose one of {', '.join(MODELS)}")
    module, cls = MODELS[name]
    estimator: type[Estimator] = getattr(importlib.import_module(module), cls)
    return estimator


def models_with(capability: str) -> str:
    """Return the names of the models that have a capability, for a message: "a, b or c"."""
    names = [name for name in MODELS if getattr(get_model(name).capabilities, capability)]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def make_estimator(model: str | Estimator, options: Mapping[str, Any]) -> Estimator:
    """Return an estimator of the named model; raise for options it does not have."""
    if not isinstance(model, str):
        from annotruth.errors import shown
        from annotruth.models.base import Estimator

        if not isinstance(model, Estimator):
            raise InputError(
                f"model is {shown(model)}: pass a name, or an estimator such as annotruth.GPM()"
            )
        if options:
            raise InputError(
                "options are given beside an estimator: set them on the estimator instead"
            )
        return model
    cls = get_model(model)
    cls.check_options(options)
    return cls(**options)
