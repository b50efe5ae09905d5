"""Cross-validation without a truth: how well a model predicts what was held out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import ConvergenceWarning, InputError, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import Estimator
from annotruth.models.em import Progress, ProgressCallback, start_stage
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.prediction import floored_log
from annotruth.models.registry import get_model
from annotruth.observations import Comparisons, Labels
from annotruth.observations.encode import id_ranks
from annotruth.observations.validate import check_seed

if TYPE_CHECKING:
    from typing_extensions import TypeIs


_MAX_PREDICTIONS = 2**20  # numbers in one array of predictions

Integers = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The log-probabilities that a model gave to held-out labels."""

    model: str  # the model's name
    log_p: Floats  # the log-probability, in nats, of each scored label
    # the item and the annotator of each scored label
    item: Integers
    annotator: Integers
    # the number of labels that were not scored: their item or annotator has no other label, or
    # enough labels were scored without them (see `choose`)
    n_unscored: int
    converged: bool  # whether every fit met its stopping rule
    unit: str = "label"  # what was held out: labels, or comparisons, whose items are pairs of items

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
    model: str | Estimator | PairEstimator,
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

    Of `Comparisons`, the outcomes are held out: 3, or 2 where there are no ties. Those of each
    annotator are spread evenly over the folds, each of the two items keeps one, and standard errors
    are clustered by annotator and by pair of items.

    Parameters
    ----------
    model
        A model's name, or an estimator with its options set, which is not changed.
    data
        Labels in any form that `Estimator.fit` takes, known truths by `Labels.with_gold`; or
        `Comparisons`, for an estimator of comparisons.
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
    if _are_comparisons(data):
        assert isinstance(model, PairEstimator)
        return score_folds(model, data, assign_folds(data, folds, seed), progress)
    labels = Labels.of(data)
    estimator = get_model(model)() if isinstance(model, str) else model
    if not isinstance(estimator, Estimator):
        raise InputError(
            f"model is {shown(model)}: give a model's name or an estimator, such as GPM()"
        )
    return score_folds(estimator, labels, assign_folds(labels, folds, seed), progress)


def _are_comparisons(data: object) -> TypeIs[Comparisons]:
    return isinstance(data, Comparisons)


class _Owners(NamedTuple):
    """The items or the annotators of labels or comparisons."""

    codes: Sequence[Integers]  # of each label; two arrays for the items of a comparison
    n_labels: Codes  # how many each of them has
    ids: pa.Array

    def ranked(self) -> list[Integers]:
        """Return the ranks of the ids instead of codes, which depend on the order of rows."""
        rank = id_ranks(self.ids)
        return [rank[codes] for codes in self.codes]


class _Task(NamedTuple):
    """What is held out of labels or comparisons, and how a fitted model predicts it."""

    outcome: Integers
    n_outcomes: int
    owners: tuple[_Owners, _Owners]  # the labels of the first are spread over the folds
    item: Integers  # items, or pairs of items, which errors are clustered by
    annotator: Integers
    unit: str
    predict: Callable[[Any, Codes], Floats]  # of a model, and rows: one row of probabilities each
    refusal: str  # why nothing can be held out


def _task_of(data: Labels | Comparisons) -> _Task:
    if not _are_comparisons(data):
        item, annotator = data.item_of_label(), data.annotator
        return _Task(
            data.category_of_label(),
            data.n_categories,
            (
                _Owners([item], data.labels_per_item, data.items),
                _Owners([annotator], data.labels_per_annotator, data.annotators),
            ),
            item,
            annotator,
            "label",
            lambda model, rows: model.predict_proba(item[rows], annotator[rows]),
            "no label can be predicted from the others, as each is the only one of its item or of "
            "its annotator: add labels, or choose a model by name, such as robust-gpm",
        )
    of_comparison = data.annotator_of_comparison()
    left, right = data.left.astype(np.int64), data.right.astype(np.int64)

    def predict(model: PairEstimator, rows: Codes) -> Floats:
        covariates = {name: values[rows] for name, values in data.covariates.items()}
        context = [] if data.context is None else [data.context[rows].astype(np.int64)]
        return model.predict_proba(
            left[rows], right[rows], of_comparison[rows], covariates, *context
        )

    return _Task(
        data.outcome,
        3 if data.has_ties else 2,
        (
            _Owners([of_comparison], data.comparisons_per_annotator, data.annotators),
            _Owners([left, right], data.comparisons_per_item, data.items),
        ),
        np.minimum(left, right) * data.n_items + np.maximum(left, right),
        of_comparison,
        "comparison",
        predict,
        "no comparison can be predicted from the others, as each is the only one of its "
        "annotator or of one of its items: add comparisons",
    )


