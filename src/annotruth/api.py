"""The main functions of the package: fit, update and evaluate.

Fits are logged under the name ``annotruth``: their start and end at level INFO, every iteration
at level DEBUG. Nothing is shown unless the program configures logging, for instance by
``logging.basicConfig(level=logging.INFO)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from annotruth.errors import InputError
from annotruth.fitting import FitRequest, run
from annotruth.io.options import ReadOptions
from annotruth.io.readers import file_named_in_errors, load_table
from annotruth.models.base import Estimator
from annotruth.models.base_fit import SETS, BaseFit
from annotruth.models.em import ProgressCallback
from annotruth.models.pairs.result import RankFit
from annotruth.models.result import QUESTIONS_MANIFEST, Fit

if TYPE_CHECKING:
    from annotruth.engines import DistributedEngine, DistributedEngineName, DistributedFrame
    from annotruth.models.distributed_fit import DistributedFit
    from annotruth.questions.result import QuestionFits
    from annotruth.sets.fit import SetFit
    from annotruth.sets.model import SetModel


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
    return run(request)


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
