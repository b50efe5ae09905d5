"""Add labels to a fit, and fit all of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from annotruth.analyses import analysis_again
from annotruth.errors import InputError, function, option
from annotruth.fitting import continued, with_over_time
from annotruth.io.drop_list import dropped_ids, leave_out, leave_out_again
from annotruth.io.parse import load_table
from annotruth.io.readers import load_labels, reading_stage
from annotruth.io.sources import file_named_in_errors
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.options import settings_of
from annotruth.models.registry import make_estimator
from annotruth.models.result import Fit
from annotruth.models.storage import load_fit
from annotruth.observations import Labels
from annotruth.observations.append import append_labels
from annotruth.observations.options import ReadOptions
from annotruth.observations.validate import not_available


class UpdatedFit(NamedTuple):
    """A fit with labels or comparisons added; the same object as before if there was nothing new."""

    fit: Fit[Any]
    n_repeated: int
    """How many of the labels or comparisons were in the fit already, and were left out."""


def update_fit(
    fit: Fit | str | Path,
    data: Any,
    *,
    gold: Any = None,
    refit: bool = False,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> UpdatedFit:
    """Update a fit as `update` does; return also how many labels were in it already."""
    read = ReadOptions.of(read, options)
    for name in ("scale", "categories", "bins", "memory"):
        if name in read.changed():
            raise InputError(f"{option(name)} is that of the fit: leave it out")
    if read.has_sets:
        raise InputError(
            f"sets of labels are not added to a fit: fit all answers again with {function('fit')}"
        )
    before: Fit = load_fit(fit, "labels")
    analysis_again(before)  # refuses one that is of these labels only
    start_stage(progress, reading_stage(data))
    categories = before.data.scale.categories
    if not_available(categories, None).any():  # a category of this fit, not a missing label
        read = replace(read, categories=categories.to_pylist())
    new = before.campaign.read(partial(load_labels, data), replace(read, drop=()))
    with file_named_in_errors(data if gold is None else gold):
        truths = load_table(gold, max_size=read.max_size)
        appended = append_labels(before.data, new, gold=truths, duplicates=read.duplicates)
    campaign = before.campaign.after(read, dropped_ids(read))
    known = before.campaign.drop
    labels = leave_out_again(appended.table, read, known, n_repeated=appended.n_repeated)
    if not refit and labels.same_as(before.data):
        same = campaign == before.campaign
        return UpdatedFit(
            before if same else replace(before, campaign=campaign), appended.n_repeated
        )
    after = fit_again(before, labels, progress=progress)
    after = replace(continued(after, before), campaign=campaign)
    return UpdatedFit(after, appended.n_repeated)


def fit_without_dropped(
    fit: Fit, read: ReadOptions, *, progress: ProgressCallback | None = None
) -> Fit:
    """Return a fit without the annotators to leave out; the same one if it has none of them."""
    # They may have been left out of the fit before.
    labels = leave_out(fit.data, read, strict=False)
    if labels is fit.data:
        return fit
    after = continued(fit_again(fit, labels, progress=progress), fit)
    return replace(after, campaign=fit.campaign.after(ReadOptions(), dropped_ids(read)))


def fit_again(before: Fit, labels: Labels, *, progress: ProgressCallback | None = None) -> Fit:
    """Fit the model of a fit, with its options, to more or fewer labels.

    The result is that of a fit of these labels: it does not depend on the parameters of the fit before,
    near which EM may have another optimum. It has no time, and no table of past fits.
    """
    estimator = make_estimator(before.model, settings_of(before))
    start_stage(progress, f"fitting {estimator.name}")
    if (again := analysis_again(before)) is not None:
        found: Fit = again(before, estimator, labels, progress)
        return found
    estimator.fit(labels, progress=progress)
    return with_over_time(replace(estimator.result_, chosen=before.chosen), estimator)
