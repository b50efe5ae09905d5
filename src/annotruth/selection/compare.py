"""Fit several models to the same labels and compare them: tables and a page."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth import metrics
from annotruth.bindings import bound
from annotruth.errors import AnnotruthError, ConvergenceWarning, InputError, option
from annotruth.io.parse import load_table
from annotruth.io.readers import load_labels, reading_stage
from annotruth.io.sources import file_named_in_errors
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.registry import MODELS, names_to_compare
from annotruth.models.result import Fit, is_fit
from annotruth.models.storage import load
from annotruth.observations import Labels
from annotruth.observations.frames import as_arrow, from_arrow
from annotruth.observations.keywords import ReadKeywords
from annotruth.observations.options import ReadOptions, names_keywords
from annotruth.observations.truth import match_truth
from annotruth.selection.choose import (
    Choice,
    Finding,
    choose,
    find_simplest,
    make_for,
    registry_rank,
)
from annotruth.selection.evaluate import compute_metrics
from annotruth.selection.heldout import HeldOut

# What completion offers.
_MODEL_COLUMNS = {
    "model": pa.string(),
    "held_out": pa.float64(),
    "held_out_error": pa.float64(),
    "behind": pa.float64(),
    "behind_error": pa.float64(),
    "accuracy": pa.float64(),
    "accuracy_low": pa.float64(),
    "accuracy_high": pa.float64(),
    "f1_macro": pa.float64(),
    "plcc": pa.float64(),
    "srocc": pa.float64(),
    "rmse": pa.float64(),
    "spammers": pa.int64(),
    "iterations": pa.int64(),
    "converged": pa.bool_(),
    "seconds": pa.float64(),
    "refused": pa.string(),
}
_PAIR_COLUMNS = {
    "model": pa.string(),
    "other": pa.string(),
    "same_label": pa.float64(),
    "score_correlation": pa.float64(),
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Fits of several models to the same labels. Returned by `compare`.

    Attributes
    ----------
    data
        The labels.
    fits
        The fit of each model, in the order of the held-out scores.
    seconds
        The time that each fit to all labels took.
    choice
        The held-out scores and the selected model; None where no label could be held out.
    why
        Why a model was selected, or why none could be.
    refused
        The models that could not be fitted, with the reason.
    measures
        The metrics of each model against the truth, if one was given; the accuracy with its 95%
        interval.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, person, item % 3) for item in range(9) for person in "abcd"]
    >>> compared = at.compare(labels, ["majority", "gpm"])
    >>> compared.model_table().select(["model", "converged"]).to_pylist()
    [{'model': 'gpm', 'converged': True}, {'model': 'majority', 'converged': True}]
    >>> compared.agreement_table()["same_label"].to_pylist()
    [1.0]
    """

    data: Labels
    fits: Mapping[str, Fit]
    seconds: Mapping[str, float]
    choice: Choice | None
    why: str
    refused: Mapping[str, str]
    measures: Mapping[str, Mapping[str, float]]

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.fits)} on {self.data.describe()})"

    @property
    def finding(self) -> str:
        """Which model to take by the held-out scores, one sentence."""
        return self.why if self._finding is None else self._finding.sentence

    @property
    def recommended(self) -> str | None:
        """The simplest model within one standard error of the best one; None without scores."""
        return None if self._finding is None else self._finding.model

    @cached_property
    def _finding(self) -> Finding | None:
        return find_simplest(self._scores) if self._scores else None

    @property
    def _scores(self) -> dict[str, HeldOut]:
        """The held-out scores of the fitted models, best first."""
        scores = {} if self.choice is None else self.choice.scores
        return {name: scores[name] for name in self.fits if name in scores}

    def models(self) -> Any:
        """Return one row per model: held-out score, metrics, spammers, iterations, seconds."""
        return from_arrow(self.model_table(), self.data.frame)

    def agreement(self) -> Any:
        """Return one row per pair of models: share of equal labels, correlation of scores."""
        return from_arrow(self.agreement_table(), self.data.frame)

    def model_table(self) -> pa.Table:
        """Return the table of models in Arrow; refused models come last, with the reason."""
        rows: list[dict[str, Any]] = []
        for name, fit in self.fits.items():
            row: dict[str, Any] = {
                "model": name,
                "spammers": fit.n_spammers,
                "iterations": fit.n_iter,
                "converged": fit.converged,
                "seconds": self.seconds[name],
            }
            rows.append(row | self._score_entries(name) | dict(self.measures[name]))
        rows += [{"model": name, "refused": reason} for name, reason in self.refused.items()]
        return _table(rows, _MODEL_COLUMNS)

    def _score_entries(self, name: str) -> dict[str, float]:
        """Return a model's held-out score and its difference from the best one."""
        if name not in self._scores:
            return {}
        score, best = self._scores[name], next(iter(self._scores.values()))
        behind, error = best.ahead_of(score)
        return {
            "held_out": score.score,
            "held_out_error": score.standard_error,
            "behind": behind,
            "behind_error": error,
        }

    def agreement_table(self) -> pa.Table:
        """Return the table of pairs of models in Arrow."""
        rows = [
            {
                "model": one,
                "other": other,
                "same_label": _share_equal(self.fits[one], self.fits[other]),
                "score_correlation": _correlation(self.fits[one], self.fits[other]),
            }
            for one, other in combinations(self.fits, 2)
        ]
        return _table(rows, _PAIR_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON types."""
        data = self.data
        return {
            "n_items": data.n_items,
            "n_annotators": data.n_annotators,
            "n_labels": data.n_labels,
            "n_categories": data.n_categories,
            "finding": self.finding,
            "recommended": self.recommended,
            "chosen": None if self.choice is None else self.choice.model,
            "why": self.why,
            "models": self.model_table().to_pylist(),
            "agreement": self.agreement_table().to_pylist(),
        }

    def report(
        self, path: str | Path, *, source: str | None = None, title: str | None = None
    ) -> None:
        """Write one HTML or PDF file with the finding and the tables.

        ``source`` is its heading; with a ``title``, it is named under it.
        """
        bound("Comparison.report")(self, path, source=source, title=title)


def _share_equal(one: Fit, other: Fit) -> float | None:
    if one.label is None or other.label is None:
        return None
    return float(np.mean(one.label == other.label))


def _correlation(one: Fit, other: Fit) -> float | None:
    if one.expectation is None or other.expectation is None:
        return None
    return metrics.plcc(one.expectation, other.expectation)


def _table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """Return a table of rows in which NaN is missing."""
    return pa.table(
        {name: _column([row.get(name) for row in rows], kind) for name, kind in columns.items()}
    )


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values, or null where they are None or NaN, without `pa.array`, which loads pandas."""
    is_null = np.array(
        [
            value is None or (isinstance(value, float) and not math.isfinite(value))
            for value in values
        ],
        dtype=bool,
    )
    if pa.types.is_string(kind):
        filled = as_arrow([value or "" for value in values])
    else:
        numbers = [0.0 if null else value for value, null in zip(values, is_null, strict=True)]
        filled = as_arrow(np.array(numbers, dtype=np.float64)).cast(kind)
    return pc.if_else(as_arrow(is_null), pa.nulls(len(values), kind), filled)


@names_keywords(ReadKeywords)
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
    **options: Unpack[ReadKeywords],
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
        raise InputError(f"compare fits many models in memory: leave out {option('memory')}")
    names = sorted(names_to_compare(models, MODELS), key=registry_rank)
    start_stage(progress, reading_stage(data))
    labels = _load(data, read)
    with file_named_in_errors(truth):  # before the fits, so that mistakes are reported early
        known = load_table(truth, max_size=read.max_size)
        matched = None if known is None else match_truth(known, labels, role="truth")
    try:
        choice = choose(labels, names, folds=folds, seed=seed, progress=progress)
        why = choice.why
    except InputError as error:  # such as one label per item; models can still be fitted
        choice, why = None, str(error)
    refused = {} if choice is None else dict(choice.refused)
    suitable = [name for name in names if name not in refused]
    fits, seconds, failed = _fit_all(suitable, labels, progress)
    refused |= failed
    if not fits:
        raise InputError(f"no model can be fitted; {refused[names[0]]}")
    if choice is not None:
        fits = {name: fits[name] for name in choice.scores if name in fits}
    with file_named_in_errors(truth):
        measures: dict[str, dict[str, float]] = {name: {} for name in fits}
        for name, fit in fits.items():
            if matched is None:
                break
            found = measures[name] = compute_metrics(fit, matched, scores=scores)
            if "accuracy" in found:
                n = len(matched.item)
                interval = metrics.accuracy_interval(found["accuracy"] * n, n)
                found["accuracy_low"], found["accuracy_high"] = map(float, interval)
    return Comparison(
        data=labels,
        fits=MappingProxyType(fits),
        seconds=MappingProxyType(seconds),
        choice=choice,
        why=why,
        refused=MappingProxyType(refused),
        measures=MappingProxyType(measures),
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
            estimator = make_for(name, labels)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # a column shows it
                started = perf_counter()
                fits[name] = estimator.fit(labels, progress=progress).result_
                seconds[name] = perf_counter() - started
        except AnnotruthError as error:
            failed[name] = str(error)
    return fits, seconds, failed
