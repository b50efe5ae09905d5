"""What a model can do beyond fitting labels in memory, and the refusal of what it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from annotruth.engines import Engine
from annotruth.errors import InputError
from annotruth.models.registry import models_with
from annotruth.observations import LabelSummary

if TYPE_CHECKING:
    from annotruth.models.base import Estimator


@dataclass(frozen=True)
class Capabilities:
    """What a model can do beyond fitting labels in memory."""

    annotator_prior: bool = False  # whether it uses knowledge about annotators from earlier work
    classifier: bool = False  # whether it uses a classifier's probabilities of the categories
    out_of_core: bool = False  # whether it fits labels on disk, without an array of them in memory
    # whether it fits labels on other machines: it uses nothing but a `LabelSummary` and passes
    distributed: bool = False
    ordinal_only: bool = False  # whether its results need categories that have an order
    # whether EM starts from the parameters of a fit that is passed as ``warm_start``; otherwise
    # such a fit only says which items and annotators come first
    warm_start: bool = True


def check_supported(estimator: Estimator, engine: Engine, labels: LabelSummary) -> None:
    """Refuse labels that the model cannot fit."""
    if labels.scale.has_sets:
        raise InputError(
            f"these answers are sets of labels, which {estimator.name} does not fit: use annotruth.fit "
            "(`annotruth fit`) without a model"
        )
    if labels.annotator_prior is not None and not estimator.capabilities.annotator_prior:
        raise InputError(
            f"{estimator.name} takes no annotator_prior (`--annotator-prior`): leave it out, or choose "
            f"{models_with('annotator_prior')}"
        )
    if labels.classifier is not None:
        check_classifier(estimator, engine)
    if labels.on_disk:
        check_out_of_core(estimator)
        if not engine.capabilities.out_of_core:
            raise InputError(
                f"the engine {engine.name} takes no labels on disk: leave out memory "
                "(`--memory`), or choose engine='memory' (`--engine memory`)"
            )


def check_classifier(estimator: Estimator, engine: Engine) -> None:
    """Refuse a classifier if the model or the engine cannot use it."""
    if not estimator.capabilities.classifier:
        raise InputError(
            f"{estimator.name} takes no classifier (`--classifier`): leave it out, or choose "
            f"{models_with('classifier')}"
        )
    if not engine.capabilities.classifier:
        raise InputError(
            f"the engine {engine.name} takes no classifier (`--classifier`): leave it out, or "
            "choose engine='memory' (`--engine memory`)"
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
            f"{estimator.name} needs all labels in memory: leave out memory (`--memory`), or choose "
            f"{models_with('out_of_core')}"
        )
