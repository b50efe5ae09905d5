"""What to ask next, of whatever a caller has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotruth.active import Advice, Plan, advise, plan
from annotruth.fitting import make_estimator
from annotruth.labels import Bins, DuplicatePolicy, ScaleKind
from annotruth.models.em import ProgressCallback
from annotruth.models.robust_gpm import RobustGPM
from annotruth.sources import labels_from


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
    return plan(labels, target, value, model=_robust(options), seed=seed, progress=progress)


def _robust(options: Mapping[str, Any]) -> RobustGPM:
    """Make the one model that knows what a label would tell."""
    model = make_estimator("robust-gpm", options)
    assert isinstance(model, RobustGPM)
    return model
