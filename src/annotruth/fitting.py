"""From what `annotruth.fit` was asked for to a fit."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotruth.engines import ENGINES, Engine, get_engine, native_engine
from annotruth.errors import AnnotruthWarning, ComparisonsError, InputError, shorten
from annotruth.io.options import ReadOptions
from annotruth.io.readers import file_named_in_errors, load_table, reading_stage
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.bins import MANY_NUMBERS
from annotruth.labels.frames import TIME_ROLES
from annotruth.labels.options import ALL_QUESTIONS
from annotruth.labels.scale import parse_numbers
from annotruth.labels.validate import input_warnings
from annotruth.models import base_fit
from annotruth.models.base import EMEstimator, Estimator
from annotruth.models.base_fit import SETS, AnnotatorResults, BaseFit
from annotruth.models.em import Progress, ProgressCallback, start_stage
from annotruth.models.pairs.result import RankFit
from annotruth.models.registry import DEFAULT_MODEL, make_estimator
from annotruth.models.result import Fit, is_fit

if TYPE_CHECKING:
    from annotruth.models.distributed_fit import DistributedFit
    from annotruth.questions.result import QuestionFits
    from annotruth.sets.fit import SetFit

_LOGGER = logging.getLogger(__name__)

AUTO = "auto"
"""The value of ``model`` for the one that predicts held-out labels best."""

_CALLER = 4
"""The level of the stack of who called `annotruth.fit`, in functions that `fit_labels` calls."""


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """What `annotruth.fit` was asked for: its arguments.

    Examples
    --------
    >>> FitRequest(data="labels.csv", by="gender").special()
    {'by': 'gender'}
    """

    data: Any
    model: Any = None
    gold: Any = None
    annotator_prior: Any = None
    classifier: Any = None
    annotators: Any = None
    by: str | Sequence[str] | None = None
    machines: Sequence[Any] = ()
    machine_margin: float = 0.1
    warm_start: Any = None
    progress: ProgressCallback | None = None
    read: ReadOptions = field(default_factory=ReadOptions)
    options: Mapping[str, Any] = field(default_factory=dict)

    def special(self) -> dict[str, Any]:
        """Return the arguments that not all fits take, by name, if they are given."""
        arguments = {
            "classifier": self.classifier,
            "by": self.by,
            "machines": self.machines or None,
            "warm_start": self.warm_start,
        }
        return {name: value for name, value in arguments.items() if value is not None}

    @property
    def is_of_sets(self) -> bool:
        """Whether answers are said to be sets of labels."""
        model = self.model
        return self.read.has_sets or model == SETS or not isinstance(model, str | Estimator | None)


def run(request: FitRequest) -> Fit | DistributedFit | SetFit | QuestionFits:
    """Return the fit that was asked for."""
    if request.read.question == ALL_QUESTIONS:
        return _fit_questions(request)
    if request.is_of_sets:
        prior = request.annotator_prior
        refused = request.special() | ({} if prior is None else {"annotator_prior": prior})
        return _fit_sets(request, request.data, refused)
    return fit_labels(request)


def fit_labels(request: FitRequest) -> Fit | DistributedFit | SetFit:
    """Return the fit of labels; if their answers turn out to be sets of labels, that of sets."""
    request, previous = _continued_request(request)
    estimator = _named_estimator(request)
    data = _data_for(request, estimator)
    engine = get_engine("memory") if estimator is None else estimator.engine_for(data)
    _check(request, estimator, engine)
    start_stage(request.progress, reading_stage(data))
    labels = engine.read(
        data, request.read, gold=request.gold, annotator_prior=request.annotator_prior
    )
    if labels.scale.has_sets:
        return _fit_sets(request, labels, request.special())
    if request.classifier is not None:
        labels = _with_classifier(labels, request)
    estimator, chosen = _estimator_for(request, estimator, labels)
    start_stage(request.progress, f"fitting {estimator.name}")
    _LOGGER.info("fitting %s to %s", estimator.name, labels.describe())
    result = _run_estimator(request, estimator, labels, previous)
    _LOGGER.info("%s after %d iterations: %s", result.model, result.n_iter, result.stop_reason)
    found = replace(result, chosen=chosen)
    if isinstance(found, Fit):
        found = continued(found, previous)
    if not isinstance(data, Labels):
        _warn_of_scale(found, request.read)
    return found


def _continued_request(request: FitRequest) -> tuple[FitRequest, Fit | None]:
    """Return the request with the model, options and scale of ``warm_start``, and that fit."""
    if request.warm_start is None:
        return request, None
    previous = loaded_fit(request.warm_start)
    request = replace(request, read=_on_scale(previous, request.read))
    if request.model is None:
        options = {**settings_of(previous), **request.options}
        request = replace(request, model=previous.model, options=options)
    return request, previous


def _named_estimator(request: FitRequest) -> Estimator | None:
    """Return the estimator that was asked for; None for the one that predicts best."""
    model, options = request.model, dict(request.options)
    home = native_engine(request.data)
    if model == AUTO:
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


def _data_for(request: FitRequest, estimator: Estimator | None) -> Any:
    """Return the data; of a fit, the labels, without what the model cannot use."""
    if not is_fit(request.data):
        return request.data
    labels = replace(loaded_fit(request.data).data, annotator_weight=None)
    if estimator is None or not estimator.capabilities.classifier or request.by is not None:
        return replace(labels, classifier=None)
    return labels


def _check(request: FitRequest, estimator: Estimator | None, engine: Engine) -> None:
    """Refuse what cannot be fitted, before labels are read."""
    if request.read.memory is not None:
        if estimator is None:
            raise InputError(f"{AUTO} fits many models, in memory: name one, or leave out memory")
        estimator.check_out_of_core()
    if request.classifier is not None:
        _check_classifier(estimator, engine, request.read)
    if request.by is not None or request.annotators is not None:
        from annotruth.groups.fit import check_groups

        check_groups(
            *(estimator, engine, request.read),
            by=request.by,
            classifier=request.classifier,
            warm_start=request.warm_start,
        )
    if request.machines:
        _check_machines(request, estimator, engine)


def _check_classifier(estimator: Estimator | None, engine: Engine, read: ReadOptions) -> None:
    if estimator is None:
        raise InputError(
            f"{AUTO} compares models without a classifier: name one that takes it (`--model "
            f"{DEFAULT_MODEL}`), or leave out classifier (`--classifier`)"
        )
    estimator.check_classifier(engine)
    if read.memory is not None:
        raise InputError(
            "a classifier (`--classifier`) needs the labels in memory: leave out memory "
            "(`--memory`), or the classifier"
        )


def _check_machines(request: FitRequest, estimator: Estimator | None, engine: Engine) -> None:
    from annotruth.machines.label_fit import check_machine_options

    others = (
        ("memory (`--memory`)", request.read.memory),
        ("a classifier (`--classifier`)", request.classifier),
        ("a warm start (`--warm-start`)", request.warm_start),
        ("groups (`--by`)", request.by),
    )
    check_machine_options(estimator, engine, margin=request.machine_margin, others=others)


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
        warnings.warn(
            f"{labels.n_annotators:,} annotators and {labels.n_categories:,} categories are too "
            f"many for {DEFAULT_MODEL}: gpm was fitted instead",
            AnnotruthWarning,
            stacklevel=_CALLER + 1,
        )
        return make_estimator("gpm", {"engine": getattr(estimator, "engine", "memory")}), None
    return estimator, None


def _run_estimator(
    request: FitRequest, estimator: Estimator, labels: LabelSummary, previous: Fit | None
) -> BaseFit:
    """Return the fit of labels, with what was asked for beside it."""
    progress = _log_iterations(request.progress)
    if not (request.machines or request.by is not None):
        result: BaseFit = estimator.fit(labels, warm_start=previous, progress=progress).result_
        return with_over_time(result, estimator) if isinstance(result, Fit) else result
    from annotruth.models.robust_gpm.model import RobustGPM

    assert isinstance(labels, Labels)
    assert isinstance(estimator, RobustGPM)
    if request.machines:
        from annotruth.machines.label_fit import fit_labels_with_machines

        return fit_labels_with_machines(
            estimator, labels, request.machines, margin=request.machine_margin, progress=progress
        )
    from annotruth.groups.fit import fit_groups

    assert request.by is not None
    return fit_groups(
        *(estimator, labels),
        by=request.by,
        annotators=request.annotators,
        progress=progress,
        max_size=request.read.max_size,
    )


def _fit_sets(request: FitRequest, data: Any, refused: Mapping[str, Any]) -> SetFit:
    """Return the fit of answers that are sets of labels; nothing may be ``refused``."""
    from annotruth.sets.fitting import fit_sets

    found = fit_sets(
        *(data, request.model, dict(request.options)),
        gold=request.gold,
        refused=dict(refused),
        read=request.read,
        progress=request.progress,
    )
    _LOGGER.info("%s after %d iterations: %s", found.model, found.n_iter, found.stop_reason)
    return found


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
    of_one = FitRequest(
        data=None, model=request.model, options=request.options, progress=progress
    )
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
        _warn_of_scale(made, read, f"question {shorten(name)!r}: ")

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
    special = request.special() | ({"sets": True} if request.is_of_sets else {})
    for name in special:
        raise InputError(f"{name} is of one question: name it (`--question NAME`), or leave it out")
    model = request.model
    is_estimator = isinstance(model, EMEstimator)
    engine = model.engine if is_estimator else request.options.get("engine", "memory")
    if native_engine(request.data) is not None or get_engine(engine).capabilities.distributed:
        raise InputError(
            "all questions at once are fitted on this machine: leave out the engine (`--engine`), "
            "or name one question of a file of its own"
        )


def _with_classifier(labels: LabelSummary, request: FitRequest) -> Labels:
    """Return labels with a classifier's probabilities, read from a file or given."""
    assert isinstance(labels, Labels)
    with file_named_in_errors(request.classifier):
        table = load_table(request.classifier, max_size=request.read.max_size)
        return labels.with_classifier(table)


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
    if fit.data.covariates.labels.keys().isdisjoint(TIME_ROLES):
        return fit
    from annotruth.over_time import add_over_time  # loaded only if labels have times

    return add_over_time(fit, estimator)


