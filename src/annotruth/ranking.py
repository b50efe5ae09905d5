"""Rank items by pair comparisons: fit a model, add comparisons to a fit, compare with grades."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from annotruth.api import settings_of
from annotruth.comparisons import Comparisons
from annotruth.comparisons.append import append_comparisons
from annotruth.comparisons.read import load_comparisons
from annotruth.errors import InputError
from annotruth.io.options import ReadOptions
from annotruth.io.readers import file_named_in_errors, load_table, reading_stage
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.registry import DEFAULT_PAIR_MODEL, make_pair_estimator
from annotruth.models.pairs.result import RankFit
from annotruth.models.result import is_fit
from annotruth.models.storage import load

_LOGGER = logging.getLogger(__name__)


def rank(
    data: Any,
    model: str | PairEstimator | None = None,
    *,
    warm_start: RankFit | str | Path | None = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> RankFit:
    """Fit a model to pair comparisons: scores and ranks of items, reliability of annotators.

    Parameters
    ----------
    data
        A path, or several of one kind, in any of the formats of comparisons; a pandas, polars or
        pyarrow frame with columns such as ``left, right, annotator, winner``; a list of tuples in
        that order; or `Comparisons`. Or a fit of comparisons or the folder of a saved one, whose
        comparisons are fitted again.
    model
        A model's name ("pair-gpm", "bradley-terry", ...) or an estimator with its options set.
        Without one it is that of ``warm_start``, else pair-gpm.
    warm_start
        A fit of the same model, or the folder of a saved one, to start from.
    progress
        Called after every iteration.
    read
        How to read the comparisons, unless given by keywords.
    **options
        How to read the comparisons, by the names in `ReadOptions`, such as ``columns``; and the
        model's own options, such as ``tol=1e-8``.

    Examples
    --------
    >>> import annotruth as at
    >>> votes = [("a", "b", "ann", "left"), ("b", "c", "ann", "left"), ("a", "c", "bob", "left")]
    >>> at.rank(votes, "bradley-terry").item_table()["item"].to_pylist()
    ['a', 'b', 'c']
    """
    read, options = ReadOptions.split(read, options)
    previous = None if warm_start is None else loaded_ranking(warm_start)
    if previous is not None and model is None:
        model, options = previous.model, {**settings_of(previous), **options}
    estimator = make_pair_estimator(DEFAULT_PAIR_MODEL if model is None else model, options)
    start_stage(progress, reading_stage(data))
    comparisons = _load(data, read)
    return _fit(estimator, comparisons, previous, progress)


def _fit(
    estimator: PairEstimator,
    comparisons: Comparisons,
    previous: RankFit | None,
    progress: ProgressCallback | None,
) -> RankFit:
    start_stage(progress, f"fitting {estimator.name}")
    _LOGGER.info("fitting %s to %s", estimator.name, comparisons.describe())
    estimator.fit(comparisons, warm_start=previous, progress=progress)
    result = estimator.result_
    _LOGGER.info("%s after %d iterations: %s", result.model, result.n_iter, result.stop_reason)
    return result


class UpdatedRanking(NamedTuple):
    """A fit of comparisons with others added.

    Attributes
    ----------
    fit
        The fit; the same object as before if there was nothing new.
    n_repeated
        How many of the comparisons were in the fit already, and were left out.

    Examples
    --------
    >>> import annotruth as at
    >>> votes = [("a", "b", "ann", "left"), ("b", "c", "ann", "left")]
    >>> before = at.rank(votes, "bradley-terry")
    >>> updated = update_ranking(before, [*votes, ("a", "c", "bob", "left")])
    >>> updated.fit.data.n_comparisons, updated.n_repeated
    (3, 2)
    """

    fit: RankFit
    n_repeated: int


def update_ranking(
    fit: RankFit | str | Path,
    data: Any,
    *,
    refit: bool = False,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> UpdatedRanking:
    """Add comparisons to a fit as `update` does; return also how many were in it already."""
    read = ReadOptions.of(read, options)
    before = loaded_ranking(fit)
    start_stage(progress, reading_stage(data))
    new = load_comparisons(data, replace(read, drop=()))
    with file_named_in_errors(data):
        appended = append_comparisons(before.data, new)
    # They may have been left out of the fit before.
    dropped = ReadOptions(drop=read.drop, max_size=read.max_size)
    comparisons = load_comparisons(appended.comparisons, dropped)
    if not refit and comparisons.n_comparisons == before.data.n_comparisons:
        return UpdatedRanking(before, appended.n_repeated)
    estimator = make_pair_estimator(before.model, settings_of(before))
    after = _fit(estimator, comparisons, None if refit else before, progress)
    return UpdatedRanking(after, appended.n_repeated)


def evaluate_ranking(
    fit: RankFit, truth: Any, *, max_size: str | int | None = None
) -> dict[str, float]:
    """Return the metrics of `annotruth.evaluate` for a fit of comparisons and known grades."""
    from annotruth.selection.evaluate import ranking_metrics

    with file_named_in_errors(truth):
        return ranking_metrics(fit, load_table(truth, max_size=max_size))


def loaded_ranking(fit: RankFit | str | Path) -> RankFit:
    """Return a fit of comparisons, or the one that is saved in a folder."""
    found = fit if isinstance(fit, RankFit) else load(fit)
    if not isinstance(found, RankFit):
        raise InputError("this is a fit of labels, not of comparisons: use fit (`annotruth fit`)")
    return found


def _load(data: Any, read: ReadOptions) -> Comparisons:
    """Return comparisons in any of the forms that `rank` takes."""
    if not is_fit(data):
        return load_comparisons(data, read)
    if changed := read.changed().keys() - {"drop"}:
        raise InputError(
            f"{', '.join(changed)}: only for comparisons, and this is a fit; leave them out, or "
            "give the comparisons"
        )
    return load_comparisons(loaded_ranking(data).data, read)
