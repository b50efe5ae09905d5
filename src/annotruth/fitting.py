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
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from annotruth.earlier_fits import loaded_fit, on_scale, settings_of
from annotruth.engines import get_engine, native_engine
from annotruth.errors import AnnotruthWarning, InputError, shown
from annotruth.io.readers import reading_stage
from annotruth.models import base_fit
from annotruth.models.base import Estimator
from annotruth.models.base_fit import SETS, BaseFit
from annotruth.models.capabilities import check_out_of_core
from annotruth.models.em import Progress, ProgressCallback, start_stage
from annotruth.models.options import OptionsBase
from annotruth.models.registry import AUTO, DEFAULT_MODEL, make_estimator
from annotruth.models.result import Fit, is_fit
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.options import ALL_QUESTIONS, ReadOptions
from annotruth.observations.scale import MANY_NUMBERS, parse_numbers
from annotruth.observations.validate import input_warnings

if TYPE_CHECKING:
    from annotruth.engines import DistributedEngine, DistributedEngineName, DistributedFrame
    from annotruth.models.distributed_fit import DistributedFit
    from annotruth.questions.result import QuestionFits
    from annotruth.sets.fit import SetFit
    from annotruth.sets.model import SetModel

_LOGGER = logging.getLogger(__name__)

_CALLER = 4
"""The level of the stack of who called `annotruth.fit`, in functions that `fit_labels` calls."""


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """What `annotruth.fit` was asked for: its arguments."""

    data: Any
    model: Any = None
    gold: Any = None
    annotator_prior: Any = None
    classifier: Any = None
    annotators: Any = None
    by: str | Sequence[str] | None = None
    machines: Sequence[Any] = ()
    machine_margin: float | None = None
    warm_start: Any = None
    progress: ProgressCallback | None = None
    read: ReadOptions = field(default_factory=ReadOptions)
    options: Mapping[str, Any] = field(default_factory=dict)

    def special(self) -> dict[str, Any]:
        """Return the arguments that not all fits take, by name, if they are given."""
        arguments = {
            "classifier": self.classifier,
            "annotators": self.annotators,
            "by": self.by,
            "machines": self.machines or None,
            "machine_margin": self.machine_margin,
            "warm_start": self.warm_start,
        }
        return {name: value for name, value in arguments.items() if value is not None}

    @property
    def is_of_sets(self) -> bool:
        """Whether answers are said to be sets of labels."""
        name = self.model.name if isinstance(self.model, OptionsBase) else self.model
        return self.read.has_sets or (isinstance(name, str) and name == SETS)


