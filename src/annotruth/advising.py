"""Advice on more labels, from a fit or from labels that are fitted first."""

from __future__ import annotations

from typing import Any, Unpack

from annotruth.analyses.advice.advice import Advice, advise, check_budget
from annotruth.analyses.advice.plan import Plan, check_target, plan
from annotruth.api import fit
from annotruth.errors import InputError, option
from annotruth.io.readers import reading_stage
from annotruth.models.base import Estimator
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.options import AdviceKeywords
from annotruth.models.result import Fit, is_fit
from annotruth.models.storage import load_fit
from annotruth.observations.options import ALL_QUESTIONS, ReadOptions, names_keywords
from annotruth.updating import fit_without_dropped


@names_keywords(AdviceKeywords)
def next_labels(
    data: Any,
    budget: int | None = None,
    *,
    progress: ProgressCallback | None = None,
    **options: Unpack[AdviceKeywords],
) -> Advice:
    """Return which items need labels, whom to ask and whom to drop.

    Parameters
    ----------
    data
        A fit, the folder of a saved one, or labels in any form that `fit` takes; labels are
        fitted first, once.
    budget
        How many labels there are to spend; None asks for all that are worth it in this round.
    progress
        Called after every iteration.
    **options
        ``model, gold, annotator_prior, read`` and the others of `fit`; only with labels.

    Returns
    -------
    Advice
        ``items()``, ``annotators()`` and ``assignments()`` are tables as those of a fit.
    """
    check_budget(budget)
    fitted = fit_or_load(data, progress=progress, **options)
    start_stage(progress, "computing what labels gain")
    return advise(fitted, budget)


@names_keywords(AdviceKeywords)
def plan_labels(
    data: Any,
    target: str,
    value: float,
    *,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Plan:
    """Return how many labels a target needs, by simulating more labels.

    Parameters
    ----------
    data
        A fit, the folder of a saved one, or labels in any form that `fit` takes; labels are
        fitted first, once.
    target, value
        What to reach on average over items: "accuracy", the share of right top labels;
        "hellinger", the distance of distributions from the truth; "score", half the width of a
        score's 95% interval.
    seed
        The same seed gives the same plan.
    progress
        Called after every iteration.
    **options
        ``model, gold, annotator_prior, read`` and the others of `fit`; only with labels.
    """
    check_target(target, value)
    fitted = fit_or_load(data, progress=progress, **options)
    start_stage(progress, "simulating more labels")
    return plan(fitted, target, value, seed=seed)


def fit_or_load(
    data: Any,
    model: str | Estimator | None = None,
    *,
    gold: Any = None,
    annotator_prior: Any = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> Fit:
    """Return the fit that is given or saved in a folder, or fit the labels; as for `next_labels`."""
    read, own = ReadOptions.split(read, options)
    if read.memory is not None:
        raise InputError("memory is only for fit: leave it out")
    if read.question == ALL_QUESTIONS:
        raise InputError(
            "advice, and the report of labels, is for one question: name it "
            f"({option('question', 'NAME')}), or fit all of them with {option('question', 'all')}, "
            "save the fits and name the folder of one"
        )
    own |= {"model": model, "gold": gold, "annotator_prior": annotator_prior}
    if not is_fit(data):
        fitted = fit(data, progress=progress, read=read, **own)
        if fitted.kind == "distributed":
            raise InputError("reports and advice need labels in memory: leave out engine")
        return load_fit(fitted, "labels")  # refuses sets of labels
    read.refuse_options_of_data("labels", **own)
    start_stage(progress, reading_stage(data))
    saved: Fit = load_fit(data, "labels")
    return fit_without_dropped(saved, read, progress=progress) if read.drop else saved
