"""Selection of models of pair comparisons, by how well they predict held-out comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError, InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import ProgressCallback
from annotruth.models.pairs.base import PairEstimator
from annotruth.observations import Comparisons
from annotruth.observations.encode import id_ranks
from annotruth.selection.choose import Choice, decide, first_folds
from annotruth.selection.folds import (
    HeldOutModel,
    fold_generator,
    keep_one_label,
    log_p_of_folds,
)
from annotruth.selection.heldout import HeldOut, format_with_error

MAX_GROUPS = 4
"""Not more taste groups than these are tried."""

CLEARLY = 2.0
"""One more taste group must predict better by this many standard errors of the difference."""


def held_out_comparisons(
    estimator: PairEstimator,
    data: Comparisons,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> HeldOut:
    r"""Score a model by cross-validation: how well it predicts comparisons it was not fitted to.

    A comparison with outcome y by annotator s of the items l and r scores

    .. math:: \log \bigl( 0.99\, p(y \mid l, r, s) + 0.01 / N \bigr), \qquad p \text{ from `predict_proba`}

    with N = 3 outcomes, or 2 where there are no ties. The comparisons of each annotator are spread
    evenly over the folds. Folds depend on the ids and the seed, not on the model or the order of
    rows, so two models are compared on the same comparisons (`HeldOut.ahead_of`). A comparison is
    never held out if its annotator or one of its items would have no other left. The standard error
    is clustered by annotator and by pair of items.

    ``estimator``: a model with its options set, which is not changed.
    ``data``: the comparisons.
    ``folds``, ``seed``: the number of folds, and the seed of the random assignment to them.
    ``progress``: called after every iteration of every fit.
    """
    return score_comparison_folds(
        estimator, data, assign_comparison_folds(data, folds, seed), progress
    )


def assign_comparison_folds(data: Comparisons, n_folds: int, seed: int) -> Codes:
    """Return the fold of each comparison, -1 for those that are never held out."""
    rng = fold_generator(n_folds, seed)
    annotator = data.annotator_of_comparison()
    item_rank, annotator_rank = (id_ranks(ids) for ids in (data.items, data.annotators))
    keys = (data.outcome, item_rank[data.right], item_rank[data.left], annotator_rank[annotator])
    order = np.lexsort(keys)[rng.permutation(data.n_comparisons)]
    annotator_order = rng.permutation(data.n_annotators)[annotator_rank]
    order = order[np.argsort(annotator_order[annotator[order]], kind="stable")]
    fold = np.empty(data.n_comparisons, dtype=np.int64)
    fold[order] = np.arange(data.n_comparisons) % n_folds
    keep_one_label(fold, [annotator], data.comparisons_per_annotator, order)
    keep_one_label(fold, [data.left, data.right], data.comparisons_per_item, order)
    if (fold < 0).all():
        raise InputError(
            "no comparison can be predicted from the others, as each is the only one of its "
            "annotator or of one of its items: add comparisons"
        )
    return fold


def score_comparison_folds(
    estimator: PairEstimator,
    data: Comparisons,
    fold: Codes,
    progress: ProgressCallback | None = None,
    *,
    number: int = 1,
    n_models: int = 1,
) -> HeldOut:
    """Score a model on the folds that `assign_comparison_folds` returned.

    ``number`` is the model's number among the ``n_models`` that are compared, for ``progress``.
    """
    model = copy(estimator)
    annotator = data.annotator_of_comparison()
    left, right = data.left.astype(np.int64), data.right.astype(np.int64)

    def fit(current: int, progress: ProgressCallback | None) -> bool:
        kept = data.subset(fold != current)
        return model.fit(kept, progress=progress).result_.history.converged

    def predict(rows: Codes) -> Floats:
        covariates = {name: values[rows] for name, values in data.covariates.items()}
        codes = left[rows], right[rows], annotator[rows]
        if data.context is None:
            return model.predict_proba(*codes, covariates)
        return model.predict_proba(*codes, covariates, data.context[rows].astype(np.int64))

    log_p, converged = log_p_of_folds(
        HeldOutModel(model.name, fit, predict),
        data.outcome,
        3 if data.has_ties else 2,
        fold,
        progress,
        number=number,
        n_models=n_models,
    )
    scored = fold >= 0
    return HeldOut(
        model=model.name,
        log_p=log_p,
        item=_pair(data)[scored],
        annotator=annotator[scored],
        n_unscored=int((~scored).sum()),
        converged=converged,
        unit="comparison",
    )


def choose_pair_model(
    data: Comparisons,
    estimators: Sequence[PairEstimator],
    *,
    default_model: str,
    folds: int = 5,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Choice:
    """Return which model predicts held-out comparisons best, with the scores of all as a table.

    Models are scored as in `held_out_comparisons`, on the same comparisons. The default model is
    kept unless another one is better by more than one standard error of the difference. No further
    fold is held out once 15,000 comparisons are scored.
    """
    fold = first_folds(assign_comparison_folds(data, folds, seed))
    results: dict[str, HeldOut] = {}
    refused: dict[str, str] = {}
    for number, estimator in enumerate(estimators, start=1):
        try:
            results[estimator.name] = score_comparison_folds(
                estimator, data, fold, progress, number=number, n_models=len(estimators)
            )
        except AnnotruthError as error:
            refused[estimator.name] = str(error)
    if not results:
        raise InputError(f"no model can be fitted; {next(iter(refused.values()))}")
    scores = dict(sorted(results.items(), key=lambda pair: -pair[1].score))
    model, why = decide(scores, default_model)
    return Choice(model, why, MappingProxyType(scores), MappingProxyType(refused), data.frame)


@dataclass(frozen=True, eq=False)
class GroupChoice:
    """The number of taste groups that was chosen, and why."""

    n_groups: int  # the number of taste groups; 1 is one consensus
    why: str  # the reason, one sentence
    scores: Sequence[HeldOut]  # the held-out scores of 1, 2, .. groups, as far as they were tried.


def choose_n_groups(
    estimator: PairEstimator,
    data: Comparisons,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> GroupChoice:
    """Choose the number of taste groups of a model with the option ``n_groups``.

    It is increased from 1, one consensus, as long as one more group predicts held-out comparisons
    better by more than `CLEARLY` standard errors of the difference, up to `MAX_GROUPS`.
    """
    fold = first_folds(assign_comparison_folds(data, folds, seed))
    scores: list[HeldOut] = []
    for n_groups in range(1, MAX_GROUPS + 1):
        model = copy(estimator).set_params(n_groups=n_groups)
        held_out = score_comparison_folds(model, data, fold, progress)
        scores.append(replace(held_out, model=_groups(n_groups)))
        if n_groups == 1:
            continue
        ahead, error = scores[-1].ahead_of(scores[-2])
        if not ahead > CLEARLY * error:  # nor if the error is unknown
            gap = format_with_error(ahead, error)
            why = (
                f"{_groups(n_groups)} do not predict held-out comparisons clearly better than "
                f"{_groups(n_groups - 1)} (log-probability {gap} higher per comparison)"
            )
            return GroupChoice(n_groups - 1, why, scores)
    return GroupChoice(MAX_GROUPS, f"more than {_groups(MAX_GROUPS)} are not tried", scores)


def _groups(n_groups: int) -> str:
    return "one consensus" if n_groups == 1 else f"{n_groups} taste groups"


def _pair(data: Comparisons) -> NDArray[np.int64]:
    """Return a code of each comparison's pair of items, whichever is on the left."""
    low, high = np.minimum(data.left, data.right), np.maximum(data.left, data.right)
    return low.astype(np.int64) * data.n_items + high
