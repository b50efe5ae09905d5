"""The main functions of the package: fit, update and evaluate.

Fits are logged under the name ``annotruth``: their start and end at level INFO, every iteration
at level DEBUG. Nothing is shown unless the program configures logging, for instance by
``logging.basicConfig(level=logging.INFO)``.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

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
from annotruth.models.result import QUESTIONS_MANIFEST, Fit, is_fit

if TYPE_CHECKING:
    from annotruth.engines import DistributedEngine, DistributedEngineName, DistributedFrame
    from annotruth.models.distributed_fit import DistributedFit
    from annotruth.questions.result import QuestionFits
    from annotruth.sets.fit import SetFit
    from annotruth.sets.model import SetModel

_LOGGER = logging.getLogger(__name__)

AUTO = "auto"
"""The value of ``model`` for the one that predicts held-out labels best."""


@overload
def fit(
    data: DistributedFrame,
    model: str | Estimator | None = None,
    *,
    gold: Any = None,
    annotator_prior: Any = None,
    classifier: Any = None,
    annotators: Any = None,
    by: str | Sequence[str] | None = None,
    machines: Sequence[Any] = (),
    machine_margin: float = 0.1,
    warm_start: Fit | str | Path | None = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> DistributedFit: ...
@overload
def fit(
    data: str | Path,
    model: str | Estimator | None = None,
    *,
    engine: DistributedEngineName | DistributedEngine,
    gold: Any = None,
    annotator_prior: Any = None,
    classifier: Any = None,
    annotators: Any = None,
    by: str | Sequence[str] | None = None,
    machines: Sequence[Any] = (),
    machine_margin: float = 0.1,
    warm_start: Fit | str | Path | None = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> DistributedFit: ...
@overload
def fit(
    data: Any,
    model: str | Estimator | None = None,
    *,
    question: Literal["all"],
    gold: Any = None,
    annotator_prior: Any = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> QuestionFits: ...
@overload
def fit(
    data: Any,
    model: SetModel,
    *,
    gold: Any = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> SetFit: ...
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
    machine_margin: float = 0.1,
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
    machine_margin: float = 0.1,
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
        one it is that of ``warm_start``, else robust-gpm, or gpm where there are too many
        categories for that.
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
        By how much a machine may be worse than a person in that test: 0.1 for crowd workers, 0.15
        for trained annotators, 0.2 for experts.
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
    if read.question == ALL_QUESTIONS:
        of_one = {
            "classifier": classifier,
            "warm_start": warm_start,
            "by": by,
            "machines": machines or None,
            "sets": read.has_sets or model == SETS or None,
        }
        return _fit_questions(data, model, options, gold, annotator_prior, of_one, read, progress)
    if read.has_sets or model == SETS or not isinstance(model, str | Estimator | None):
        refused = {
            "annotator_prior": annotator_prior,
            "classifier": classifier,
            "by": by,
            "machines": machines or None,
            "warm_start": warm_start,
        }
        return _fit_sets(data, model, options, gold, refused, read, progress)
    is_refit = is_fit(data)
    if is_refit:
        data = replace(loaded_fit(data).data, annotator_weight=None)
    previous = None if warm_start is None else loaded_fit(warm_start)
    if previous is not None:
        read = _on_scale(previous, read)
        if model is None:
            model, options = previous.model, {**settings_of(previous), **options}
    auto = model == AUTO
    home = native_engine(data)
    if home is not None:
        if auto:
            raise InputError(f"{AUTO} fits many models, in memory: name one for labels on {home}")
        if model is None or isinstance(model, str):
            options = {"engine": home, **options}
    if auto and options:
        raise InputError(
            f"{AUTO} chooses the model and sets no options: name a model to set its own"
        )
    estimator = None if auto else make_estimator(DEFAULT_MODEL if model is None else model, options)
    if is_refit and (estimator is None or not estimator.capabilities.classifier or by is not None):
        # The labels are fitted again, without what this model cannot use.
        data = replace(data, classifier=None)
    if read.memory is not None:
        if estimator is None:
            raise InputError(f"{AUTO} fits many models, in memory: name one, or leave out memory")
        estimator.check_out_of_core()
    engine = get_engine("memory") if estimator is None else estimator.engine_for(data)
    if classifier is not None:
        _check_classifier(estimator, engine, read)
    if by is not None or annotators is not None:
        from annotruth.groups.fit import check_groups

        check_groups(estimator, engine, read, by=by, classifier=classifier, warm_start=warm_start)
    if machines:
        _check_machines(estimator, engine, read, machine_margin, classifier, warm_start, by)
    start_stage(progress, reading_stage(data))
    labels = engine.read(data, read, gold=gold, annotator_prior=annotator_prior)
    if labels.scale.has_sets:
        refused = {
            "classifier": classifier,
            "by": by,
            "machines": machines or None,
            "warm_start": warm_start,
        }
        return _fit_sets(labels, model, options, gold, refused, read, progress)
    if classifier is not None:
        labels = _with_classifier(labels, classifier, read)
    takes_default = model is None and by is None and not machines
    takes_default = takes_default and options.keys() <= {"engine"}
    if takes_default and not _room_for_default(labels):
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
        estimator, chosen = make_estimator(choice.model, {}), choice.to_dict()
    start_stage(progress, f"fitting {estimator.name}")
    _LOGGER.info("fitting %s to %s", estimator.name, labels.describe())
    progress = _log_iterations(progress)
    if machines:
        result = _fit_machines(estimator, labels, machines, machine_margin, progress)
    elif by is None:
        result = estimator.fit(labels, warm_start=previous, progress=progress).result_
    else:
        result = _fit_groups(estimator, labels, by, annotators, progress, read)
    _LOGGER.info("%s after %d iterations: %s", result.model, result.n_iter, result.stop_reason)
    found = replace(result, chosen=chosen)
    if isinstance(found, Fit):
        # Groups and weights of machines are not for parts of annotators' labels.
        if by is None and not machines:
            found = with_over_time(found, estimator)
        found = continued(found, previous)
    if not isinstance(data, Labels):
        _warn_of_scale(found, read)
    return found


def _fit_sets(
    data: Any,
    model: object,
    options: dict[str, Any],
    gold: Any,
    refused: dict[str, Any],
    read: ReadOptions,
    progress: ProgressCallback | None,
) -> SetFit:
    """Return the fit of answers that are sets of labels; ``refused`` options must be None."""
    from annotruth.sets.fitting import fit_sets

    found = fit_sets(data, model, options, gold=gold, refused=refused, read=read, progress=progress)
    _LOGGER.info("%s after %d iterations: %s", found.model, found.n_iter, found.stop_reason)
    return found


def _fit_questions(
    data: Any,
    model: Any,
    options: Mapping[str, Any],
    gold: Any,
    annotator_prior: Any,
    of_one: Mapping[str, Any],
    read: ReadOptions,
    progress: ProgressCallback | None,
) -> QuestionFits:
    """Fit every question, and share what is known of annotators where that predicts better.

    The options ``of_one`` question must be None.
    """
    for name, value in of_one.items():
        if value is not None:
            raise InputError(
                f"{name} is of one question: name it (`--question NAME`), or leave it out"
            )
    engine = model.engine if isinstance(model, EMEstimator) else options.get("engine", "memory")
    if native_engine(data) is not None or get_engine(engine).capabilities.distributed:
        raise InputError(
            "all questions at once are fitted on this machine: leave out the engine (`--engine`), "
            "or name one question of a file of its own"
        )
    from annotruth.questions.fitting import share_between_questions
    from annotruth.questions.reading import question_named_in_errors, read_questions

    start_stage(progress, reading_stage(data))
    labels = read_questions(data, read, gold=gold, annotator_prior=annotator_prior)
    fits: dict[str, Fit] = {}
    for name, of_question in labels.items():
        with question_named_in_errors(name):
            made: Any = fit(of_question, model, progress=progress, **options)
            if not isinstance(made, Fit):
                raise InputError(
                    "its answers are sets of labels: fit it alone (`--question NAME`), and the "
                    "others from a file without it"
                )
        fits[name] = made
        _warn_of_scale(made, read, f"question {shorten(name)!r}: ")

    def refit(before: Fit, with_prior: Labels) -> Fit:
        again: Fit = fit(with_prior, before.model, progress=progress, **settings_of(before))
        return replace(again, chosen=before.chosen)

    settings = {name: settings_of(each) for name, each in fits.items()}
    return share_between_questions(fits, refit, settings, progress)


def _check_classifier(estimator: Estimator | None, engine: Engine, read: ReadOptions) -> None:
    """Refuse a classifier that cannot be used, before labels are read."""
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


def _check_machines(
    estimator: Estimator | None,
    engine: Engine,
    read: ReadOptions,
    margin: float,
    classifier: Any,
    warm_start: Any,
    by: Any,
) -> None:
    """Refuse machines that cannot be fitted, before labels are read."""
    from annotruth.machines.label_fit import check_machine_options

    others = (
        ("memory (`--memory`)", read.memory),
        ("a classifier (`--classifier`)", classifier),
        ("a warm start (`--warm-start`)", warm_start),
        ("groups (`--by`)", by),
    )
    check_machine_options(estimator, engine, margin=margin, others=others)


def _fit_machines(
    estimator: Estimator,
    labels: LabelSummary,
    machines: Sequence[Any],
    margin: float,
    progress: ProgressCallback | None,
) -> Fit:
    """Return the fit of people's and machines' labels."""
    from annotruth.machines.label_fit import fit_labels_with_machines
    from annotruth.models.robust_gpm import RobustGPM

    assert isinstance(labels, Labels)
    assert isinstance(estimator, RobustGPM)
    return fit_labels_with_machines(estimator, labels, machines, margin=margin, progress=progress)


def _with_classifier(labels: LabelSummary, classifier: Any, read: ReadOptions) -> Labels:
    """Return labels with a classifier's probabilities, read from a file or given."""
    assert isinstance(labels, Labels)
    with file_named_in_errors(classifier):
        return labels.with_classifier(load_table(classifier, max_size=read.max_size))


