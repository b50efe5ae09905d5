"""Models by name, and what each can do; to add one, add a line to `MODELS`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from annotruth.errors import InputError, did_you_mean, function, option, shown

if TYPE_CHECKING:
    from annotruth.engines import Engine
    from annotruth.models.base import Estimator
    from annotruth.models.options import OptionsBase
    from annotruth.observations import LabelSummary

Options = TypeVar("Options", bound="OptionsBase")
"""The class of an estimator."""

# name: (module, class)
MODELS = {
    "majority": ("annotruth.models.baselines", "MajorityVote"),
    "mean": ("annotruth.models.baselines", "MeanScore"),
    "median": ("annotruth.models.baselines", "MedianScore"),
    "gpm": ("annotruth.models.gpm", "GPM"),
    "robust-gpm": ("annotruth.models.robust_gpm.model", "RobustGPM"),
    "dawid-skene": ("annotruth.models.confusion.dawid_skene", "DawidSkene"),
    "one-coin": ("annotruth.models.confusion.dawid_skene", "OneCoin"),
    "ibcc": ("annotruth.models.confusion.bcc", "IBCC"),
    "ebcc": ("annotruth.models.confusion.bcc", "EBCC"),
    "bwa": ("annotruth.models.confusion.bwa", "BWA"),
    "mace": ("annotruth.models.confusion.mace", "MACE"),
    "glad": ("annotruth.models.confusion.glad", "GLAD"),
    "ordinal-binary": ("annotruth.models.scales.ordinal_binary", "OrdinalBinary"),
    "ordinal-mixture": ("annotruth.models.scales.ordinal_mixture", "OrdinalMixture"),
    "subject-bias": ("annotruth.models.scales.subject_bias", "SubjectBias"),
}

SIMPLEST_FIRST = (
    *("majority", "mean", "median"),
    *("one-coin", "bwa", "gpm", "glad", "mace", "subject-bias", "ordinal-mixture"),
    *("ordinal-binary", "dawid-skene", "ibcc", "ebcc", "robust-gpm"),
)
"""Models by how much they estimate per annotator: nothing, one or a few numbers, a table or more.

Models that are not listed come last.
"""

DEFAULT_MODEL = "robust-gpm"
"""The model that is fitted if none is named."""

AUTO = "auto"
"""The value of ``model`` for the one that predicts held-out labels best."""


def get_model(name: str) -> type[Estimator]:
    """Return the estimator class of a model."""
    estimator: type[Estimator] = find_class(MODELS, name)
    return estimator


def find_class(models: Mapping[str, tuple[str, str]], name: str) -> Any:
    """Return the class of a name, which is imported only then."""
    if name not in models:
        raise InputError(
            f"unknown model {shown(name)}: choose one of {', '.join(models)}"
            f"{did_you_mean(name, models)}"
        )
    module, cls = models[name]
    return getattr(importlib.import_module(module), cls)


def names_to_compare(
    models: Sequence[str] | None, known: Mapping[str, tuple[str, str]]
) -> list[str]:
    """Return the names of the models to compare, each once; by default those of all."""
    if models is None:
        return list(known)
    some = f"some of {', '.join(known)}"
    if isinstance(models, str) or not all(isinstance(name, str) for name in models):
        raise InputError(f"models is {shown(models)}: give a list of names, {some}")
    if not models:
        raise InputError(f"no model to compare: pass {option('models')}, {some}")
    for name in models:
        find_class(known, name)
    return list(dict.fromkeys(models))


def models_with(capability: str) -> str:
    """Return the names of the models that have a capability, for a message: "a, b or c"."""
    names = [name for name in MODELS if getattr(get_model(name).capabilities, capability)]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def make_estimator(model: str | Estimator, options: Mapping[str, Any]) -> Estimator:
    """Return an estimator of the named model; raise for options it does not have."""
    if isinstance(model, str):
        cls = get_model(model)
        cls.check_options(options)
        return cls(**options)
    return check_given(model, options, "labels", "such as annotruth.GPM()")


def check_given(model: Options, options: Mapping[str, Any], fits: str, hint: str) -> Options:
    """Return an estimator that was passed instead of a name; raise unless it fits such data."""
    given: object = model  # callers may pass anything
    if isinstance(given, type) or getattr(given, "fits", None) != fits:
        raise InputError(f"model is {shown(model)}: pass a name, or an estimator {hint}")
    if options:
        raise InputError("options are given beside an estimator: set them on the estimator instead")
    return model


@dataclass(frozen=True)
class Capabilities:
    """What a model can do beyond fitting labels in memory."""

    annotator_prior: bool = False  # whether it uses knowledge about annotators from earlier work
    classifier: bool = False  # whether it uses a classifier's probabilities of the categories
    out_of_core: bool = False  # whether it fits labels on disk, without an array of them in memory
    # whether it fits labels on other machines: it uses nothing but a `LabelSummary` and passes
    distributed: bool = False
    ordinal_only: bool = False  # whether its results need categories that have an order
    gives_labels: bool = True  # whether items get labels; else scores only
    needs: tuple[str, ...] = ()  # of `EngineCapabilities`, without which it is not fitted


def check_supported(estimator: Estimator, engine: Engine, labels: LabelSummary) -> None:
    """Refuse labels that the model cannot fit."""
    if labels.scale.has_sets:
        raise InputError(
            f"these answers are sets of labels, which {estimator.name} does not fit: use "
            f"{function('fit')} without {option('model')}"
        )
    if labels.annotator_prior is not None:
        _check_takes(estimator, "annotator_prior")
    if labels.classifier is not None:
        check_classifier(estimator, engine)
    if labels.on_disk:
        check_out_of_core(estimator)
        engine.capabilities.check(engine.name, "out_of_core")


def _check_takes(estimator: Estimator, what: str) -> None:
    """Refuse data that the model cannot use."""
    if not getattr(estimator.capabilities, what):
        raise InputError(
            f"{estimator.name} takes no {option(what)}: leave it out, or choose {models_with(what)}"
        )


def check_classifier(estimator: Estimator, engine: Engine) -> None:
    """Refuse a classifier if the model or the engine cannot use it."""
    _check_takes(estimator, "classifier")
    engine.capabilities.check(engine.name, "classifier")


def check_use_of_classifier(estimator: Estimator | None, engine: Engine, *, on_disk: bool) -> None:
    """Refuse a classifier if no model is named, or if it cannot be used, also with labels on disk."""
    if estimator is None:
        raise InputError(
            f"{AUTO} compares models without a classifier: name one that takes it "
            f"({option('model', DEFAULT_MODEL)}), or leave out {option('classifier')}"
        )
    check_classifier(estimator, engine)
    if on_disk:
        raise InputError(
            f"a classifier needs the labels in memory: leave out {option('memory')} or "
            f"{option('classifier')}"
        )


def check_distributed(estimator: Estimator) -> None:
    """Refuse a distributed engine if the model cannot run there."""
    if not estimator.capabilities.distributed:
        raise InputError(
            f"{estimator.name} runs on the engines memory and reference only; on a distributed "
            f"engine choose {models_with('distributed')}"
        )


def check_out_of_core(estimator: Estimator) -> None:
    """Refuse labels on disk if the model would load them into memory."""
    if not estimator.capabilities.out_of_core:
        raise InputError(
            f"{estimator.name} needs all labels in memory: leave out {option('memory')}, or choose "
            f"{models_with('out_of_core')}"
        )
