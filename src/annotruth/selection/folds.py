"""Folds of labels or comparisons, and what models predict of those that are held out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import ConvergenceWarning, InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import Progress, ProgressCallback, start_stage
from annotruth.observations.validate import check_seed

FLOOR = 0.01
"""Weight of the uniform distribution in every prediction, which bounds the loss of one label."""

_MAX_PREDICTIONS = 2**20  # numbers in one array of predictions


def fold_generator(n_folds: int, seed: int) -> np.random.Generator:
    """Return the generator that assigns folds; raise if the number or the seed is none."""
    if n_folds < 2:
        raise InputError(f"folds must be 2 or more, not {n_folds}")
    check_seed(seed)
    return np.random.default_rng(seed)


class HeldOutModel(NamedTuple):
    """A model that can be fitted to some of the data and then predict the rest."""

    name: str  # the model's name
    # fits the model to all rows but those of the given fold; returns whether it converged
    fit: Callable[[int, ProgressCallback | None], bool]
    # returns the probabilities of all outcomes of the given rows, one row each
    predict: Callable[[Codes], Floats]


def log_p_of_folds(
    model: HeldOutModel,
    outcome: NDArray[np.integer[Any]],
    n_outcomes: int,
    fold: Codes,
    progress: ProgressCallback | None,
    *,
    number: int = 1,
    n_models: int = 1,
) -> tuple[Floats, bool]:
    """Return the log-probability of each outcome that is held out, and whether all fits converged."""
    log_p = np.empty(len(outcome))
    converged = True
    folds = np.unique(fold[fold >= 0])
    n_rows = max(_MAX_PREDICTIONS // max(n_outcomes, 32), 1)
    for k, current in enumerate(folds.tolist()):
        stage = f"cross-validating {model.name}, fold {k + 1} of {len(folds)}"
        start_stage(
            progress,
            f"comparing: {model.name}, {number} of {n_models}" if n_models > 1 else stage,
            done=(number - 1) * len(folds) + k,
            total=n_models * len(folds),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported by `converged`
            converged &= model.fit(current, _with_stage(progress, stage))
        held_out_rows = np.flatnonzero(fold == current)
        for rows in np.split(held_out_rows, range(n_rows, len(held_out_rows), n_rows)):
            p = model.predict(rows)[np.arange(len(rows)), outcome[rows]]
            log_p[rows] = np.log((1.0 - FLOOR) * p + FLOOR / n_outcomes)
    return log_p[fold >= 0], converged


def keep_one_label(
    fold: Codes, owners: Sequence[NDArray[np.integer[Any]]], n_labels: Codes, order: Codes
) -> None:
    """Set the fold of one label to -1 for each owner whose labels are all in one fold.

    ``owners`` has one array for labels, which have one owner each, and two for comparisons.
    """
    n_folds = int(fold.max(initial=0)) + 1
    codes = [owner.astype(np.int64) * n_folds for owner in owners]
    for owner, code in zip(owners, codes, strict=True):
        held_out_labels = fold >= 0
        n_in_fold = np.zeros(len(n_labels) * n_folds, dtype=np.int64)
        for each in codes:
            n_in_fold += np.bincount((each + fold)[held_out_labels], minlength=len(n_in_fold))
        all_in_fold = n_in_fold[np.where(held_out_labels, code + fold, 0)] == n_labels[owner]
        candidates = order[(held_out_labels & all_in_fold)[order]]
        _, first = np.unique(owner[candidates], return_index=True)
        fold[candidates[first]] = -1


def _with_stage(progress: ProgressCallback | None, stage: str) -> ProgressCallback | None:
    """Return a callback that adds the name of the stage."""
    if progress is None:
        return None

    def report(current: Progress) -> None:
        progress(current._replace(stage=stage))

    return report
