"""Choosing a model without a truth: by how well it predicts labels that it has not seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.errors import AnnotruthError, InputError
from annotruth.labels import Labels
from annotruth.labels.frames import from_arrow
from annotruth.labels.validate import check_ordinal
from annotruth.models.base import Estimator
from annotruth.models.em import ProgressCallback
from annotruth.models.registry import MODELS, get_model
from annotruth.selection.heldout import HeldOut, parts_of, ranks_of, score_parts, with_error

# Where predictions do not tell models apart, who tells most comes first: distributions of the
# items with what annotators do and intervals that hold, then without, then how right annotators
# are, then scores alone. Of two that tell the same, the one more often nearer to the truth.
PREFERENCE = (
    "robust-gpm",
    "ordinal-mixture",
    "gpm",
    "dawid-skene",
    "glad",
    "ordinal-binary",
    "subject-bias",
    "majority",
    "mean",
    "median",
)

MOST_LABELS = 200_000
"""With more labels than this, models are compared on a sample of the items."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Which model was chosen, why, and how all of them did.

    Attributes
    ----------
    model
        The model chosen.
    why
        The reason, in a sentence.
    scores
        What each model made of the held-out labels, best first.
    refused
        Why the others could not be compared.
    frame
        The caller's frame library, in which the table goes back.
    """

    model: str
    why: str
    scores: Mapping[str, HeldOut]
    refused: Mapping[str, str]
    frame: str

    def __repr__(self) -> str:
        return f"Choice({self.model}: {self.why})"

    def table(self) -> Any:
        """Return one row a model: its score, and how far it is behind the best."""
        rows = [{"model": name, **told} for name, told in self.to_dict()["scores"].items()]
        types = [
            *(("model", pa.string()), ("score", pa.float64()), ("standard_error", pa.float64())),
            *(("behind", pa.float64()), ("behind_error", pa.float64()), ("converged", pa.bool_())),
            ("refused", pa.string()),
        ]
        return from_arrow(pa.Table.from_pylist(rows, schema=pa.schema(types)), self.frame)

    def to_dict(self) -> dict[str, Any]:
        """Tell the choice in words and numbers that JSON has."""
        best = next(iter(self.scores.values()))
        scores: dict[str, dict[str, Any]] = {}
        for name, own in self.scores.items():
            behind, error = best.ahead_of(own)
            scores[name] = {
                "score": own.score,
                "standard_error": _or_none(own.standard_error),
                "behind": behind,
                "behind_error": _or_none(error),
                "converged": own.converged,
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
    """Choose the model that predicts held-out labels best (see `held_out`).

    Models whose score is within one standard error of the best one's, by the difference on the
    same labels, count as equally good; of these the one that tells most is taken: robust-gpm
    first. Models for ordered categories are left out where there is no order.

    It says who predicts labels best, which often but not always is who finds the truth best.

    Parameters
    ----------
    data
        What `Estimator.fit` takes; known truths come with `Labels.with_gold`.
    models
        The names to choose from; all models unless given.
    folds, seed
        As in `held_out`. With more than 200,000 labels, the seed also draws the items of which
        about so many labels are scored, which bounds the time.
    progress
        Called after every iteration of every fit.
    """
    labels = Labels.of(data)
    names = sorted(dict.fromkeys(models or MODELS), key=place)
    sample = _sample(labels, seed)
    part = parts_of(sample, folds, seed)
    found: dict[str, HeldOut] = {}
    refused: dict[str, str] = {}
    for name in names:
        get_model(name)
        try:
            found[name] = score_parts(suited(name, labels), sample, part, progress)
        except AnnotruthError as error:
            refused[name] = str(error)
    if not found:
        raise InputError(f"no model can be fitted; {refused[names[0]]}")
    scores = dict(sorted(found.items(), key=lambda pair: -pair[1].score))
    model, why = _decide(scores)
    if sample is not labels:
        why += (
            f"; compared on {sample.n_labels:,} of {labels.n_labels:,} labels, those of "
            f"{sample.n_items:,} items drawn from {labels.n_items:,}"
        )
    return Choice(model, why, MappingProxyType(scores), MappingProxyType(refused), labels.frame)


def suited(name: str, labels: Labels) -> Estimator:
    """Make the named model, unless it needs an order that the labels do not have."""
    estimator = get_model(name)()
    if estimator.capabilities.ordinal_only:
        check_ordinal(labels.scale, name)
    return estimator


def _decide(scores: Mapping[str, HeldOut]) -> tuple[str, str]:
    """Take the first in the order of preference of those as good as the best, and say why."""
    best, *others = scores.values()
    as_good = [best.model]
    for other in others:
        behind, error = best.ahead_of(other)
        if behind <= error:
            as_good.append(other.model)
    model = min(as_good, key=place)
    told = f"mean log-probability {with_error(best.score, best.standard_error)} a label"
    if model != best.model:
        return model, (
            f"{model} tells more than {best.model}, which predicts held-out labels best ({told}), "
            f"and is {_gap(best, scores[model])} behind it: within one standard error"
        )
    if not others:
        return model, f"{model} is the only model that could be compared ({told})"
    gap = f"{_gap(best, others[0])} ahead of {others[0].model}"
    return model, f"{model} predicts held-out labels best ({told}), {gap}"


def _gap(one: HeldOut, other: HeldOut) -> str:
    return with_error(*one.ahead_of(other))


def _sample(labels: Labels, seed: int) -> Labels:
    """Draw whole items until their labels are as many as may be scored."""
    if labels.n_labels <= MOST_LABELS:
        return labels
    turn = np.random.default_rng(seed).permutation(labels.n_items)[ranks_of(labels.items)]
    order = np.argsort(turn)
    reached = labels.labels_per_item[order].cumsum()
    drawn = np.zeros(labels.n_items, dtype=np.bool_)
    drawn[order[: max(np.searchsorted(reached, MOST_LABELS, side="right"), 1)]] = True
    return labels.subset(drawn[labels.item_of_label()])


def place(name: str) -> int:
    """Return a model's place in the order of preference; one that is not in it comes last."""
    return PREFERENCE.index(name) if name in PREFERENCE else len(PREFERENCE)


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
