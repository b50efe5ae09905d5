"""Model selection without a truth: by how well models predict held-out labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.errors import AnnotruthError, InputError
from annotruth.kernels.arrays import Codes
from annotruth.models.base import Estimator
from annotruth.models.em import ProgressCallback
from annotruth.models.registry import DEFAULT_MODEL, MODELS, get_model, names_to_compare
from annotruth.observations import Labels
from annotruth.observations.encode import id_ranks
from annotruth.observations.frames import from_arrow
from annotruth.observations.validate import check_ordinal
from annotruth.selection.heldout import HeldOut, assign_folds, format_with_error, score_folds
from annotruth.selection.precompile import compiling_in_parallel

MAX_LABELS = 100_000
"""With more labels, models are compared on a random sample of the items."""

SAMPLED_LABELS = 80_000
"""The number of labels of that sample, about."""

MAX_SCORED = 15_000
"""No further fold is held out once this many labels are scored."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The model that `choose` selected, the reason, and the scores of all models."""

    model: str  # the name of the selected model
    why: str  # the reason, one sentence
    scores: Mapping[str, HeldOut]  # the held-out scores of the models, best first
    refused: Mapping[str, str]  # the models that could not be fitted, with the reason
    frame: str  # the caller's frame library, which the table is returned in

    def __repr__(self) -> str:
        return f"Choice({self.model}: {self.why})"

    def table(self) -> Any:
        """Return one row per model: its score, and the difference from the best one."""
        rows = [{"model": name, **entries} for name, entries in self.to_dict()["scores"].items()]
        types = [
            *(("model", pa.string()), ("score", pa.float64()), ("standard_error", pa.float64())),
            *(("behind", pa.float64()), ("behind_error", pa.float64()), ("converged", pa.bool_())),
            ("refused", pa.string()),
        ]
        return from_arrow(pa.Table.from_pylist(rows, schema=pa.schema(types)), self.frame)

    def to_dict(self) -> dict[str, Any]:
        """Return the choice and the scores as JSON types."""
        best = next(iter(self.scores.values()))
        scores: dict[str, dict[str, Any]] = {}
        for name, result in self.scores.items():
            behind, error = best.ahead_of(result)
            scores[name] = {
                "score": result.score,
                "standard_error": _finite(result.standard_error),
                "behind": behind,
                "behind_error": _finite(error),
                "converged": result.converged,
            }
        refused = {name: {"refused": reason} for name, reason in self.refused.items()}
        return {
            "model": self.model,
            "why": self.why,
            "n_scored": best.n_scored,
            "n_unscored": best.n_unscored,
            "scores": scores | refused,
        }


def choose(
    data: Any,
    models: Sequence[str] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Choice:
    """Choose the model that predicts held-out labels best.

    Models are scored as in `held_out`, on the same labels. The default model, robust-gpm, is kept
    unless another one is better by more than one standard error of the difference; then the best
    one is selected. Models for ordered categories are left out on nominal scales.

    The model that predicts labels best is often, but not always, the one closest to the truth.

    Parameters
    ----------
    data
        Labels in any form that `Estimator.fit` takes; known truths by `Labels.with_gold`.
    models
        The names of the models to choose from; all by default.
    folds, seed
        As in `held_out`. Two limits bound the time. No further fold is held out once 15,000 labels
        are scored: of 75,000 labels or more, that is one fold. With more than 100,000 labels,
        the seed also draws a sample of items with about 80,000 labels.
    progress
        Called after every iteration of every fit.

    Returns
    -------
    Choice
        ``model``, ``why``, and the scores of all models.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, person, item % 3) for item in range(9) for person in "abcd"]
    >>> at.choose(labels, ["dawid-skene", "median"]).model
    'dawid-skene'
    """
    labels = Labels.of(data)
    names = sorted(names_to_compare(models, MODELS), key=registry_rank)
    sample = _sample(labels, seed)
    fold = first_folds(assign_folds(sample, folds, seed))
    results: dict[str, HeldOut] = {}
    refused: dict[str, str] = {}

    @cache
    def training_labels(current: int) -> Labels:
        return sample.subset(fold != current)

    with compiling_in_parallel(names, labels):
        for number, name in enumerate(names, start=1):
            get_model(name)
            try:
                results[name] = score_folds(
                    make_for(name, labels),
                    sample,
                    fold,
                    progress,
                    training_labels=training_labels,
                    number=number,
                    n_models=len(names),
                )
            except AnnotruthError as error:
                refused[name] = str(error)
    if not results:
        raise InputError(f"no model can be fitted; {refused[names[0]]}")
    scores = dict(sorted(results.items(), key=lambda pair: -pair[1].score))
    model, why = decide(scores, DEFAULT_MODEL)
    if sample is not labels:
        why += (
            f"; compared on {sample.n_labels:,} of {labels.n_labels:,} labels, those of a random "
            f"sample of {sample.n_items:,} of {labels.n_items:,} items"
        )
    return Choice(model, why, MappingProxyType(scores), MappingProxyType(refused), labels.frame)


def make_for(name: str, labels: Labels) -> Estimator:
    """Return the named model; raise if it needs an order that the labels do not have."""
    estimator = get_model(name)()
    if estimator.capabilities.ordinal_only:
        check_ordinal(labels.scale, name)
    return estimator


def decide(scores: Mapping[str, HeldOut], default_model: str) -> tuple[str, str]:
    """Return the default model if it is as good as the best one, else the best; and the reason."""
    best, *others = scores.values()
    mean = format_with_error(best.score, best.standard_error)
    score = f"mean log-probability {mean} per {best.unit}"
    if not others:
        return best.model, f"{best.model} is the only model that could be compared ({score})"
    reason = f"{best.model} predicts held-out {best.unit}s best ({score})"
    default = scores.get(default_model)
    if default is None or default is best:
        return best.model, f"{reason}, {_gap(best, others[0])} ahead of {others[0].model}"
    behind, error = best.ahead_of(default)
    gap = format_with_error(behind, error)
    if behind > error:
        return best.model, f"{reason}, {gap} ahead of the default {default_model}"
    # An unknown error is no reason to leave the default either.
    within = "not known to be worse" if math.isnan(error) else "within one standard error"
    return default_model, f"{reason}; the default {default_model} is {within} ({gap} behind)"


def _gap(one: HeldOut, other: HeldOut) -> str:
    return format_with_error(*one.ahead_of(other))


def _sample(labels: Labels, seed: int) -> Labels:
    """Return all labels, or if they are many those of random items, at most `SAMPLED_LABELS`."""
    if labels.n_labels <= MAX_LABELS:
        return labels
    order = np.argsort(
        np.random.default_rng(seed).permutation(labels.n_items)[id_ranks(labels.items)]
    )
    n_labels = labels.labels_per_item[order].cumsum()
    drawn = np.zeros(labels.n_items, dtype=np.bool_)
    drawn[order[: max(np.searchsorted(n_labels, SAMPLED_LABELS, side="right"), 1)]] = True
    return labels.subset(drawn[labels.item_of_label()])


def first_folds(fold: Codes) -> Codes:
    """Return the folds up to the one with which `MAX_SCORED` labels are scored; -1 for others."""
    n_scored = np.bincount(fold[fold >= 0]).cumsum()
    return np.where(fold <= np.searchsorted(n_scored, MAX_SCORED), fold, -1)


def registry_rank(name: str) -> int:
    """Return a model's place in the order of comparison: the default first, then as registered."""
    names = [DEFAULT_MODEL, *MODELS]
    return names.index(name) if name in names else len(names)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
