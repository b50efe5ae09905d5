"""The main functions of the package: fit, update, evaluate and load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from annotruth.bindings import bound, bound_for
from annotruth.errors import InputError, check_path, shown
from annotruth.fitting import fit
from annotruth.models.em import ProgressCallback
from annotruth.models.result import QUESTIONS_MANIFEST, Fit
from annotruth.observations.keywords import ReadKeywords
from annotruth.observations.options import ReadOptions, names_keywords

if TYPE_CHECKING:
    from annotruth.questions.result import QuestionFits

__all__ = ["evaluate", "fit", "load", "update"]

D = TypeVar("D", bound=Any)


@names_keywords(ReadKeywords)
def update(
    fit: Fit[D] | str | Path,
    data: Any,
    *,
    gold: Any = None,
    refit: bool = False,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Unpack[ReadKeywords],
) -> Fit[D]:
    """Add labels to a fit and fit all of them: the result is that of `fit` with all labels.

    To a fit of comparisons it adds comparisons, and starts from the scores of the fit.

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
        Whether to fit all labels again also if none of them is new; of a ranking, whether to fit from
        scratch.
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
    before = bound("load_fit")(fit)
    updated: Fit[D] = bound_for(before.kind, "update")(
        before, data, gold=gold, refit=refit, progress=progress, read=read, **options
    ).fit
    return updated


def evaluate(
    fit: Fit[Any] | str | Path,
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
        A fit, or the folder of a saved one.
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
    found = load(fit) if isinstance(fit, str | Path) else fit
    if not isinstance(found, Fit):
        raise InputError(f"fit is {shown(found)}: give one fit, or the folder of a saved one")
    options = {"scores": scores, "separator": separator, "max_size": max_size}
    metrics: dict[str, float] = bound_for(found.kind, "evaluate")(found, truth, **options)
    return metrics


def load(path: str | Path) -> Fit[Any] | QuestionFits:
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
    check_path(path, "the folder of a saved fit")
    is_of_questions = (Path(path) / QUESTIONS_MANIFEST).is_file()
    found: Fit[Any] | QuestionFits = bound("questions.load" if is_of_questions else "load")(path)
    return found
