"""People's real accuracy on items of known class, against what models say about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.stats import spearmanr

from annotruth.kernels.arrays import Codes, Floats
from benchmarks.honesty.measures import area_under_curve
from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.people.known import KnownPeople, known_people, majority_agreement
from benchmarks.people.options import (
    MISSING,
    PeopleOptions,
    count,
    figure,
    fit_if_supported,
    mean_of,
    note,
    share,
)
from benchmarks.people.verdicts import TOO_FEW, Verdicts, posterior_at_labels, verdicts_of
from benchmarks.truth.sets import TruthSet, load_set, why_left_out

SETS = (
    "duck", "rte", "web", "product", "ms", "sp", "labelme", "leaves", "med_treat", "med_cause",
    "adult", "face", "dog", "cf", "cifar10s", "fact", "hate-speech",
)  # fmt: skip
MODELS = ("robust-gpm", "dawid-skene", "bwa", "ebcc", "mace")
OTHERS, ALL = "agreement with others", "agreement with all"
POSTERIOR = "mean posterior"
"""The mean probability, by the first model, of the labels that somebody gave."""

MANY_LABELS = 20
EXPERT_SETS = ("med_treat", "med_cause")
"""Sets whose truth is one expert who differs from the crowd: intervals need not cover it."""

MEAN_RANK = Target(low=0.70)
BELOW_MAJORITY = 0.03
COVERAGE = Target(low=0.88, high=0.97)
FLAGGED_FINE = 0.07
BAD_FLAGGED, BAD_NOTICED = Target(low=0.6), Target(low=0.8)

Row: TypeAlias = tuple[Sequence[str], Sequence[TargetFigure | str]]


@dataclass(frozen=True, eq=False)
class MeasuredSet:
    """A set's people, and what each model says about them; None where it cannot be fitted."""

    name: str
    known: KnownPeople
    n_labels: Codes
    agreement: dict[str, Floats | None]
    verdicts: dict[str, Verdicts | None]

    def ranked(self, by: str) -> Floats | None:
        """Return what ranks people by a model or by agreement."""
        if by in self.agreement:
            return self.agreement[by]
        verdicts = self.verdicts[by]
        return None if verdicts is None else verdicts.quality


def truth(options: PeopleOptions) -> list[PartTable]:
    """Fit every set with known classes by every model."""
    models = options.models_or(MODELS)
    measured = []
    for found in class_sets(options):
        labels = found.labels
        note(f"truth: {found.name}: {found.describe()}")
        fits = {model: fit_if_supported(labels, model) for model in models}
        first = fits[models[0]]
        measured.append(
            MeasuredSet(
                name=found.name,
                known=known_people(found),
                n_labels=labels.labels_per_annotator,
                agreement={
                    POSTERIOR: None if first is None else posterior_at_labels(first),
                    OTHERS: majority_agreement(labels, with_own=False),
                    ALL: majority_agreement(labels, with_own=True),
                },
                verdicts={m: None if fit is None else verdicts_of(fit) for m, fit in fits.items()},
            )
        )
    if not measured:
        return []
    tables = [rank_table(measured, models), worst_table(measured, models)]
    for model in models:
        of_model = [one for one in measured if one.verdicts[model] is not None]
        if any(v.flagged is not None for one in of_model if (v := one.verdicts[model])):
            tables.append(flag_table(of_model, model))
        if any(v.measure == "accuracy" for one in of_model if (v := one.verdicts[model])):
            tables.append(interval_table(of_model, model))
    return tables


def class_sets(options: PeopleOptions) -> Iterator[TruthSet]:
    """Return the sets of known classes."""
    for folder in options.folders(SETS, truth=True):
        found = load_set(folder, "nominal")
        reason = why_left_out(found)
        if reason is None:
            yield found
        else:
            note(f"{folder.name} is left out: {reason}")


def rank_correlation(known: KnownPeople, quality: Floats | None) -> float | None:
    """Return Spearman's correlation with the real accuracy; None if one of them is constant."""
    if quality is None:
        return None
    both = known.is_evaluated & ~np.isnan(quality)
    x, y = quality[both], known.accuracy[both]
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(spearmanr(x, y).statistic)


