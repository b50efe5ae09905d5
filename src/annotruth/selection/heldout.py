"""Cross-validation without a truth: how well a model predicts held-out labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import Estimator
from annotruth.models.em import ProgressCallback
from annotruth.models.registry import get_model
from annotruth.observations import Labels
from annotruth.observations.encode import id_ranks
from annotruth.selection.folds import (
    HeldOutModel,
    fold_generator,
    keep_one_label,
    log_p_of_folds,
)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The log-probabilities that a model gave to held-out labels."""

    model: str  # the model's name
    log_p: Floats  # the log-probability, in nats, of each scored label
    # the item and the annotator of each scored label
    item: NDArray[np.integer[Any]]
    annotator: NDArray[np.integer[Any]]
    # the number of labels that were not scored: their item or annotator has no other label, or
    # enough labels were scored without them (see `choose`)
    n_unscored: int
    converged: bool  # whether every fit met its stopping rule
    # what was held out: labels, or the comparisons of `annotruth.selection.pairs`, whose items are
    # pairs of items
    unit: str = "label"

    def __repr__(self) -> str:
        score = format_with_error(self.score, self.standard_error)
        return (
            f"HeldOut({self.model}: {score} per {self.unit}, {self.n_scored:,} {self.unit}s scored)"
        )

    @property
    def n_scored(self) -> int:
        """The number of scored labels."""
        return len(self.log_p)

    @cached_property
    def score(self) -> float:
        """The mean log-probability per label; at most 0, higher is better."""
        return float(self.log_p.mean())

    @cached_property
    def standard_error(self) -> float:
        """The standard error of the score, clustered by item and annotator; NaN if unknown."""
        return _standard_error(self.log_p, self.item, self.annotator)

    def ahead_of(self, other: HeldOut) -> tuple[float, float]:
        """Return the mean difference of the scores on the same labels, and its standard error."""
        gain = self.log_p - other.log_p
        return float(gain.mean()), _standard_error(gain, self.item, self.annotator)


def held_out(
    model: str | Estimator,
    data: Any,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> HeldOut:
    r"""Score a model by cross-validation: how well it predicts labels that it was not fitted to.

    The labels are divided into folds. For each fold, the model is fitted to the other folds and
    predicts the labels of this one; known truths are always used. With N categories, a label r of
    annotator s on item e scores

    .. math:: \log \bigl( 0.99\, p(r_{e,s} = r) + 0.01 / N \bigr), \qquad p \text{ from `predict_proba`}.

    The uniform component is the same for all models: some of them assign probability 0 to labels
    that occur, and one such label would decide the comparison.

    The labels of each item are spread evenly over the folds. Folds depend on the ids and the seed,
    not on the model or the order of rows. A label whose item or annotator would have no other label
    left is never held out, and not scored. As labels of one item share its truth, and those of one
    annotator a behavior, the standard error is clustered by both (Cameron, Gelbach and Miller 2011,
    Robust Inference With Multiway Clustering).

    Parameters
    ----------
    model
        A model's name, or an estimator with its options set, which is not changed.
    data
        Labels in any form that `Estimator.fit` takes; known truths by `Labels.with_gold`.
    folds
        The number of folds.
    seed
        The seed of the random assignment to folds.
    progress
        Called after every iteration of every fit.

    Returns
    -------
    HeldOut
        ``score``, its ``standard_error``, and the log-probability of every label.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, person, item % 2) for item in range(8) for person in "abc"]
    >>> -1.0 < at.held_out("gpm", labels).score < 0.0
    True
    """
    labels = Labels.of(data)
    estimator = get_model(model)() if isinstance(model, str) else model
    if not isinstance(estimator, Estimator):
        raise InputError(
            f"model is {shown(model)}: give a model's name or an estimator, such as GPM()"
        )
    return score_folds(estimator, labels, assign_folds(labels, folds, seed), progress)


def assign_folds(labels: Labels, n_folds: int, seed: int) -> Codes:
    """Return the fold of each label, -1 for labels that are never held out."""
    rng = fold_generator(n_folds, seed)
    item, annotator = labels.item_of_label(), labels.annotator
    item_rank, annotator_rank = (id_ranks(ids) for ids in (labels.items, labels.annotators))
    order = np.lexsort((labels.category_of_label(), annotator_rank[annotator], item_rank[item]))
    order = order[rng.permutation(labels.n_labels)]
    item_order = rng.permutation(labels.n_items)[item_rank]
    order = order[np.argsort(item_order[item[order]], kind="stable")]
    fold = np.empty(labels.n_labels, dtype=np.int64)
    fold[order] = np.arange(labels.n_labels) % n_folds
    keep_one_label(fold, [item], labels.labels_per_item, order)
    keep_one_label(fold, [annotator], labels.labels_per_annotator, order)
    if (fold < 0).all():
        raise InputError(
            "no label can be predicted from the others, as each is the only one of its item or of "
            "its annotator: add labels, or choose a model by name, such as robust-gpm"
        )
    return fold


def score_folds(
    estimator: Estimator,
    labels: Labels,
    fold: Codes,
    progress: ProgressCallback | None,
    *,
    training_labels: Callable[[int], Labels] | None = None,
    number: int = 1,
    n_models: int = 1,
) -> HeldOut:
    """Score a model on the folds that `assign_folds` returned.

    ``training_labels`` returns all labels but those of a fold, for callers that keep them for
    several models. ``number`` is the model's number among the ``n_models`` that are compared, for
    ``progress``.
    """
    model = copy(estimator)
    item = labels.item_of_label()

    def fit(current: int, progress: ProgressCallback | None) -> bool:
        subset = training_labels or (lambda current: labels.subset(fold != current))
        return model.fit(subset(current), progress=progress).result_.converged

    def predict(rows: Codes) -> Floats:
        return model.predict_proba(item[rows], labels.annotator[rows])

    log_p, converged = log_p_of_folds(
        HeldOutModel(model.name, fit, predict),
        labels.category_of_label(),
        labels.n_categories,
        fold,
        progress,
        number=number,
        n_models=n_models,
    )
    scored = fold >= 0
    return HeldOut(
        model=model.name,
        log_p=log_p,
        item=item[scored],
        annotator=labels.annotator[scored],
        n_unscored=int((~scored).sum()),
        converged=converged,
    )


def format_with_error(value: float, error: float) -> str:
    """Return a mean and its standard error as text; that of a single item is unknown."""
    return f"{value:z.4f} ± {f'{error:.4f}' if math.isfinite(error) else 'unknown'}"


def _standard_error(
    values: Floats, item: NDArray[np.integer[Any]], annotator: NDArray[np.integer[Any]]
) -> float:
    """Return the standard error of a mean of values correlated within items and annotators.

    The variance is V_item + V_annotator - V_label, each from the sums of deviations within its
    clusters, and never less than V_item or V_annotator. It is NaN for a single item or annotator.
    """
    deviation = values - values.mean()
    by_item, by_annotator = (_variance_of_sums(deviation, owner) for owner in (item, annotator))
    by_label = _variance_of_sums(deviation, np.arange(len(values)))
    variance = np.max([by_item + by_annotator - by_label, by_item, by_annotator])
    return float(np.sqrt(variance) / len(values))


def _variance_of_sums(deviation: Floats, owner: NDArray[np.integer[Any]]) -> float:
    """Return the variance of a total whose terms are independent between owners only."""
    _, code = np.unique(owner, return_inverse=True)
    sums = np.bincount(code, deviation)
    n = len(sums)
    return float(n / (n - 1) * (sums**2).sum()) if n > 1 else math.nan