@overload
def fit(
    data: DistributedFrame, model: str | Estimator | None = None, **options: Any
) -> DistributedFit: ...
@overload
def fit(
    data: str | Path,
    model: str | Estimator | None = None,
    *,
    engine: DistributedEngineName | DistributedEngine,
    **options: Any,
) -> DistributedFit: ...
@overload
def fit(
    data: Any,
    model: str | Estimator | None = None,
    *,
    question: Literal["all"],
    **options: Any,
) -> QuestionFits: ...
@overload
def fit(data: Any, model: SetModel, **options: Any) -> SetFit: ...
@overload
def fit(
    data: Any,
    model: str | Estimator | None = None,
    *,
    gold: Any = None,
    annotator_prior: Any = None,
    classifier: Any = None,
    annotators: Any = None,
    by: str | Sequence[str] | None = None,
    machines: Sequence[Any] = (),
    machine_margin: float | None = None,
    warm_start: Fit | str | Path | None = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> Fit: ...
def fit(
    data: Any,
    model: str | Estimator | SetModel | None = None,
    *,
    gold: Any = None,
    annotator_prior: Any = None,
    classifier: Any = None,
    annotators: Any = None,
    by: str | Sequence[str] | None = None,
    machines: Sequence[Any] = (),
    machine_margin: float | None = None,
    warm_start: Fit | str | Path | None = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> Fit | DistributedFit | SetFit | QuestionFits:
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
        Known truths of some items: a path, a frame of ``item, label``, a mapping or a Series.
    annotator_prior
        What is known about some annotators from earlier work (for robust-gpm): a path or a frame
        of ``annotator, reliability`` and more, such as a fit's annotators, or a mapping.
    classifier
        A classifier's probabilities of the categories (for robust-gpm and dawid-skene), of items
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
        A fit of the same model, or the folder of a saved one, to start from, for instance with all
        labels of a campaign again, in which the fit's labels are. Labels are read on its scale.
        Items and annotators of the fit come first in the result.
    progress
        Called after every iteration.
    read
        How to read the labels, unless given by keywords.
    **options
        How to read the labels, by the names in `ReadOptions`, such as ``scale="ordinal"``; and
        the model's own options, such as ``tol=1e-6``.

    Returns
    -------
    Fit
        For labels on this machine. Its tables come in the library of the frame that went in; from
        a path or tuples, in pandas if it is installed, else in pyarrow.
    DistributedFit
        For a frame of a distributed engine such as Spark, and for a file or table that such an
        engine reads (``engine="spark"``). Its tables are frames of the engine.
    SetFit
        For answers that are sets of labels: lists, exports of questions with several choices, or
        ``sets=True``.
    QuestionFits
        With ``question="all"``: the fit of every question.
    """
    read, options = ReadOptions.split(read, options)
    if is_fit(data):
        read.refuse_options_of_data("labels")
    request = FitRequest(
        data=data,
        model=model,
        gold=gold,
        annotator_prior=annotator_prior,
        classifier=classifier,
        annotators=annotators,
        by=by,
        machines=machines,
        machine_margin=machine_margin,
        warm_start=warm_start,
        progress=progress,
        read=read,
        options=options,
    )
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {shown(progress)}: give a function")
    if isinstance(read.question, str) and read.question == ALL_QUESTIONS:
        return _fit_questions(request)
    if request.is_of_sets:
        from annotruth.special_fits import fit_sets

        return fit_sets(request, data)
    return fit_labels(request)


def _fit_questions(request: FitRequest) -> QuestionFits:
    """Fit every question, and share what is known of annotators where that predicts better."""
    _check_questions(request)
    from annotruth.questions.fitting import share_between_questions
    from annotruth.questions.reading import question_named_in_errors, read_questions

    read, progress = request.read, request.progress
    start_stage(progress, reading_stage(request.data))
    labels = read_questions(
        request.data, read, gold=request.gold, annotator_prior=request.annotator_prior
    )
    of_one = FitRequest(data=None, model=request.model, options=request.options, progress=progress)
    fits: dict[str, Fit] = {}
    for name, of_question in labels.items():
        with question_named_in_errors(name):
            made = fit_labels(replace(of_one, data=of_question))
            if not isinstance(made, Fit):
                raise InputError(
                    "its answers are sets of labels: fit it alone (`--question NAME`), and the "
                    "others from a file without it"
                )
        fits[name] = made
        warn_of_scale(made, read, f"question {shown(name)}: ")

    def refit(before: Fit, with_prior: Labels) -> Fit:
        again = fit_labels(
            replace(of_one, data=with_prior, model=before.model, options=settings_of(before))
        )
        assert isinstance(again, Fit)
        return replace(again, chosen=before.chosen)

    settings = {name: settings_of(each) for name, each in fits.items()}
    return share_between_questions(fits, refit, settings, progress)


def _check_questions(request: FitRequest) -> None:
    """Refuse what all questions at once do not take."""
    from annotruth.special_fits import with_flag

    given = [with_flag(name) for name in request.special()]
    if request.is_of_sets:
        given.append("sets (`--sets`, `--separator`)")
    for what in given:
        raise InputError(
            f"{what} is of one question: name the question (`--question NAME`), or leave it out"
        )
    engine = getattr(request.model, "engine", request.options.get("engine", "memory"))
    if native_engine(request.data) is not None or get_engine(engine).capabilities.distributed:
        raise InputError(
            "all questions at once are fitted on this machine: leave out the engine (`--engine`), "
            "or name one question of a file of its own"
        )


def fit_labels(request: FitRequest) -> Fit | DistributedFit | SetFit:
    """Return the fit of labels; if the file turns out to hold sets of labels, that of sets."""
    request, previous = _continued_request(request)
    estimator = _named_estimator(request)
    _check_memory(request, estimator)
    data = _data_for(request, estimator)
    engine = get_engine("memory") if estimator is None else estimator.engine_for(data)
    if request.special():
        from annotruth.special_fits import check_special  # most fits have none of it

        check_special(request, estimator, engine)
    start_stage(request.progress, reading_stage(data))
    labels = engine.read(
        data, request.read, gold=request.gold, annotator_prior=request.annotator_prior
    )
    if labels.scale.has_sets:
        from annotruth.special_fits import fit_sets

        return fit_sets(request, labels)
    if request.classifier is not None:
        from annotruth.special_fits import with_classifier

        labels = with_classifier(labels, request)
    estimator, chosen = _estimator_for(request, estimator, labels)
    start_stage(request.progress, f"fitting {estimator.name}")
    _LOGGER.info("fitting %s to %s", estimator.name, labels.describe())
    result = _run(request, estimator, labels, previous)
    _LOGGER.info("%s after %d iterations: %s", result.model, result.n_iter, result.stop_reason)
    found = replace(result, chosen=chosen)
    if isinstance(found, Fit):
        found = continued(found, previous)
    if not isinstance(data, Labels):
        warn_of_scale(found, request.read)
    return cast("Fit | DistributedFit", found)


def _continued_request(request: FitRequest) -> tuple[FitRequest, Fit | None]:
    """Return the request with the model, options and scale of ``warm_start``, and that fit."""
    if request.warm_start is None:
        return request, None
    previous = loaded_fit(request.warm_start)
    if not (isinstance(request.data, Labels) or is_fit(request.data)):  # these have a scale
        request = replace(request, read=on_scale(previous, request.read))
    if request.model is None:
        options = {**settings_of(previous), **request.options}
        request = replace(request, model=previous.model, options=options)
    return request, previous


def _named_estimator(request: FitRequest) -> Estimator | None:
    """Return the estimator that was asked for; None for the one that predicts best."""
    model, options = request.model, dict(request.options)
    home = native_engine(request.data)
    if isinstance(model, str) and model == AUTO:
        if home is not None:
            raise InputError(f"{AUTO} fits many models, in memory: name one for labels on {home}")
        if options:
            raise InputError(
                f"{AUTO} chooses the model and sets no options: name a model to set its own"
            )
        return None
    if home is not None and (model is None or isinstance(model, str)):
        options = {"engine": home, **options}
    return make_estimator(DEFAULT_MODEL if model is None else model, options)


def _check_memory(request: FitRequest, estimator: Estimator | None) -> None:
    """Refuse a limit of memory that the model cannot keep."""
    if request.read.memory is None:
        return
    if estimator is None:
        raise InputError(f"{AUTO} fits many models, in memory: name one, or leave out memory")
    check_out_of_core(estimator)


def _data_for(request: FitRequest, estimator: Estimator | None) -> Any:
    """Return the data; of a fit, the labels, without what the model cannot use."""
    if not is_fit(request.data):
        return request.data
    labels = replace(loaded_fit(request.data).data, annotator_weight=None)
    if estimator is None or not estimator.capabilities.classifier or request.by is not None:
        return replace(labels, classifier=None)
    return labels


def _estimator_for(
    request: FitRequest, estimator: Estimator | None, labels: LabelSummary
) -> tuple[Estimator, dict[str, Any] | None]:
    """Return the estimator to fit, and why it was chosen if that was left open."""
    if estimator is None:
        assert isinstance(labels, Labels)
        from annotruth.selection.choose import choose

        choice = choose(labels, progress=request.progress)
        return make_estimator(choice.model, {}), choice.to_dict()
    is_default = request.model is None and request.options.keys() <= {"engine"}
    if is_default and not request.special() and not _room_for_default(labels):
        too_many = f"{labels.n_annotators:,} annotators and {labels.n_categories:,} categories are too many"
        warnings.warn(
            f"{too_many} for {DEFAULT_MODEL}: gpm was fitted instead",
            AnnotruthWarning,
            stacklevel=_CALLER + 1,
        )
        other = make_estimator("gpm", {"engine": getattr(estimator, "engine", "memory")})
        return other, {"model": other.name, "why": too_many, "instead_of": DEFAULT_MODEL}
    return estimator, None


def _run(
    request: FitRequest, estimator: Estimator, labels: LabelSummary, previous: Fit | None
) -> BaseFit:
    """Return the fit of labels by an estimator, with what was asked for beside it."""
    progress = _log_iterations(request.progress)
    if request.machines or request.by is not None:
        from annotruth.special_fits import fit_groups_or_machines

        return fit_groups_or_machines(replace(request, progress=progress), estimator, labels)
    result: BaseFit = estimator.fit(labels, warm_start=previous, progress=progress).result_
    return with_over_time(result, estimator) if isinstance(result, Fit) else result


def _log_iterations(progress: ProgressCallback | None) -> ProgressCallback | None:
    """Return a callback that also logs every iteration, if that level is enabled."""
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return progress

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
    if not fit.data.covariates.has_times:
        return fit
    from annotruth.analyses.over_time import add_over_time  # loaded only if labels have times

    return add_over_time(fit, estimator)


def warn_of_scale(found: BaseFit, read: ReadOptions, where: str = "") -> None:
    """Warn of a scale that the labels may not have, unless it was given; ``where`` comes first."""
    if read.categories is not None:
        return
    messages = [_many_numbers(found)]
    messages += input_warnings(found.data.scale) if read.scale == "auto" else []
    for message in filter(None, messages):
        warnings.warn(f"{where}{message}", AnnotruthWarning, stacklevel=_CALLER + 1)


def _many_numbers(found: BaseFit) -> str:
    """Return the warning for a model of categories and the numbers of a continuous scale."""
    scale = found.data.scale
    if isinstance(found, Fit) and found.distribution is None:
        return ""
    if not scale.is_ordinal or len(scale) <= MANY_NUMBERS:
        return ""
    if parse_numbers(scale.categories) is None or scale.edges is not None:
        return ""
    return (
        f"the labels are {len(scale):,} different numbers, each a category of its own: if the "
        "scale is continuous, put them into bins with bins=20 (`--bins 20`)"
    )


def _room_for_default(labels: LabelSummary) -> bool:
    from annotruth.models.robust_gpm.pooling import has_room  # loaded only if no model is named

    return has_room(labels)
