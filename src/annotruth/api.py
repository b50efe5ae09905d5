"""The front door: from a file or a frame to a fit, and from a fit to how good it is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotruth.engines.protocol import ENGINES, Engine, name_of
from annotruth.errors import AnnotruthWarning, InputError
from annotruth.io.sources import labels_from, naming, read_if_path
from annotruth.labels import Bins, DuplicatePolicy, Labels, LabelSummary, ScaleKind
from annotruth.labels.bins import MANY_NUMBERS
from annotruth.labels.frames import is_spark_frame
from annotruth.labels.input_warnings import doubts
from annotruth.labels.scale import numbers_behind
from annotruth.labels.truth import match_truth
from annotruth.models.base import Estimator
from annotruth.models.base_fit import BaseFit
from annotruth.models.em import ProgressCallback
from annotruth.models.registry import DEFAULT_MODEL, make_estimator
from annotruth.models.result import Fit
from annotruth.models.storage import load

if TYPE_CHECKING:
    from annotruth.advice import Advice, Plan
    from annotruth.models.robust_gpm import RobustGPM

AUTO = "auto"
"""Stands for the model that the labels speak for."""


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
    bins: Bins | None = None,
    input_format: str | None = None,
    question: str | None = None,
    memory: str | int | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Fit:
    """Fit a model to labels.

    Parameters
    ----------
    data
        A path (CSV, TSV, Parquet, Arrow, JSON lines, each also compressed, or what a platform
        exports), a pandas, polars, pyarrow or Spark frame, a list of (item, annotator, label)
        tuples, or `Labels`.
    model
        A model's name, or an estimator with its options set; or "auto", which takes the model
        that predicts held-out labels best, and says why in the summary (see `choose`). Without
        one it is robust-gpm, or gpm where there are too many categories for that.
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
    bins
        For numbers on a continuous scale: how many bins of equal width to put them into, or the
        edges of the bins. Each bin is a category that counts with its centre.
    input_format
        What a file is ("wide", "mturk", ..), where it is taken for something else.
    question
        Which question to take, where a file has answers to several.
    memory
        How much memory the labels and the fit may take, such as "1GB": the labels then stay on
        disk, in the folder for temporary files, and the answer is the same. For long tables in a
        file, and the models gpm, robust-gpm and dawid-skene.
    progress
        Called after every iteration.
    **options
        The model's own options, such as ``tol=1e-6``.

    Returns
    -------
    Fit
        Its tables come in the library of the frame that went in; from a path or tuples, in
        pandas if it is installed, else in pyarrow. Of a frame on Spark, or a file or table read
        with ``engine="spark"``, it is a `SparkFit`.
    """
    auto = model == AUTO
    if is_spark_frame(data):
        if auto:
            raise InputError(f"{AUTO} fits many models, in memory: name one for labels on Spark")
        if model is None or isinstance(model, str):
            options = {"engine": "spark", **options}
    if auto and options:
        raise InputError(
            f"{AUTO} chooses the model and sets no options: name a model to set its own"
        )
    estimator = None if auto else make_estimator(DEFAULT_MODEL if model is None else model, options)
    if memory is not None:
        if estimator is None:
            raise InputError(
                f"{AUTO} fits many models, in memory: name one, or leave the memory out"
            )
        estimator.check_fits_on_disk()
    how: dict[str, Any] = {
        "gold": gold,
        "record": record,
        "columns": columns,
        "scale": scale,
        "categories": categories,
        "duplicates": duplicates,
        "bins": bins,
        "input_format": input_format,
        "question": question,
        "memory": memory,
    }
    engine = getattr(estimator, "engine", "memory")
    if goes_to_spark(data, engine):
        if estimator is not None:
            estimator.check_fits_on_spark()
        labels: LabelSummary = labels_on_spark(data, engine, **how)
    else:
        labels = labels_from(data, **how)
    if model is None and options.keys() <= {"engine"} and not _room_for_default(labels):
        warnings.warn(
            f"{labels.n_annotators:,} annotators and {labels.n_categories:,} categories are too "
            f"many for {DEFAULT_MODEL}: gpm was fitted instead",
            AnnotruthWarning,
            stacklevel=2,
        )
        estimator = make_estimator("gpm", options)
    chosen = None
    if estimator is None:
        assert isinstance(labels, Labels)
        from annotruth.selection.choose import choose

        choice = choose(labels, progress=progress)
        estimator, chosen = make_estimator(choice.model, {}), choice.record()
    found = replace(estimator.fit(labels, progress=progress).result_, chosen=chosen)
    if categories is None and not isinstance(data, Labels):
        _advise_bins(found)
        for doubt in doubts(labels.scale) if scale == "auto" else ():
            warnings.warn(doubt, AnnotruthWarning, stacklevel=2)
    return found


def update(
    fit: Fit | str | Path,
    data: Any,
    *,
    gold: Any = None,
    columns: Mapping[str, str] | None = None,
    duplicates: DuplicatePolicy = "refuse",
    input_format: str | None = None,
    question: str | None = None,
    refit: bool = False,
    progress: ProgressCallback | None = None,
) -> Fit:
    """Take more labels into a fit, without a new fit of all.

    Parameters
    ----------
    fit
        A fit, or the folder where one was saved.
    data
        The new labels, and no others: a path or a frame, as for `fit`. Items and annotators may be
        new, categories may not.
    gold
        Known truths of new or old items, as for `fit`.
    columns, input_format, question
        As for `fit`.
    duplicates
        What to do when a person labels an item again: "refuse", "keep" (two votes) or "last"
        (the new one counts).
    refit
        Whether to iterate over all labels at the end, to where a full fit would end. Models that
        cannot be updated are fitted anew.
    progress
        Called after every iteration over all labels.

    Returns
    -------
    Fit
        Items and annotators keep their order, new ones follow; `changes` tells what is different.
    """
    before = fit if isinstance(fit, Fit) else load(fit)
    # An engine of the caller's own is told by its class, and cannot be had again.
    settings = {
        name: value
        for name, value in before.settings.items()
        if name != "engine" or value in ENGINES
    }
    estimator = make_estimator(before.model, settings).resume(before)
    if not refit:
        estimator.check_updatable()
    new = labels_from(
        data,
        columns=columns,
        duplicates=duplicates,
        input_format=input_format,
        question=question,
    )
    with naming(data if gold is None else gold):
        truths = None if gold is None else read_if_path(gold)
        estimator.partial_fit(
            new, gold=truths, duplicates=duplicates, touch=refit, progress=progress
        )
    return estimator.result_


def _advise_bins(found: BaseFit) -> None:
    """Say so when a model of categories is given the numbers of a continuous scale."""
    scale = found.data.scale
    if isinstance(found, Fit) and found.distribution is None:
        return
    if not scale.is_ordinal or len(scale) <= MANY_NUMBERS:
        return
    if numbers_behind(scale.categories) is not None and scale.edges is None:
        warnings.warn(
            f"the labels are {len(scale):,} different numbers, each a category of its own: if the "
            "scale is continuous, put them into bins (bins 10, say)",
            AnnotruthWarning,
            stacklevel=3,
        )


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
    with naming(truth):
        answers = match_truth(read_if_path(truth), fit.data, role="truth")
        from annotruth.selection.evaluate import measured

        return measured(fit, answers, scores=scores)


def goes_to_spark(data: Any, engine: str | Engine) -> bool:
    """Whether labels are on Spark, or in a file or table that an engine of Spark's is to read."""
    return is_spark_frame(data) or (name_of(engine) == "spark" and isinstance(data, str | Path))