def assign_folds(data: Labels | Comparisons, n_folds: int, seed: int) -> Codes:
    """Return the fold of each label or comparison, -1 for those that are never held out.

    The labels of each item are spread evenly over the folds, and the comparisons of each annotator.
    """
    if n_folds < 2:
        raise InputError(f"folds must be 2 or more, not {n_folds}")
    check_seed(seed)
    rng, task = np.random.default_rng(seed), _task_of(data)
    spread, other = task.owners
    # Sorted by ids first, so that the order of rows does not matter.
    (rank,), others = spread.ranked(), other.ranked()
    order = np.lexsort((task.outcome, *others[::-1], rank))[rng.permutation(len(rank))]
    order = order[np.argsort(rng.permutation(len(spread.ids))[rank[order]], kind="stable")]
    fold = np.empty(len(rank), dtype=np.int64)
    fold[order] = np.arange(len(rank)) % n_folds
    for owners in task.owners:
        _keep_one(fold, owners, order)
    if (fold < 0).all():
        raise InputError(task.refusal)
    return fold


def _keep_one(fold: Codes, owners: _Owners, order: Codes) -> None:
    """Set the fold of one label to -1 for each owner whose labels are all in one fold."""
    n_folds, n_labels = int(fold.max(initial=0)) + 1, owners.n_labels
    codes = [owner.astype(np.int64) * n_folds for owner in owners.codes]
    for owner, code in zip(owners.codes, codes, strict=True):
        held_out_labels = fold >= 0
        n_in_fold = np.zeros(len(n_labels) * n_folds, dtype=np.int64)
        for each in codes:
            n_in_fold += np.bincount((each + fold)[held_out_labels], minlength=len(n_in_fold))
        all_in_fold = n_in_fold[np.where(held_out_labels, code + fold, 0)] == n_labels[owner]
        candidates = order[(held_out_labels & all_in_fold)[order]]
        _, first = np.unique(owner[candidates], return_index=True)
        fold[candidates[first]] = -1


def score_folds(
    estimator: Estimator | PairEstimator,
    data: Labels | Comparisons,
    fold: Codes,
    progress: ProgressCallback | None = None,
    *,
    training: Callable[[int], Any] | None = None,
    number: int = 1,
    n_models: int = 1,
) -> HeldOut:
    """Score a model on the folds that `assign_folds` returned.

    ``training`` returns all data but those of a fold, for callers that keep them for several models.
    ``number`` is the model's number among the ``n_models`` that are compared, for ``progress``.
    """
    model = copy(estimator)
    task = _task_of(data)
    log_p = np.empty(len(task.outcome))
    converged = True
    folds = np.unique(fold[fold >= 0])
    n_rows = max(_MAX_PREDICTIONS // max(task.n_outcomes, 32), 1)
    for k, current in enumerate(folds.tolist()):
        stage = f"cross-validating {model.name}, fold {k + 1} of {len(folds)}"
        start_stage(
            progress,
            f"comparing: {model.name}, {number} of {n_models}" if n_models > 1 else stage,
            done=(number - 1) * len(folds) + k,
            total=n_models * len(folds),
        )
        kept = data.subset(fold != current) if training is None else training(current)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported by `converged`
            converged &= model.fit(kept, progress=_with_stage(progress, stage)).result_.converged
        held_out_rows = np.flatnonzero(fold == current)
        for rows in np.split(held_out_rows, range(n_rows, len(held_out_rows), n_rows)):
            p = task.predict(model, rows)[np.arange(len(rows)), task.outcome[rows]]
            log_p[rows] = floored_log(p, task.n_outcomes)
    scored = fold >= 0
    return HeldOut(
        model=model.name,
        log_p=log_p[scored],
        item=task.item[scored],
        annotator=task.annotator[scored],
        n_unscored=int((~scored).sum()),
        converged=converged,
        unit=task.unit,
    )


def _with_stage(progress: ProgressCallback | None, stage: str) -> ProgressCallback | None:
    """Return a callback that adds the name of the stage."""
    if progress is None:
        return None

    def report(current: Progress) -> None:
        progress(current._replace(stage=stage))

    return report


def format_with_error(value: float, error: float) -> str:
    """Return a mean and its standard error as text; that of a single item is unknown."""
    return f"{value:z.4f} ± {f'{error:.4f}' if math.isfinite(error) else 'unknown'}"


def _standard_error(values: Floats, item: Integers, annotator: Integers) -> float:
    """Return the standard error of a mean of values correlated within items and annotators.

    The variance is V_item + V_annotator - V_label, each from the sums of deviations within its
    clusters, and never less than V_item or V_annotator. It is NaN for a single item or annotator.
    """
    deviation = values - values.mean()
    by_item, by_annotator = (_variance_of_sums(deviation, owner) for owner in (item, annotator))
    by_label = _variance_of_sums(deviation, np.arange(len(values)))
    variance = np.max([by_item + by_annotator - by_label, by_item, by_annotator])
    return float(np.sqrt(variance) / len(values))


def _variance_of_sums(deviation: Floats, owner: Integers) -> float:
    """Return the variance of a total whose terms are independent between owners only."""
    _, code = np.unique(owner, return_inverse=True)
    sums = np.bincount(code, deviation)
    n = len(sums)
    return float(n / (n - 1) * (sums**2).sum()) if n > 1 else math.nan