def settings_of(fit: Fit | RankFit) -> dict[str, Any]:
    """Return the options that the model of a fit can be made with again."""
    # An engine object of the caller's is stored by its class name, and cannot be made again.
    return {
        name: value for name, value in fit.settings.items() if name != "engine" or value in ENGINES
    }


def _on_scale(fit: Fit, read: ReadOptions) -> ReadOptions:
    """Return options that read labels on the scale of a fit, unless they name a scale."""
    if read.changed().keys() & {"scale", "categories", "bins"}:
        return read
    scale = fit.data.scale
    if scale.edges is not None:
        return replace(read, bins=scale.edges.tolist())
    return replace(read, scale=scale.kind, categories=scale.categories.to_pylist())


def _warn_of_scale(found: BaseFit, read: ReadOptions, where: str = "") -> None:
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
    from annotruth.models.robust_gpm.model import has_room  # loaded only if no model is named

    return has_room(labels)


def loaded_fit(fit: Fit | RankFit | str | Path) -> Fit:
    """Return a fit, or the one that is saved in a folder."""
    if isinstance(fit, Fit):
        return fit
    from annotruth.models.storage import load_fit, refuse_sets

    if isinstance(fit, AnnotatorResults) and not isinstance(fit, RankFit):
        refuse_sets()
    found = fit if isinstance(fit, RankFit) else load_fit(fit)
    if isinstance(found, RankFit):
        raise ComparisonsError(
            "this is a fit of comparisons, not of labels: use rank (`annotruth rank`)"
        )
    return found
