"""The front door: from a file or a frame to a fit, to how good it is, to what to ask next."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from annotruth import metrics
from annotruth.active import Advice, Plan, advise, plan
from annotruth.errors import AnnotruthWarning, InputError
from annotruth.io.readers import read_labels, read_table
from annotruth.labels import DuplicatePolicy, Labels, ScaleKind
from annotruth.labels.truth import Truth, match_truth
from annotruth.models.base import Estimator
from annotruth.models.em import ProgressCallback
from annotruth.models.registry import DEFAULT_MODEL, model_named
from annotruth.models.result import Fit
from annotruth.models.robust_gpm import RobustGPM, has_room


def fit(
    data: Any,
    model: str | Estimator | None = None,
    *,
    gold: Any = None,
    record: Any = None,
    columns: Mapping[str, str] | None = None,
    scale: ScaleKind = "auto",
    categories: Sequence[Any] | None = None,
    duplicates: DuplicatePolicy = "refuse",
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Fit:
    """Fit a model to labels.

    Parameters
    ----------
    data
        A path (CSV, TSV, Parquet, Arrow, JSON lines, each also compressed), a pandas, polars or
        pyarrow frame, a list of (item, annotator, label) tuples, or `Labels`.
    model
        A model's name, or an estimator with its options set. Without one it is robust-gpm, or
        gpm where there are too many categories for that.
    gold
        Known truths of some items: a path, a frame of ``item, label``, a mapping or a Series.
    record
        What is known of some annotators from earlier work (for robust-gpm): a path or a frame of
        ``annotator, reliability`` and more, as a fit's annotators, or a mapping.
    columns
        Which column is the item, the annotator, the label, where the names do not say.
    scale
        "nominal", "ordinal", or "auto": numbers and listed categories are ordinal.
    categories
        All categories, lowest first; those nobody chose count too.
    duplicates
        What to do when a person labelled an item twice: "refuse", "keep" or "last".
    progress
        Called after every iteration.
    **options
        The model's own options, such as ``tol=1e-6``.

    Returns
    -------
    Fit
        Its tables come in the library of the frame that went in; from a path or tuples, in
        pandas if it is installed, else in pyarrow.
    """
    estimator = make_estimator(DEFAULT_MODEL if model is None else model, options)
    labels = _labels(data, gold, record, columns, scale, categories, duplicates)
    if model is None and not options and not has_room(labels):
        warnings.warn(
            f"{labels.n_annotators:,} annotators and {labels.n_categories:,} categories are too "
            f"many for {DEFAULT_MODEL}: gpm was fitted instead",
            AnnotruthWarning,
            stacklevel=2,
        )
        estimator = make_estimator("gpm", {})
    return estimator.fit(labels, progress=progress).result_


def next_labels(
    data: Any,
    budget: int | None = None,
    *,
    gold: Any = None,
    record: Any = None,
    columns: Mapping[str, str] | None = None,
    scale: ScaleKind = "auto",
    categories: Sequence[Any] | None = None,
    duplicates: DuplicatePolicy = "refuse",
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Advice:
    """Say which items need more labels, which have enough, and whom to ask.

    Parameters
    ----------
    data
        The labels so far, in any form that `fit` takes, as do the other arguments.
    budget
        How many labels there are to spend; None asks for all that are worth it.
    **options
        Options of robust-gpm, such as ``truth="class"``.

    Returns
    -------
    Advice
        ``items()``, ``annotators()`` and ``assignments()`` are tables as those of a fit.
    """
    labels = _labels(data, gold, record, columns, scale, categories, duplicates)
    return advise(labels, budget, model=_robust(options), progress=progress)


def plan_labels(
    data: Any,
    target: str,
    value: float,
    *,
    gold: Any = None,
    record: Any = None,
    columns: Mapping[str, str] | None = None,
    scale: ScaleKind = "auto",
    categories: Sequence[Any] | None = None,
    duplicates: DuplicatePolicy = "refuse",
    seed: int = 0,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Plan:
    """Say how many labels a target needs, by simulating more of them.

    Parameters
    ----------
    data
        The labels so far, in any form that `fit` takes, as do the other arguments.
    target, value
        What is to be reached in the mean over items: "accuracy", the leading label being right;
        "hellinger", the distance of distributions from the truth; "score", half the width of a
        score's 95% interval.
    seed
        The same seed gives the same plan.
    **options
        Options of robust-gpm, such as ``truth="class"``.
    """
    labels = _labels(data, gold, record, columns, scale, categories, duplicates)
    return plan(labels, target, value, model=_robust(options), seed=seed, progress=progress)


def evaluate(fit: Fit, truth: Any, *, scores: bool = False) -> dict[str, float]:
    """Compare a fit with known truths.

    Parameters
    ----------
    fit
        What was found.
    truth
        The truths of some or all items: a path, a frame of ``item, label``, a mapping, a Series.
    scores
        Whether the truths are scores on an ordinal scale, such as 3.4, rather than categories.

    Returns
    -------
    dict
        ``accuracy`` and ``f1_macro`` of the labels, unless the truths are scores; ``plcc``,
        ``srocc`` and ``rmse`` of the expectations on an ordinal scale.
    """
    with _naming(truth):
        answers = match_truth(_read_if_path(truth), fit.data, role="truth")
        return _measured(fit, answers, scores=scores)


def _measured(fit: Fit, answers: Truth, *, scores: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    ordinal = fit.data.scale.is_ordinal
    are_labels = not (scores and ordinal) or bool((answers.codes() >= 0).all())
    if fit.label is not None and are_labels:
        true, predicted = answers.categories(), fit.label[answers.item]
        found["accuracy"] = metrics.accuracy(true, predicted)
        found["f1_macro"] = metrics.f1_macro(true, predicted)
    if fit.expectation is not None and ordinal:
        scored, expected = answers.scores(), fit.expectation[answers.item]
        found["plcc"] = metrics.plcc(scored, expected)
        found["srocc"] = metrics.srocc(scored, expected)
        found["rmse"] = metrics.rmse(scored, expected)
    return found


def make_estimator(model: str | Estimator, options: Mapping[str, Any]) -> Estimator:
    """Make the named model with its options, refusing options it does not have."""
    if not isinstance(model, str):
        if options:
            raise InputError("give the options to the estimator itself, not to fit")
        return model
    cls = model_named(model)
    known = [field.name for field in fields(cls) if field.init]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise InputError(
            f"{model} has no option {unknown[0]!r}: it has {', '.join(known) or 'none'}"
        )
    return cls(**options)


def _robust(options: Mapping[str, Any]) -> RobustGPM:
    """Make the one model that knows what a label would tell."""
    model = make_estimator("robust-gpm", options)
    assert isinstance(model, RobustGPM)
    return model


def _labels(
    data: Any,
    gold: Any,
    record: Any,
    columns: Mapping[str, str] | None,
    scale: ScaleKind,
    categories: Sequence[Any] | None,
    duplicates: DuplicatePolicy,
) -> Labels:
    """Read labels and what is known of items and annotators."""
    make = read_labels if isinstance(data, str | Path) else Labels.of
    labels = make(data, columns=columns, scale=scale, categories=categories, duplicates=duplicates)
    if gold is not None:
        with _naming(gold):
            labels = labels.with_gold(_read_if_path(gold))
    if record is not None:
        with _naming(record):
            labels = labels.with_record(_read_if_path(record))
    return labels


def _read_if_path(data: Any) -> Any:
    return read_table(data)[0] if isinstance(data, str | Path) else data


@contextmanager
def _naming(data: Any) -> Iterator[None]:
    """Name the file in complaints about what it holds."""
    try:
        yield
    except InputError as error:
        if isinstance(data, str | Path) and not str(error).startswith(f"{data}: "):
            raise InputError(f"{data}: {error}") from error
        raise
