"""`annotruth.fit`: from its arguments to a fit, step by step.

Fits are logged under the name ``annotruth``: their start and end at level INFO, every iteration
at level DEBUG. Nothing is shown unless the program configures logging, for instance by
``logging.basicConfig(level=logging.INFO)``.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from annotruth.analyses import OPTIONS, check_analyses, fit_with_analysis
from annotruth.bindings import bound
from annotruth.engines import DistributedLabels, Engine, get_engine, native_engine
from annotruth.errors import AnnotruthWarning, InputError, option, shown
from annotruth.io.drop_list import dropped_ids, leave_out
from annotruth.io.parse import load_table
from annotruth.io.readers import reading_stage
from annotruth.io.sources import file_named_in_errors
from annotruth.models import base_fit
from annotruth.models.base import Estimator
from annotruth.models.base_fit import SETS
from annotruth.models.em import Progress, ProgressCallback, start_stage
from annotruth.models.options import FitKeywords, OptionsBase
from annotruth.models.registry import (
    AUTO,
    DEFAULT_MODEL,
    check_out_of_core,
    check_use_of_classifier,
    make_estimator,
)
from annotruth.models.result import Fit, is_fit
from annotruth.observations import Labels
from annotruth.observations.options import (
    ALL_QUESTIONS,
    Campaign,
    ReadOptions,
    names_keywords,
)
from annotruth.observations.scale import MANY_NUMBERS, parse_numbers
from annotruth.observations.validate import input_warnings
from annotruth.warm_start import as_before, check_continues

if TYPE_CHECKING:
    from annotruth.questions.result import QuestionFits
    from annotruth.sets.model import SetModel

_LOGGER = logging.getLogger(__name__)

_CALLER = 4
"""The level of the stack of who called `annotruth.fit`, in functions that `fit_labels` calls."""


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """What `annotruth.fit` was asked for."""

    data: Any
    model: Any = None
    gold: Any = None
    annotator_prior: Any = None
    special: Mapping[str, Any] = field(default_factory=dict)  # given options that few fits take
    progress: ProgressCallback | None = None
    read: ReadOptions = field(default_factory=ReadOptions)
    options: Mapping[str, Any] = field(default_factory=dict)  # of the model

    @property
    def is_of_sets(self) -> bool:
        """Whether answers are said to be sets of labels."""
        name = self.model.name if isinstance(self.model, OptionsBase) else self.model
        return self.read.has_sets or (isinstance(name, str) and name == SETS)


@overload
def fit(
    data: Any,
    model: str | Estimator | None = None,
    *,
    question: Literal["all"],
    gold: Any = None,
    annotator_prior: Any = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Unpack[FitKeywords],
) -> QuestionFits: ...
@overload
def fit(
    data: Any,
    model: str | Estimator | SetModel | None = None,
    *,
    gold: Any = None,
    annotator_prior: Any = None,
    classifier: Any = None,
    annotators: Any = None,
    by: str | Sequence[str] | None = None,
    machines: Sequence[Any] | None = None,
    machine_margin: float | None = None,
    warm_start: Fit | str | Path | None = None,
    progress: ProgressCallback | None = None,
    question: str | None = None,
    read: ReadOptions | None = None,
    **options: Unpack[FitKeywords],
) -> Fit: ...
@names_keywords(FitKeywords)
def fit(
    data: Any,
    model: str | Estimator | SetModel | None = None,
    *,
    gold: Any = None,
    annotator_prior: Any = None,
    classifier: Any = None,
    annotators: Any = None,
    by: str | Sequence[str] | None = None,
    machines: Sequence[Any] | None = None,
    machine_margin: float | None = None,
    warm_start: Fit | str | Path | None = None,
    progress: ProgressCallback | None = None,
    question: str | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> Fit | QuestionFits:
    """Fit a model to labels.

    Parameters
    ----------
    data
        A path (CSV, TSV, Parquet, Arrow, JSON lines, each also compressed, or what a platform
        exports, or a database), several of one kind (a list, a folder or a pattern such as
        ``day-*.csv``), a pandas, polars, pyarrow or Spark frame, a list of (item, annotator, label)
        tuples, or `Labels`; or a fit or the folder of a saved one, whose labels are fitted again.
    model
        A model's name, or an estimator with its options set; or "auto", which takes the model
        that predicts held-out labels best, and says why in the summary (see `choose`). Without
        one it is that of ``warm_start``, else robust-gpm, or gpm where there is no room for its
        tables, which the summary then says first.
    gold
        Known truths of some items: a path, a frame of ``item, label``, a mapping, a Series or a list of
        (item, label) tuples.
    annotator_prior
        What is known about some annotators from earlier work (for robust-gpm): a path or a frame
        of ``annotator, reliability`` and more, such as a fit's annotators, or a mapping.
    classifier
        A classifier's probabilities of the categories (for robust-gpm), of items
        that it was not trained on: a path or a frame of ``item`` and one column per category, named
        as the category or ``p_<category>``; or an array of items x categories, in the order of the
        items. The labels decide how much it counts.
    annotators
        Traits of annotators, for ``by``: a path or a frame of ``annotator`` and further columns.
    by
        A column of the traits, or several, by which annotators form groups (for robust-gpm): each
        group's opinion per item, and which items and groups differ (`Fit.groups`,
        `Fit.group_differences`, `Fit.group_summary`).
    machines
        The ids of annotators that are machines, such as language models (for robust-gpm). They are
        compared with people, those that err together count less, and each is tested whether it may
        replace a person: see `Fit.machines` and `Fit.dependence`.
    machine_margin
        By how much a machine may be worse than a person in that test: 0.1 for crowd workers (the
        default), 0.15 for trained annotators, 0.2 for experts.
    warm_start
        A fit, or the folder of a saved one, that this fit continues with exactly these labels, such as
        a later export of a campaign: it takes its model and options, unless a model is named, reads
        labels on its scale, and adds to its past fits (`Fit.past_fits`). Estimates start anew.
    progress
        Called after every iteration.
    question
        The question to take, where there are labels for several; "all" fits every question.
    read
        How to read the labels, unless given by keywords.
    **options
        How to read the labels, by the names in `ReadOptions`, such as ``scale="ordinal"``; and
        the model's own options, such as ``tol=1e-6``.

    Returns
    -------
    Fit
        Its tables come in the library of the frame that went in; from a path or tuples, in pandas if it
        is installed, else in pyarrow. For a frame of a distributed engine such as Spark, and for a file or
        table that such an engine reads (``engine="spark"``), they are frames of the engine. For answers
        that are sets of labels (lists, exports of questions with several choices, or ``sets=True``), they
        are those of sets.
    QuestionFits
        With ``question="all"``: the fit of every question.
    """
    if question is not None:
        options["question"] = question
    read, options = ReadOptions.split(read, options)
    if is_fit(data):
        read.refuse_options_of_data("labels")
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {shown(progress)}: give a function")
    special = {
        **{name: options.pop(name) for name in OPTIONS & options.keys()},
        "classifier": classifier,
        "annotators": annotators,
        "by": by,
        "machines": machines or None,
        "machine_margin": machine_margin,
        "warm_start": warm_start,
    }
    request = FitRequest(
        data=data,
        model=model,
        gold=gold,
        annotator_prior=annotator_prior,
        special={name: value for name, value in special.items() if value is not None},
        progress=progress,
        read=read,
        options=options,
    )
    if read.question == ALL_QUESTIONS:
        from annotruth.questions.fitting import fit_questions

        return fit_questions(request, fit_labels, warn_of_scale)
    if request.is_of_sets:
        return _fit_sets(request, data)
    return fit_labels(request)


def fit_labels(request: FitRequest) -> Fit:
    """Return the fit of labels; if the file turns out to hold sets of labels, that of sets."""
    special = request.special
    previous: Fit | None = None
    if "warm_start" in special:
        previous = bound("load_fit")(special["warm_start"], "labels")
        request = as_before(request, previous)
    data, read, progress = request.data, request.read, request.progress
    estimator = _named_estimator(request)
    campaign = Campaign() if previous is None else previous.campaign
    if is_fit(data):
        saved: Fit = bound("load_fit")(data, "labels")
        data = _labels_of_fit(saved, request, estimator)
        campaign = saved.campaign if previous is None else campaign
    engine = get_engine("memory") if estimator is None else estimator.engine_for(data)
    if previous is not None:
        check_continues(previous, estimator, engine)
    if special:
        _check_special(request, estimator, engine)
    start_stage(progress, reading_stage(data))

    def load(options: ReadOptions) -> Any:
        known = {"gold": request.gold, "annotator_prior": request.annotator_prior}
        return engine.read(data, options, **known)

    labels = load(read) if previous is None else campaign.read(load, read)
    if previous is not None:
        labels = leave_out(labels, ReadOptions(), also=campaign.drop)
    if labels.scale.has_sets:
        return _fit_sets(request, labels)
    if "classifier" in special:
        with file_named_in_errors(special["classifier"]):
            table = load_table(special["classifier"], max_size=read.max_size)
            labels = labels.with_classifier(table)
    chosen = None
    if estimator is None or (request.model is None and not special):
        estimator, chosen = _chosen_estimator(request, estimator, labels)
    start_stage(progress, f"fitting {estimator.name}")
    _LOGGER.info("fitting %s to %s", estimator.name, labels.describe())
    if _LOGGER.isEnabledFor(logging.DEBUG):
        progress = _log_iterations(progress)
    found = fit_with_analysis(special, estimator, labels, read, progress) if special else None
    if found is None:
        estimator.fit(labels, progress=progress)
        found = with_over_time(estimator.result_, estimator)
    found = replace(found, chosen=chosen)
    _LOGGER.info("%s after %d iterations: %s", found.model, found.n_iter, found.stop_reason)
    if not isinstance(labels, DistributedLabels):
        found = continued(found, previous)
        dropped = dropped_ids(read) if read.drops_annotators else ()
        found = replace(found, campaign=campaign.after(read, dropped))
    if not isinstance(data, Labels):  # labels that were read already
        warn_of_scale(found, read)
    return found


def _fit_sets(request: FitRequest, data: Any) -> Fit:
    from annotruth.sets.model import fit_sets

    found = fit_sets(request, data)
    _LOGGER.info("%s after %d iterations: %s", found.model, found.n_iter, found.stop_reason)
    return found


def _named_estimator(request: FitRequest) -> Estimator | None:
    """Return the estimator that was asked for; None for the one that predicts best."""
    model, options, memory = request.model, dict(request.options), request.read.memory
    home = native_engine(request.data)
    if isinstance(model, str) and model == AUTO:
        if home is not None:
            raise InputError(f"{AUTO} fits many models, in memory: name one for labels on {home}")
        if options:
            raise InputError(
                f"{AUTO} chooses the model and sets no options: name a model to set its own"
            )
        if memory is not None:
            raise InputError(f"{AUTO} fits many models, in memory: name one, or leave out memory")
        return None
    if home is not None and (model is None or isinstance(model, str)):
        options = {"engine": home, **options}
    estimator = make_estimator(DEFAULT_MODEL if model is None else model, options)
    if memory is not None:
        check_out_of_core(estimator)
    return estimator


def _labels_of_fit(saved: Fit, request: FitRequest, estimator: Estimator | None) -> Labels:
    """Return the labels of a fit, without what the model cannot use."""
    labels = replace(saved.data, annotator_weight=None)
    if estimator is None or not estimator.capabilities.classifier or "by" in request.special:
        return replace(labels, classifier=None)
    return labels


def _check_special(request: FitRequest, estimator: Estimator | None, engine: Engine) -> None:
    """Refuse a classifier, groups and machines that cannot be used, before labels are read."""
    special, read = request.special, request.read
    if "classifier" in special:
        check_use_of_classifier(estimator, engine, on_disk=read.memory is not None)
    check_analyses(special, estimator, engine, read)


def _chosen_estimator(
    request: FitRequest, estimator: Estimator | None, labels: Any
) -> tuple[Estimator, dict[str, Any] | None]:
    """Return the estimator to fit where none was named, and why, unless it is the default one."""
    if estimator is None:
        from annotruth.selection.choose import choose

        choice = choose(labels, progress=request.progress)
        return make_estimator(choice.model, {}), choice.to_dict()
    from annotruth.models.robust_gpm.pooling import has_room  # loaded only if no model is named

    if not request.options.keys() <= {"engine"} or has_room(labels):
        return estimator, None
    too_many = (
        f"{labels.n_annotators:,} annotators and {labels.n_categories:,} categories are too many"
    )
    warnings.warn(
        f"{too_many} for {DEFAULT_MODEL}: gpm was fitted instead",
        AnnotruthWarning,
        stacklevel=_CALLER,
    )
    other = make_estimator("gpm", {"engine": getattr(estimator, "engine", "memory")})
    return other, {"model": other.name, "why": too_many, "instead_of": DEFAULT_MODEL}


def _log_iterations(progress: ProgressCallback | None) -> ProgressCallback:

    def log(step: Progress) -> None:
        _LOGGER.debug("iteration %d: log-likelihood %.9g", step.n_iter, step.log_likelihood)
        if progress is not None:
            progress(step)

    return log


def continued(fit: Fit, before: Fit | None) -> Fit:
    """Return a fit with its time, and the table of the fits that it continues."""
    time = base_fit.now()
    if before is None:
        return replace(fit, fitted_at=time)
    earlier = before.past_fit_table()
    # Two fits within one second must not look like one.
    time = max(time, earlier["time"][-1].as_py() + timedelta(seconds=1))
    return replace(fit, fitted_at=time, earlier_fits=earlier)


def with_over_time(fit: Fit, estimator: Estimator) -> Fit:
    """Return a fit with results over time, where labels have a time, an order or seconds."""
    if fit.kind == "distributed" or not fit.data.covariates.has_times:
        return fit
    from annotruth.analyses.over_time import add_over_time  # loaded only if labels have times

    return add_over_time(fit, estimator)


def warn_of_scale(found: Fit, read: ReadOptions, where: str = "") -> None:
    """Warn of a scale that the labels may not have, unless it was given; ``where`` comes first."""
    if read.categories is not None:
        return
    scale = found.data.scale
    messages = input_warnings(scale) if read.scale == "auto" else []
    if (
        len(scale) > MANY_NUMBERS
        and scale.is_ordinal
        and scale.edges is None
        and parse_numbers(scale.categories) is not None
        and (found.distribution is not None or found.kind != "labels")  # a model of categories
    ):
        many = (
            f"the labels are {len(scale):,} different numbers, each a category of its own: if the "
            f"scale is continuous, put them into bins with {option('bins', 20)}"
        )
        messages = [many, *messages]
    for message in messages:
        warnings.warn(f"{where}{message}", AnnotruthWarning, stacklevel=_CALLER)