def area_for_worst(known: KnownPeople, quality: Floats | None) -> float | None:
    """Return how well low quality finds those who are bad; None without both kinds of people."""
    if quality is None:
        return None
    both = known.is_evaluated & ~np.isnan(quality)
    is_bad = known.is_bad[both]
    if is_bad.all() or not is_bad.any():
        return None
    return area_under_curve(is_bad, -quality[both])


def rank_table(measured: list[MeasuredSet], models: Sequence[str]) -> PartTable:
    """Return the rank correlations of all models and of agreement with the majority."""

    def target(name: str, values: dict[str, float | None]) -> Target | None:
        # Only a model that claims to estimate people's accuracy has a target.
        if not any(_claims_accuracy(one, name) for one in measured):
            return None
        majority = [v for m in (OTHERS, ALL) if (v := values[m]) is not None]
        return Target(low=max(majority) - BELOW_MAJORITY) if majority else None

    used = {m: {v.measure for one in measured if (v := one.verdicts[m])} for m in models}
    ranked = "; ".join(f"{model}: {', '.join(sorted(names))}" for model, names in used.items())
    return _compare(
        measured,
        models,
        "Rank correlation with real accuracy",
        "Spearman's correlation, over people with 10 or more labels of known items, of what a model "
        f"says ({ranked}), of the mean probability that {models[0]} gives their labels, or of the share "
        "of labels that are the majority's (ties of t count 1/t), with the share that is right. "
        f"Target of `accuracy`: at most {BELOW_MAJORITY} below both kinds of agreement in every set, "
        f"{MEAN_RANK} in the mean.",
        rank_correlation,
        target,
        MEAN_RANK,
    )


def worst_table(measured: list[MeasuredSet], models: Sequence[str]) -> PartTable:
    """Return the area under the curve for those who are bad."""
    return _compare(
        measured,
        models,
        "Area under the curve for the worst",
        "How well low values find people whose real accuracy is below 1/K + 0.1 (K categories).",
        area_for_worst,
        lambda name, values: None,
        None,
    )


def _claims_accuracy(one: MeasuredSet, model: str) -> bool:
    verdicts = one.verdicts.get(model)
    return verdicts is not None and verdicts.measure == "accuracy"


def _compare(
    measured: list[MeasuredSet],
    models: Sequence[str],
    title: str,
    description: str,
    measure: Callable[[KnownPeople, Floats | None], float | None],
    target: Callable[[str, dict[str, float | None]], Target | None],
    mean_target: Target | None,
) -> PartTable:
    columns = (*models, POSTERIOR, OTHERS, ALL)
    rows: list[Row] = []
    values: dict[str, list[float | None]] = {name: [] for name in columns}
    for one in measured:
        here = {name: measure(one.known, one.ranked(name)) for name in columns}
        for name, value in here.items():
            values[name].append(value)
        n_evaluated = str(np.count_nonzero(one.known.is_evaluated))
        rows.append(
            ((one.name, n_evaluated), [figure(here[name], target(name, here)) for name in columns])
        )
    of_mean = {
        name: mean_target if any(_claims_accuracy(one, name) for one in measured) else None
        for name in columns
    }
    means = [figure(mean_of(values[name]), of_mean[name]) for name in columns]
    rows.append((("mean", ""), means))
    return PartTable(title, description, ("set", "people"), columns, rows)


def flag_table(measured: list[MeasuredSet], model: str) -> PartTable:
    """Return who is flagged, and what they really are."""
    counts = [flag_counts(one, one.verdicts[model]) for one in measured]
    rows: list[Row] = [
        ((one.name,), [count(float(n)) for n in numbers])
        for one, numbers in zip(measured, counts, strict=True)
    ]
    total = np.sum(counts, axis=0)
    rows.append((("total",), [count(float(n)) for n in total]))
    flagged, many_bad = float(total[3]), float(total[8])
    blank: list[TargetFigure | str] = [MISSING]
    at_most = Target(high=FLAGGED_FINE)
    rows.append(
        (
            ("share",),
            [
                *blank * 4,
                figure(share(total[4], flagged)),
                figure(share(total[5], flagged)),
                figure(share(total[6], flagged), at_most),
                figure(share(total[7], flagged), at_most),
                *blank,
                figure(share(total[9], many_bad), BAD_FLAGGED),
                figure(share(total[10], many_bad), BAD_NOTICED),
                figure(share(total[11], total[0])),
            ],
        )
    )
    return PartTable(
        title=f"Flags: {model}",
        description=(
            "People with 10 or more labels of known items. Bad: real accuracy below 1/K + 0.1 (K "
            "categories). Uninformative: bad, or labels that match the truth hardly better than the "
            "same labels shuffled (kappa below 0.1). Fine: neither. Shares are of the flagged, of "
            f"bad people with {MANY_LABELS} or more labels, and of all. Targets: at most "
            f"{FLAGGED_FINE:.0%} of the flagged are fine, and at or above the set's median accuracy; "
            "of the bad with many labels at least 60% are flagged, and 80% flagged or noticed (said "
            "to be of low accuracy or partly careless)."
        ),
        heads=("set",),
        columns=(
            "people", "bad", "uninformative", "flagged", "flagged, bad", "flagged, uninformative",
            "flagged, fine", "flagged, at or above median", f"bad, {MANY_LABELS}+ labels",
            "of them flagged", "of them flagged or noticed", "too few to tell",
        ),
        rows=rows,
    )  # fmt: skip


