"""Fits labels with groups of annotators: what `annotruth.fit` calls for ``by``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from annotruth.analyses.groups.differences import find_differences
from annotruth.analyses.groups.model import fit_group_model, id_order
from annotruth.analyses.groups.results import make_results
from annotruth.analyses.groups.traits import AnnotatorGroups, check_by
from annotruth.engines import Engine
from annotruth.errors import InputError
from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.fits.reordered import fit_of_original
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.observations import Labels
from annotruth.observations.options import ReadOptions

if TYPE_CHECKING:
    from annotruth.models.base import Estimator

_TIMES_NOT_USED = (
    "groups: times of labels are not used; for reliability over time, fit without by (`--by`)"
)


def check_groups(
    estimator: Estimator | None,
    engine: Engine,
    read: ReadOptions,
    *,
    by: Any,
    **others: Any,
) -> None:
    """Refuse groups that cannot be fitted, before labels are read.

    ``others`` are options by their names that do not go with groups.
    """
    if by is None:
        raise InputError(
            "annotators (`--annotators`) are traits for groups: name a column of them with by "
            "(`--by gender`)"
        )
    check_by(by)
    if not isinstance(estimator, RobustGPM):
        name = "auto" if estimator is None else estimator.name
        raise InputError(
            f"{name} has no groups (`--by`): leave out by, or choose robust-gpm "
            "(`--model robust-gpm`)"
        )
    if read.memory is not None:
        raise InputError(
            "groups (`--by`) need the labels in memory: leave out memory (`--memory`), or by"
        )
    if engine.capabilities.distributed:
        raise InputError(
            f"groups (`--by`) are for the engines memory and reference, not for {engine.name}: "
            "leave out engine (`--engine`), or by"
        )
    for name, value in others.items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"groups (`--by`) take no {name} (`{flag}`): leave out one of them")


def fit_groups(
    estimator: RobustGPM,
    labels: Labels,
    *,
    by: str | Sequence[str],
    annotators: Any = None,
    progress: ProgressCallback | None = None,
    max_size: str | int | None = None,
) -> Fit:
    """Return the fit of labels with groups of annotators, in ``fit.further["groups"]``.

    On ordinal scales of more than two categories the groups' opinions differ, unless the estimator has
    ``truth="class"``.

    ``estimator``: the model with its options; it is not changed.
    ``by``: the columns of the annotators' traits whose values, or combinations of values, are
      groups.
    ``annotators``: the traits: a path or a frame with a column ``annotator``; None if the labels
      have them.
    ``progress``: called after every iteration.
    ``max_size``: the largest file that is read.
    """
    with file_named_in_errors(annotators):
        if annotators is not None:
            traits = load_table(annotators, max_size=max_size)
            labels = labels.with_annotator_covariates(traits)
        elif not labels.covariates.annotators:
            raise InputError(
                "there are no traits of annotators to group them by: pass annotators "
                "(`--annotators FILE`)"
            )
        groups = AnnotatorGroups.of(labels, by)
    if estimator.truth == "auto" and labels.scale.is_ordinal and labels.n_categories > 2:
        estimator = replace(estimator, truth="opinions")
    model = fit_group_model(estimator, labels, groups, progress)
    start_stage(progress, "comparing groups")
    differences = find_differences(model.crowd, model.group, len(groups.names))
    order = id_order(labels)
    results = make_results(model, groups, differences, place=order.item)
    if labels.covariates.has_times:
        results = replace(results, lines=[*results.lines, _TIMES_NOT_USED])
    axes = estimator.parameter_axes
    assert axes is not None
    fit = fit_of_original(model.fit, labels, order, labels.reordered(order).position, axes)
    return replace(fit, further={"groups": results})


def fit_groups_again(
    before: Fit, estimator: Estimator, labels: Labels, progress: ProgressCallback | None
) -> Fit:
    """Return the fit of more or fewer labels by the same traits; new annotators have no group."""
    by: Any = before.further["groups"].facts.get("by")
    check_by(by)
    if not isinstance(estimator, RobustGPM):
        raise InputError(f"{estimator.name} has no groups: fit again (`annotruth fit`)")
    return fit_groups(estimator, labels, by=by, progress=progress)