def _fit_groups(
    estimator: Estimator,
    labels: LabelSummary,
    by: str | Sequence[str],
    annotators: Any,
    progress: ProgressCallback | None,
    read: ReadOptions,
) -> Fit:
    """Return the fit with groups of annotators."""
    from annotruth.groups.fit import fit_groups
    from annotruth.models.robust_gpm.model import RobustGPM

    assert isinstance(labels, Labels)
    assert isinstance(estimator, RobustGPM)
    return fit_groups(
        estimator, labels, by=by, annotators=annotators, progress=progress, max_size=read.max_size
    )


def _log_iterations(progress: ProgressCallback | None) -> ProgressCallback | None:
    """Return a callback that also logs every iteration, if that level is enabled."""
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return progress

    def log(step: Progress) -> None:
        _LOGGER.debug("iteration %d: log-likelihood %.9g", step.n_iter, step.log_likelihood)
        if progress is not None:
            progress(step)

    return log


@overload
def update(
    fit: RankFit,
    data: Any,
    *,
    refit: bool = False,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> RankFit: ...
@overload
def update(
    fit: Fit | str | Path,
    data: Any,
    *,
    gold: Any = None,
    refit: bool = False,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> Fit: ...
def update(
    fit: Fit | RankFit | str | Path,
    data: Any,
    *,
    gold: Any = None,
    refit: bool = False,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> Fit | RankFit:
    """Add labels to a fit and fit all of them, starting from the parameters of the fit.

    To a fit of comparisons it adds comparisons.

    Parameters
    ----------
    fit
        A fit, or the folder where one was saved.
    data
        The new labels: a path or a frame, as for `fit`. Items and annotators may be new, categories
        may not. Labels that are in the fit already are left out, so this may be all labels again.
    gold
        Known truths of new or old items, as for `fit`.
    refit
        Whether to fit all labels from scratch instead.
    progress
        Called after every iteration.
    read, **options
        How to read the new labels: `ReadOptions`, or its fields as keywords. ``duplicates`` says
        what to do when an annotator gives an item another label than in the fit: "refuse", "last"
        (the new label replaces the old one) or "keep" (every row is a vote, also a repeated one).
        ``drop`` leaves annotators out of the fit, too. The scale is that of the fit. Comparisons
        are all votes, unless all of those in the fit are among them: then only the others are new.

    Returns
    -------
    Fit
        Items and annotators keep their order, new ones follow; `changes` returns what is
        different. If there is nothing new, it is the same fit.
    """
    before = fit
    if isinstance(fit, str | Path):
        from annotruth.models.storage import load_fit

        before = load_fit(fit)
    if isinstance(before, RankFit):
        from annotruth.ranking import update_ranking

        if gold is not None:
            raise InputError("gold is only for labels: leave it out")
        return update_ranking(
            before, data, refit=refit, progress=progress, read=read, **options
        ).fit
    from annotruth.updating import update_fit

    updated = update_fit(
        before, data, gold=gold, refit=refit, progress=progress, read=read, **options
    )
    return updated.fit


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
        warnings.warn(f"{where}{message}", AnnotruthWarning, stacklevel=3)


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


def evaluate(
    fit: Fit | RankFit | SetFit,
    truth: Any,
    *,
    scores: bool = False,
    separator: str | None = None,
    max_size: str | int | None = None,
) -> dict[str, float]:
    """Compare a fit with known truths.

    Parameters
    ----------
    fit
        A fit.
    truth
        The truths of some or all items: a path, a frame of ``item, label``, a mapping, a Series.
        For a fit of comparisons, known grades: numbers, higher is better (``item, grade``).
    scores
        Whether the truths are scores on an ordinal scale, such as 3.4, rather than categories.
    separator
        Of a fit of sets, the text between labels in one cell of the truths; by default the fit's.
    max_size
        How much memory reading the file of truths may take, as in `ReadOptions`.

    Returns
    -------
    dict
        ``accuracy`` and ``f1_macro`` of the labels, unless the truths are scores; ``plcc``,
        ``srocc`` and ``rmse`` of the expectations on an ordinal scale. Of a fit of comparisons,
        ``concordance``, the share of pairs with different grades that are in the right order,
        and ``kendall_tau``. Of a fit of sets of labels, ``f1_micro``, ``f1_macro``,
        ``exact_match`` and ``jaccard``.
    """
    if isinstance(fit, RankFit):
        from annotruth.ranking import evaluate_ranking

        return evaluate_ranking(fit, truth, max_size=max_size)
    if fit.model == SETS:
        from annotruth.sets.evaluate import evaluate_sets

        with file_named_in_errors(truth):
            table = load_table(truth, max_size=max_size)
            return evaluate_sets(cast("SetFit", fit), table, separator=separator)
    refuse_distributed(fit)
    assert isinstance(fit, Fit)
    from annotruth.labels.truth import match_truth

    with file_named_in_errors(truth):
        matched = match_truth(load_table(truth, max_size=max_size), fit.data, role="truth")
        from annotruth.selection.evaluate import compute_metrics

        return compute_metrics(fit, matched, scores=scores)


def refuse_machines(fit: Fit | RankFit) -> None:
    """Refuse to add labels to a fit with machines, whose weights depend on all labels."""
    if "machines" in fit.further:
        raise InputError(
            "this fit has machines, whose weights depend on all labels: fit all labels again, with "
            "machines (`--machine`)"
        )


def refuse_distributed(fit: Any) -> None:
    """Refuse a fit whose results are not on this machine."""
    if isinstance(fit, BaseFit) and not isinstance(fit, Fit):
        raise InputError(
            "this fit is distributed: it can be neither updated nor evaluated here; its tables are "
            "frames, and fit takes all labels again"
        )


def _room_for_default(labels: LabelSummary) -> bool:
    from annotruth.models.robust_gpm.model import has_room  # loaded only if no model is named

    return has_room(labels)


def load(path: str | Path) -> Fit | RankFit | SetFit | QuestionFits:
    """Read a fit, or the fits of several questions, that ``save`` or ``--save`` wrote.

    Parameters
    ----------
    path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> import annotruth as at
    >>> fit = at.fit([("a", "ann", 1), ("a", "bob", 2), ("b", "ann", 1)], "gpm")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(folder)
    ...     at.load(folder).log_likelihood == fit.log_likelihood
    True
    """
    if (Path(path) / QUESTIONS_MANIFEST).is_file():
        from annotruth.questions.storage import load_questions

        return load_questions(path)
    from annotruth.models import storage

    return storage.load(path)


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