def flag_counts(one: MeasuredSet, verdicts: Verdicts | None) -> list[int]:
    """Return the numbers of people in the order of the table's columns."""
    assert verdicts is not None
    known, evaluated = one.known, one.known.is_evaluated
    nobody = np.zeros_like(evaluated)
    flagged = nobody if verdicts.flagged is None else verdicts.flagged & evaluated
    noticed = nobody if verdicts.noticed is None else verdicts.noticed & evaluated
    median = np.median(known.accuracy[evaluated]) if evaluated.any() else np.nan
    with np.errstate(invalid="ignore"):
        above = known.accuracy >= median
    many_bad = known.is_bad & (one.n_labels >= MANY_LABELS)
    too_few = nobody if verdicts.flagged is None else verdicts.behaves(TOO_FEW) & evaluated
    people = (
        evaluated,
        known.is_bad,
        known.is_uninformative,
        flagged,
        flagged & known.is_bad,
        flagged & known.is_uninformative,
        flagged & ~known.is_uninformative,
        flagged & above,
        many_bad,
        many_bad & flagged,
        many_bad & noticed,
        too_few,
    )
    return [int(np.count_nonzero(some)) for some in people]


def interval_table(measured: list[MeasuredSet], model: str) -> PartTable:
    """Return how often the accuracy's interval contains the real accuracy."""
    rows: list[Row] = []
    pooled: list[Floats] = []
    for one in measured:
        verdicts = one.verdicts[model]
        assert verdicts is not None
        figures = interval_figures(one.known, verdicts)
        if one.name not in EXPERT_SETS and figures[3]:
            pooled.append(figures)
        rows.append(((one.name,), _interval_cells(figures, None)))
    if pooled:
        every = np.array(pooled)
        n = every[:, 3]
        mean, of_people = every.mean(axis=0), np.average(every, axis=0, weights=n)
        mean[3] = of_people[3] = n.sum()
        rows.append((("mean of sets",), _interval_cells(mean, COVERAGE)))
        rows.append((("all people",), _interval_cells(of_people, COVERAGE)))
    return PartTable(
        title=f"Interval of the accuracy: {model}",
        description=(
            "People with 10 or more labels of known items: the share whose 95% interval contains the "
            f"real accuracy, the interval's mean width, and the mean absolute error. The last rows "
            f"are without {' and '.join(EXPERT_SETS)}. Target: {COVERAGE}."
        ),
        heads=("set",),
        columns=("covered", "width", "absolute error", "people"),
        rows=rows,
    )


def interval_figures(known: KnownPeople, verdicts: Verdicts) -> Floats:
    """Return coverage, width, absolute error and the number of people."""
    evaluated = known.is_evaluated
    real, n = known.accuracy[evaluated], np.count_nonzero(evaluated)
    figures = np.array([np.nan, np.nan, np.nan, n])
    if not n or verdicts.quality is None:
        return figures
    figures[2] = np.abs(verdicts.quality[evaluated] - real).mean()
    if verdicts.low is not None and verdicts.high is not None:
        low, high = verdicts.low[evaluated], verdicts.high[evaluated]
        figures[0] = np.mean((low <= real) & (real <= high))
        figures[1] = np.mean(high - low)
    return figures


def _interval_cells(figures: Floats, target: Target | None) -> list[TargetFigure | str]:
    covered, width, error, n = figures.tolist()
    return [figure(covered, target), figure(width), figure(error), count(n)]
