"""Fit several models to the same labels and compare them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import Any

from annotruth import metrics
from annotruth.errors import AnnotruthError, ConvergenceWarning, InputError
from annotruth.io.parse import load_table
from annotruth.io.readers import load_labels, reading_stage
from annotruth.io.sources import file_named_in_errors
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.registry import MODELS, names_to_compare
from annotruth.models.result import Fit, is_fit
from annotruth.models.storage import load
from annotruth.observations import Labels
from annotruth.observations.options import ReadOptions
from annotruth.observations.truth import MatchedTruth, match_truth
from annotruth.selection.choose import Choice, choose, make_for, registry_rank
from annotruth.selection.comparison import Comparison
from annotruth.selection.evaluate import compute_metrics


def compare(
    data: Any,
    models: Sequence[str] | None = None,
    *,
    truth: Any = None,
    scores: bool = False,
    folds: int = 5,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> Comparison:
    """Fit several models to the same labels and compare them.

    Each model, with its default options, is cross-validated (see `choose`), then fitted to all
    labels, which is timed. Models that cannot be fitted to the labels are listed with the reason.

    Parameters
    ----------
    data
        Labels in any form that `fit` takes, known truths by `Labels.with_gold`; or a fit, or the
        folder of a saved one, whose labels are compared.
    models
        The names of the models to compare; all by default.
    truth, scores
        Known truths to compute metrics against, and whether they are scores, as in `evaluate`.
    folds, seed
        As in `choose`.
    progress
        Called after every iteration of every fit.
    read, **options
        How to read the labels: `ReadOptions`, or its fields as keywords.

    Returns
    -------
    Comparison
        ``models()`` and ``agreement()`` are tables; ``report()`` writes a page.
    """
    read = ReadOptions.of(read, options)
    if read.memory is not None:
        raise InputError("compare fits many models in memory: leave out memory (`--memory`)")
    names = sorted(names_to_compare(models, MODELS), key=registry_rank)
    start_stage(progress, reading_stage(data))
    labels = _load(data, read)
    with file_named_in_errors(truth):  # before the fits, so that mistakes are reported early
        known = load_table(truth, max_size=read.max_size)
        matched = None if known is None else match_truth(known, labels, role="truth")
    choice, why = _choose(labels, names, folds, seed, progress)
    refused = {} if choice is None else dict(choice.refused)
    suitable = [name for name in names if name not in refused]
    fits, seconds, failed = _fit_all(suitable, labels, progress)
    refused |= failed
    if not fits:
        raise InputError(f"no model can be fitted; {refused[names[0]]}")
    if choice is not None:
        fits = {name: fits[name] for name in choice.scores if name in fits}
    with file_named_in_errors(truth):
        measures = {
            name: {} if matched is None else _measure(fit, matched, scores=scores)
            for name, fit in fits.items()
        }
    return Comparison(
        data=labels,
        fits=MappingProxyType(fits),
        seconds=MappingProxyType(seconds),
        choice=choice,
        why=why,
        refused=MappingProxyType(refused),
        measures=MappingProxyType(measures),
        truth=known,
    )


def _load(data: Any, read: ReadOptions) -> Labels:
    """Return the labels, or those of a fit or a saved one."""
    if not is_fit(data):
        return load_labels(data, read)
    read.refuse_options_of_data("labels")
    fit = data if hasattr(data, "kind") else load(data)
    if fit.kind == "comparisons":
        raise InputError(
            "this is a fit of comparisons: compare models of comparisons with compare_rankings"
        )
    # Models are compared by the labels alone: few take a classifier.
    return load_labels(replace(fit.data, classifier=None), ReadOptions(drop=read.drop))


def _choose(
    labels: Labels, names: Sequence[str], folds: int, seed: int, progress: ProgressCallback | None
) -> tuple[Choice | None, str]:
    try:
        choice = choose(labels, names, folds=folds, seed=seed, progress=progress)
    except InputError as error:  # such as one label per item; models can still be fitted
        return None, str(error)
    return choice, choice.why


def _fit_all(
    names: Sequence[str], labels: Labels, progress: ProgressCallback | None
) -> tuple[dict[str, Fit], dict[str, float], dict[str, str]]:
    """Return the fits of models to all labels, the seconds they took, and why others failed."""
    fits: dict[str, Fit] = {}
    seconds: dict[str, float] = {}
    failed: dict[str, str] = {}
    for done, name in enumerate(names):
        stage = f"fitting to all labels: {name}, {done + 1} of {len(names)}"
        start_stage(progress, stage, done=done, total=len(names))
        try:
            fits[name], seconds[name] = _timed(name, labels, progress)
        except AnnotruthError as error:
            failed[name] = str(error)
    return fits, seconds, failed


def _timed(name: str, labels: Labels, progress: ProgressCallback | None) -> tuple[Fit, float]:
    estimator = make_for(name, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the column `converged` shows it
        start = perf_counter()
        fit = estimator.fit(labels, progress=progress).result_
        return fit, perf_counter() - start


def _measure(fit: Fit, truth: MatchedTruth, *, scores: bool) -> dict[str, float]:
    """Return the metrics of `evaluate`, and the 95% interval of the accuracy."""
    measures = compute_metrics(fit, truth, scores=scores)
    if "accuracy" in measures:
        n = len(truth.item)
        low, high = metrics.accuracy_interval(measures["accuracy"] * n, n)
        measures |= {"accuracy_low": float(low), "accuracy_high": float(high)}
    return measures
