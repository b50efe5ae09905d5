"""Fit several models to the same labels and compare them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth import metrics
from annotruth.errors import AnnotruthError, ConvergenceWarning, InputError
from annotruth.io.options import ReadOptions
from annotruth.io.readers import file_named_in_errors, load_labels, load_table, reading_stage
from annotruth.labels import Labels
from annotruth.labels.frames import from_arrow
from annotruth.labels.truth import MatchedTruth, match_truth
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.registry import MODELS, get_model
from annotruth.models.result import Fit
from annotruth.selection.choose import Choice, choose, make_for, registry_rank
from annotruth.selection.evaluate import compute_metrics

_MODEL_COLUMNS = {
    "model": pa.string(),
    "held_out": pa.float64(),
    "held_out_error": pa.float64(),
    "accuracy": pa.float64(),
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
        The metrics of each model against the truth, if one was given.

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

    def models(self) -> Any:
        """Return one row per model: held-out score, metrics, spammers, iterations, seconds."""
        return from_arrow(self.model_table(), self.data.frame)

    def agreement(self) -> Any:
        """Return one row per pair of models: share of equal labels, correlation of scores."""
        return from_arrow(self.agreement_table(), self.data.frame)

    def model_table(self) -> pa.Table:
        """Return the table of models in Arrow; refused models come last, with the reason."""
        scores = {} if self.choice is None else self.choice.scores
        rows: list[dict[str, Any]] = []
        for name, fit in self.fits.items():
            held_out = scores.get(name)
            row: dict[str, Any] = {
                "model": name,
                "held_out": None if held_out is None else held_out.score,
                "held_out_error": None if held_out is None else held_out.standard_error,
                "spammers": fit.n_spammers,
                "iterations": fit.n_iter,
                "converged": fit.converged,
                "seconds": self.seconds[name],
            }
            rows.append(row | dict(self.measures[name]))
        rows += [{"model": name, "refused": reason} for name, reason in self.refused.items()]
        return _table(rows, _MODEL_COLUMNS)

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
            "chosen": None if self.choice is None else self.choice.model,
            "why": self.why,
            "models": self.model_table().to_pylist(),
            "agreement": self.agreement_table().to_pylist(),
        }

    def report(self, path: str | Path, *, source: str | None = None) -> None:
        """Write one HTML file with tables and charts; ``source`` names the labels in it."""
        from annotruth.report.comparison import comparison_page
        from annotruth.report.html import write_page

        content = comparison_page(
            self.model_table(), self.agreement_table(), why=self.why, labels=self.data.describe(),
            source=source,
        )  # fmt: skip
        write_page(content, path)


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
        A path, or labels in any form that `Estimator.fit` takes; known truths by
        `Labels.with_gold`.
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
    if models is not None and not models:
        raise InputError(
            f"no model to compare: pass models (`--models A,B`), some of {', '.join(MODELS)}"
        )
    names = sorted(dict.fromkeys(models or MODELS), key=registry_rank)
    for name in names:
        get_model(name)
    start_stage(progress, reading_stage(data))
    labels = load_labels(data, read)
    matched = _match_truth(truth, labels, read.max_size)
    choice, why = _choose(labels, names, folds, seed, progress)
    refused = {} if choice is None else dict(choice.refused)
    fits: dict[str, Fit] = {}
    seconds: dict[str, float] = {}
    suitable = [name for name in names if name not in refused]
    for done, name in enumerate(suitable):
        stage = f"fitting to all labels: {name}, {done + 1} of {len(suitable)}"
        start_stage(progress, stage, done=done, total=len(suitable))
        try:
            fits[name], seconds[name] = _timed(name, labels, progress)
        except AnnotruthError as error:
            refused[name] = str(error)
    if not fits:
        raise InputError(f"no model can be fitted; {refused[names[0]]}")
    if choice is not None:
        fits = {name: fits[name] for name in choice.scores if name in fits}
    with file_named_in_errors(truth):
        measures = {
            name: {} if matched is None else compute_metrics(fit, matched, scores=scores)
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
    )


def _match_truth(truth: Any, labels: Labels, max_size: str | int | None) -> MatchedTruth | None:
    """Match the truth to the items, before the fits, so that mistakes in it are reported early."""
    if truth is None:
        return None
    with file_named_in_errors(truth):
        return match_truth(load_table(truth, max_size=max_size), labels, role="truth")


def _choose(
    labels: Labels, names: Sequence[str], folds: int, seed: int, progress: ProgressCallback | None
) -> tuple[Choice | None, str]:
    try:
        choice = choose(labels, names, folds=folds, seed=seed, progress=progress)
    except InputError as error:  # such as one label per item; models can still be fitted
        return None, str(error)
    return choice, choice.why


def _timed(name: str, labels: Labels, progress: ProgressCallback | None) -> tuple[Fit, float]:
    estimator = make_for(name, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the column `converged` shows it
        start = perf_counter()
        fit = estimator.fit(labels, progress=progress).result_
        return fit, perf_counter() - start


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
    plain = [{key: None if _is_nan(v) else v for key, v in row.items()} for row in rows]
    return pa.Table.from_pylist(plain, schema=pa.schema(list(columns.items())))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
