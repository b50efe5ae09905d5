"""Model selection without a truth: by how well models predict held-out labels or comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.errors import AnnotruthError, InputError, counted
from annotruth.kernels.arrays import Codes
from annotruth.models.base import Estimator
from annotruth.models.em import ProgressCallback
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.registry import (
    DEFAULT_MODEL,
    MODELS,
    SIMPLEST_FIRST,
    get_model,
    names_to_compare,
)
from annotruth.observations import Comparisons, Labels
from annotruth.observations.encode import id_ranks
from annotruth.observations.frames import from_arrow
from annotruth.observations.validate import check_ordinal
from annotruth.selection.heldout import HeldOut, assign_folds, format_with_error, score_folds

MAX_LABELS = 100_000
"""With more labels, models are compared on a random sample of the items."""

SAMPLED_LABELS = 80_000
"""The number of labels of that sample, about."""

MAX_SCORED = 15_000
"""No further fold is held out once this many labels are scored."""

_MANY = 100  # standard errors of a difference, beyond which their number is not given


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
    makers = {name: partial(make_for, name, labels) for name in names}
    choice = choose_among(sample, makers, DEFAULT_MODEL, folds, seed, progress)
    if sample is labels:
        return choice
    part = (
        f"; compared on {sample.n_labels:,} of {labels.n_labels:,} labels, those of a random "
        f"sample of {sample.n_items:,} of {labels.n_items:,} items"
    )
    return replace(choice, why=choice.why + part)


def choose_among(
    data: Labels | Comparisons,
    makers: Mapping[str, Callable[[], Estimator | PairEstimator]],
    default_model: str,
    folds: int = 5,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Choice:
    """Return the model that predicts held-out labels or comparisons best, scored as in `choose`.

    ``makers`` return the estimators by name, or raise if one does not suit the data.
    """
    fold = first_folds(assign_folds(data, folds, seed))

    @cache
    def training(current: int) -> Labels | Comparisons:
        return data.subset(fold != current)

    found: dict[str, HeldOut] = {}
    refused: dict[str, str] = {}
    for number, (name, make) in enumerate(makers.items(), start=1):
        place = {"number": number, "n_models": len(makers)}
        try:
            found[name] = score_folds(make(), data, fold, progress, training=training, **place)
        except AnnotruthError as error:
            refused[name] = str(error)
    if not found:
        raise InputError(f"no model can be fitted; {next(iter(refused.values()))}")
    scores = MappingProxyType(dict(sorted(found.items(), key=lambda pair: -pair[1].score)))
    model, why = decide(scores, default_model)
    return Choice(model, why, scores, MappingProxyType(refused), data.frame)


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
        gap = format_with_error(*best.ahead_of(others[0]))
        return best.model, f"{reason}, {gap} ahead of {others[0].model}"
    behind, error = best.ahead_of(default)
    gap = format_with_error(behind, error)
    if behind > error:
        return best.model, f"{reason}, {gap} ahead of the default {default_model}"
    # An unknown error is no reason to leave the default either.
    within = "not known to be worse" if math.isnan(error) else "within one standard error"
    return default_model, f"{reason}; the default {default_model} is {within} ({gap} behind)"


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


class Finding(NamedTuple):
    """The result of a comparison."""

    model: str  # the simplest model within one standard error of the best one
    sentence: str  # the finding, one sentence without a full stop


def find_simplest(scores: Mapping[str, HeldOut]) -> Finding:
    """Return the simplest model that predicts held-out labels as well as the best one.

    That is, within one standard error of the difference on the same labels. ``scores`` has the
    best model first.
    """
    best, *others = scores.values()
    if not others:
        return Finding(best.model, f"{best.model} is the only model that could be compared")
    differences = {other.model: best.ahead_of(other) for other in others}
    # An unknown error is no reason to prefer a model that is less simple.
    close = [name for name, (behind, error) in differences.items() if not behind > error]
    known = [name for name in SIMPLEST_FIRST if name in (best.model, *close)]
    simplest = known[0] if known else best.model
    if any(math.isnan(error) for _, error in differences.values()):
        sentence = (
            f"{simplest} is the simplest model, and there are too few items or annotators to tell "
            "whether another one predicts held-out labels better"
        )
    elif simplest != best.model:
        sentence = (
            f"{simplest} predicts held-out labels as well as the best model ({best.model}): the "
            "difference is within one standard error"
        )
    elif close:
        sentence = (
            f"{best.model} predicts held-out labels best, and "
            f"{counted(len(close), 'less simple model is', 'less simple models are')} within one "
            "standard error"
        )
    else:
        behind, error = differences[others[0].model]
        distance = f"{behind / error:.1f}" if behind < _MANY * error else f"more than {_MANY}"
        sentence = (
            f"{best.model} predicts held-out labels best, {distance} standard errors ahead of "
            f"{others[0].model}"
        )
    return Finding(simplest, sentence)