def labels_on_spark(data: Any, engine: str | Engine, *, gold: Any, **how: Any) -> LabelSummary:
    """Make labels on Spark of a frame there, or of a file or table; ``how`` as for `labels_from`.

    What is only for labels on this machine must be None.
    """
    from annotruth.engines.spark import spark_engine

    found = spark_engine(engine)
    for name in ("record", "input_format", "question", "memory"):
        if how.pop(name) is not None:
            raise InputError(f"{name} is not for labels on Spark: leave it out")
    if isinstance(gold, str | Path):
        with naming(gold):
            gold = read_if_path(gold)
    with naming(data):
        return found.labels_of(data, gold=gold, **how)


def _room_for_default(labels: LabelSummary) -> bool:
    from annotruth.models.robust_gpm.model import has_room  # whoever names a model need not load it

    return has_room(labels)


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
    bins: Bins | None = None,
    input_format: str | None = None,
    question: str | None = None,
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
    labels = labels_from(
        data,
        gold=gold,
        record=record,
        columns=columns,
        scale=scale,
        categories=categories,
        duplicates=duplicates,
        bins=bins,
        input_format=input_format,
        question=question,
    )
    from annotruth.advice import advise

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
    bins: Bins | None = None,
    input_format: str | None = None,
    question: str | None = None,
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
    labels = labels_from(
        data,
        gold=gold,
        record=record,
        columns=columns,
        scale=scale,
        categories=categories,
        duplicates=duplicates,
        bins=bins,
        input_format=input_format,
        question=question,
    )
    from annotruth.advice import plan

    return plan(labels, target, value, model=_robust(options), seed=seed, progress=progress)


def _robust(options: Mapping[str, Any]) -> RobustGPM:
    """Make the one model that knows what a label would tell."""
    from annotruth.models.robust_gpm import RobustGPM

    model = make_estimator("robust-gpm", options)
    assert isinstance(model, RobustGPM)
    return model
