"""Rank items by pair comparisons: fit a model, add comparisons to a fit, compare with grades."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from annotruth.analyses import analysis_again
from annotruth.analyses.advice.pairs.advice import PairAdvice, advise_pairs, check_pair_budget
from annotruth.analyses.advice.pairs.plan import PairPlan, check_pair_target, plan_pairs
from annotruth.analyses.machines.fits import check_machines, rank_with_machines
from annotruth.engines import get_engine
from annotruth.errors import InputError, option
from annotruth.io.drop_list import dropped_ids, leave_out_again
from annotruth.io.readers import load_comparisons, reading_stage
from annotruth.io.sources import file_named_in_errors
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.options import RankKeywords, settings_of
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.beside import BESIDE, beside_results, both_bad_results, check_numbers
from annotruth.models.pairs.boards import BOARDS, check_by, make_boards
from annotruth.models.pairs.pair_gpm.model import PairGPM
from annotruth.models.pairs.registry import DEFAULT_PAIR_MODEL, PAIR_MODELS, make_pair_estimator
from annotruth.models.registry import names_to_compare
from annotruth.models.result import RankFit, is_fit
from annotruth.models.storage import load_fit
from annotruth.observations import Comparisons
from annotruth.observations.append import append_comparisons
from annotruth.observations.keywords import ReadKeywords
from annotruth.observations.options import Campaign, ReadOptions, names_keywords
from annotruth.observations.pairs.columns import OF_BOTH_SIDES
from annotruth.observations.pairs.table import BOTH_BAD
from annotruth.selection.choose import Choice, choose_among
from annotruth.updating import UpdatedFit

_LOGGER = logging.getLogger(__name__)


@names_keywords(RankKeywords)
def rank(
    data: Any,
    model: str | PairEstimator | None = None,
    *,
    machines: Sequence[Any] | None = None,
    machine_margin: float | None = None,
    by: str | None = None,
    beside: str | None = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Unpack[RankKeywords],
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
        Without one it is pair-gpm.
    machines
        The ids of annotators that are machines, such as language models (for pair-gpm). They are
        compared with people, those that err together count less, and each is tested whether it may
        replace a person: see `RankFit.machines` and `RankFit.dependence`.
    machine_margin
        By how much a machine may be worse than a person in that test, as in `annotruth.fit`.
    by
        A column of the comparisons, such as a category or language: one board per value, partially
        pooled, and where the order differs. See `RankFit.boards`.
    beside
        What to show beside the scores, such as "cost" or "length": the name that two columns of numbers
        have in common, as in ``cost_a, cost_b``.
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
    read, own = ReadOptions.split(read, options)
    estimator = make_pair_estimator(DEFAULT_PAIR_MODEL if model is None else model, own)
    if machines or machine_margin is not None:
        given = {"machines": machines, "machine_margin": machine_margin}
        check_machines(given, estimator, PairGPM, get_engine(estimator.engine), ())
    start_stage(progress, reading_stage(data))
    keep = KeptColumns(by, beside)
    comparisons = _load(data, keep.options(read))
    keep.check(comparisons, estimator.name)
    if machines:
        fit = rank_with_machines(
            estimator, comparisons, machines, margin=machine_margin, progress=progress
        )
    else:
        fit = _fit(estimator, comparisons, progress)
    campaign = load_fit(data, "comparisons").campaign if is_fit(data) else Campaign()
    return replace(keep.analysed(fit), campaign=campaign.after(read, dropped_ids(read)))


class KeptColumns(NamedTuple):
    """The column of boards, and what to show beside the scores; None where it is not asked for."""

    by: str | None = None
    beside: str | None = None

    @classmethod
    def of(cls, fit: RankFit) -> KeptColumns:
        """Return what a fit has."""
        facts = fit.further_facts()
        return cls(facts.get(BOARDS, {}).get("by"), facts.get(BESIDE, {}).get("column"))

    def options(self, read: ReadOptions) -> ReadOptions:
        """Return the options for comparisons that keep the columns."""
        if self == KeptColumns():
            return read
        further = [] if self.by is None else [self.by]
        if self.beside is not None:
            further.append(f"{self.beside}{OF_BOTH_SIDES}")
        return replace(read, further=further)

    def check(self, data: Comparisons, model: str) -> None:
        """Refuse columns that cannot be used, before anything is fitted."""
        if self.by is not None:
            check_by(data, self.by, model)
        if self.beside is not None:
            check_numbers(data, self._sides(data))

    def _sides(self, data: Comparisons) -> tuple[str, str]:
        assert self.beside is not None
        left, right = f"{self.beside}:left", f"{self.beside}:right"
        if not data.sides_known:
            raise InputError(f"which side items were on is not known: leave out {option('beside')}")
        if left not in data.further:
            raise InputError(
                f"no two columns such as {self.beside}_a and {self.beside}_b are kept with these "
                f"comparisons: rank the table again with {option('beside', self.beside)}"
            )
        return left, right

    def analysed(self, fit: RankFit) -> RankFit:
        """Return the fit with results on boards, on values beside the scores, and on both bad."""
        further = dict(fit.further)
        if (bad := both_bad_results(fit)) is not None:
            further[BOTH_BAD] = bad
        if self.beside is not None:
            further[BESIDE] = beside_results(fit, self.beside, self._sides(fit.data))
        if self.by is not None:
            further[BOARDS] = make_boards(fit, self.by)
        return replace(fit, further=further) if further else fit


def _fit(
    estimator: PairEstimator,
    comparisons: Comparisons,
    progress: ProgressCallback | None,
) -> RankFit:
    start_stage(progress, f"fitting {estimator.name}")
    _LOGGER.info("fitting %s to %s", estimator.name, comparisons.describe())
    estimator.fit(comparisons, progress=progress)
    result = estimator.result_
    _LOGGER.info("%s after %d iterations: %s", result.model, result.n_iter, result.stop_reason)
    return result


def update_ranking(
    fit: RankFit | str | Path,
    data: Any,
    *,
    gold: Any = None,
    refit: bool = False,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> UpdatedFit:
    """Add comparisons to a fit as `update` does; return also how many were in it already."""
    if gold is not None:
        raise InputError("gold is only for labels: leave it out")
    read = ReadOptions.of(read, options)
    before: RankFit = load_fit(fit, "comparisons")
    analysis_again(before)  # refuses machines
    start_stage(progress, reading_stage(data))
    keep = KeptColumns.of(before)
    new = before.campaign.read(
        partial(load_comparisons, data), replace(keep.options(read), drop=())
    )
    with file_named_in_errors(data):
        appended = append_comparisons(before.data, new)
    campaign = before.campaign.after(read, dropped_ids(read))
    dropped = ReadOptions(drop=read.drop, max_size=read.max_size)
    known = before.campaign.drop
    comparisons = leave_out_again(appended.table, dropped, known, n_repeated=appended.n_repeated)
    if not refit and comparisons.n_comparisons == before.data.n_comparisons:
        same = campaign == before.campaign
        return UpdatedFit(
            before if same else replace(before, campaign=campaign), appended.n_repeated
        )
    estimator = make_pair_estimator(before.model, settings_of(before))
    after = _fit(estimator, comparisons, progress)
    return UpdatedFit(replace(keep.analysed(after), campaign=campaign), appended.n_repeated)


@names_keywords(ReadKeywords)
def compare_rankings(
    data: Any,
    models: Sequence[str] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Unpack[ReadKeywords],
) -> Choice:
    """Compare models of pair comparisons by how well they predict held-out comparisons.

    Parameters
    ----------
    data
        Comparisons in any form that `rank` takes, or a fit of comparisons or a saved one.
    models
        The names of the models to compare; all by default.
    folds, seed
        The number of folds, and the seed of the random assignment to them.
    progress
        Called after every iteration of every fit.
    read, **options
        How to read the comparisons: `ReadOptions`, or its fields as keywords.

    Returns
    -------
    Choice
        ``table()`` has one row per model, best first; ``why`` says which to take.
    """
    read = ReadOptions.of(read, options)
    names = names_to_compare(models, PAIR_MODELS)
    makers = {name: partial(make_pair_estimator, name, {}) for name in names}
    start_stage(progress, reading_stage(data))
    comparisons = _load(data, read)
    default = DEFAULT_PAIR_MODEL if DEFAULT_PAIR_MODEL in names else names[0]
    return choose_among(comparisons, makers, default, folds, seed, progress)


def _load(data: Any, read: ReadOptions) -> Comparisons:
    """Return comparisons in any of the forms that `rank` takes."""
    if not is_fit(data):
        return load_comparisons(data, read)
    read.refuse_options_of_data("comparisons")
    comparisons = replace(load_fit(data, "comparisons").data, annotator_weight=None)
    return load_comparisons(comparisons, read)


@names_keywords(RankKeywords)
def next_comparisons(
    data: Any,
    budget: int | None = None,
    *,
    model: str | PairEstimator | None = None,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Unpack[RankKeywords],
) -> PairAdvice:
    """Return which pairs of items to compare next, whom to ask and whom to drop.

    Parameters
    ----------
    data
        A fit of comparisons, the folder of a saved one, or comparisons in any form that `rank`
        takes; comparisons are fitted first, once.
    budget
        How many comparisons there are to spend; None asks for one per item, or for none if they
        would hardly change the ranking.
    model, progress, read, **options
        As for `rank`; only with comparisons.

    Returns
    -------
    PairAdvice
        ``comparisons()`` and ``annotators()`` are tables as those of a fit.

    Examples
    --------
    >>> import annotruth as at
    >>> made = at.simulate.comparers(n_items=8, n_annotators=10, comparisons_per_annotator=12)
    >>> at.next_comparisons(made.comparisons, budget=5, model="bradley-terry").n_add
    5
    """
    check_pair_budget(budget)
    fitted = _fit_or_load(data, model, progress, read, options)
    start_stage(progress, "computing what comparisons gain")
    return advise_pairs(fitted, budget)


@names_keywords(RankKeywords)
def plan_comparisons(
    data: Any,
    target: str,
    value: float,
    *,
    model: str | PairEstimator | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    read: ReadOptions | None = None,
    **options: Any,
) -> PairPlan:
    """Return how many comparisons a target needs, by simulating more comparisons.

    Parameters
    ----------
    data
        A fit of comparisons, the folder of a saved one, or comparisons in any form that `rank`
        takes; comparisons are fitted first, once.
    target, value
        What to reach: "tau", the Kendall tau between the ranking and the true one; or "score", half
        the width of a score's 95% interval, on average over items.
    seed
        The same seed gives the same plan.
    model, progress, read, **options
        As for `rank`; only with comparisons.

    Examples
    --------
    >>> import annotruth as at
    >>> made = at.simulate.comparers(n_items=8, n_annotators=10, comparisons_per_annotator=12)
    >>> at.plan_comparisons(made.comparisons, "tau", 0.3, model="bradley-terry").advised.per_item
    0.0
    """
    check_pair_target(target, value)
    fitted = _fit_or_load(data, model, progress, read, options)
    start_stage(progress, "simulating more comparisons")
    return plan_pairs(fitted, target, value, seed=seed)


def _fit_or_load(
    data: Any,
    model: str | PairEstimator | None,
    progress: ProgressCallback | None,
    read: ReadOptions | None,
    options: Mapping[str, Any],
) -> RankFit:
    """Return the fit that is given or saved in a folder, or fit the comparisons."""
    if not is_fit(data):
        return rank(data, model, progress=progress, read=read, **options)
    read, own = ReadOptions.split(read, options)
    drop = read.changed().get("drop")
    read.refuse_options_of_data("comparisons", model=model, **own, drop=drop)
    start_stage(progress, reading_stage(data))
    return load_fit(data, "comparisons")
