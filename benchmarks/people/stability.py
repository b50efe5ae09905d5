"""The same people and hardly different labels: whether verdicts stay as they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import annotruth as at
from annotruth.errors import AnnotruthWarning
from annotruth.kernels.arrays import Codes
from annotruth.models.fits.past_fits import last_fit
from annotruth.models.result import Fit
from annotruth.observations import Labels
from benchmarks.honesty.crowds import (
    Design,
    class_prior,
    dawid_skene_rows,
    draw_labels,
    one_variant,
)
from benchmarks.honesty.options import PartTable, Target, TargetFigure, fit_model
from benchmarks.people import genuine, truth
from benchmarks.people.options import (
    MISSING,
    PeopleOptions,
    count,
    figure,
    note,
    read_set,
    share,
)

DEFAULT_RUNS = 3
REMOVED = 0.05
N_PARTS = 4
FLIPS = Target(high=0.03)
SAME = Target(high=1e-9)
NOTHING = Target(high=0.0)
SAME_CONFIDENCE = Target(high=1e-4)

N_WEEKS = 10
ITEMS_PER_WEEK = 60
STEADY = Target(low=0.95)
CAMPAIGN_RUNS = 5
N_ANNOTATORS = 40
CARELESS_SHARE = 0.15


def stability(options: PeopleOptions) -> list[PartTable]:
    """Remove labels, shuffle rows, update in parts, and repeat a fit week by week."""
    tables = []
    for model in options.models_or():
        tables += [
            removal_table(options, model),
            shuffle_table(options, model),
            update_table(options, model),
            campaign_table(options, model),
        ]
    return [table for table in tables if table.rows]


def all_sets(options: PeopleOptions) -> Iterator[tuple[str, Labels]]:
    """Return the sets of classes and of opinions, by name."""
    for found in truth.class_sets(options):
        yield found.name, found.labels
    for folder in options.folders(tuple(genuine.SETS), truth=False):
        yield folder.name, read_set(folder, "auto")


def updated(before: Fit, labels: Labels) -> Fit:
    """Add labels to a fit, without warnings; every label is a vote."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotruthWarning)
        return at.update(before, labels, duplicates="keep")


def flags_of(fit: Fit) -> dict[Any, bool]:
    """Return whether people are flagged, by id; empty if the model flags nobody."""
    return by_id(fit.annotator_table(), "spammer")


def by_id(table: pa.Table, name: str) -> dict[Any, Any]:
    """Return a column of a table of annotators by id; empty without it."""
    if name not in table.column_names:
        return {}
    return dict(zip(table["annotator"].to_pylist(), table[name].to_pylist(), strict=True))


def n_different(before: dict[Any, Any], after: dict[Any, Any]) -> int:
    """Return how many of those in both have another value."""
    return sum(before[key] != after[key] for key in before.keys() & after.keys())


# Labels removed


class Removal(NamedTuple):
    """How many flags all labels give, how many flip in a fit of fewer, and how many verdicts to drop by an update."""

    n_flags: int
    n_fitted: int
    n_standing: int


def measure_removal(full: Fit, fewer: Labels, rest: Labels, model: str) -> Removal:
    """Fit fewer labels, then add the rest; compare flags and standing verdicts with each other."""
    smaller = fit_model(fewer, model)
    flags, before = flags_of(full), flags_of(smaller)
    dropped, still = map(dropped_by, (smaller, updated(smaller, rest)))
    return Removal(sum(flags.values()), n_different(before, flags), n_different(dropped, still))


def dropped_by(fit: Fit) -> dict[str, bool]:
    """Return whose standing verdict is to drop them, by id."""
    standing = by_id(last_fit(fit.past_fit_table()), "standing")
    return {name: verdict == "drop" for name, verdict in standing.items()}


def removal_table(options: PeopleOptions, model: str) -> PartTable:
    """Return the flags that flip if some of the labels are removed."""
    runs = options.runs_or(DEFAULT_RUNS)
    rows = []
    total = np.zeros(3)
    for classes in truth.class_sets(options):
        labels = classes.labels
        note(f"stability: {model}: labels removed: {classes.name}")
        full = fit_model(labels, model)
        found = np.zeros(3)
        for run in range(runs):
            rng = np.random.default_rng([options.seed, run])
            kept = rng.random(labels.n_labels) >= REMOVED
            found += measure_removal(full, labels.subset(kept), labels.subset(~kept), model)
        total += found
        rows.append(((classes.name,), _removal_cells(found / runs, None)))
    if rows:
        rows.append((("all",), _removal_cells(total / runs, FLIPS)))
    return PartTable(
        title=f"{REMOVED:.0%} of the labels removed: {model}",
        description=(
            f"Means over {runs} run(s). Flags: people flagged with all labels. Flips: people flagged in "
            "one of two fits only, with all labels or with 95% of them, and as a share of the flags. Standing: "
            'people whose standing verdict becomes or is no longer "drop" when the 5% are added to the fit of 95% '
            f"by `update`. Target over all sets: {FLIPS}."
        ),
        heads=("set",),
        columns=("flags", "flips", "share", "standing flips", "standing share"),
        rows=rows,
    )


def _removal_cells(found: Any, target: Target | None) -> list[TargetFigure | str]:
    flags, fitted, added = found.tolist()
    return [
        figure(flags, digits=1),
        figure(fitted, digits=1),
        figure(share(fitted, flags), target),
        figure(added, digits=1),
        figure(share(added, flags), target),
    ]


# Rows shuffled


class Difference(NamedTuple):
    """The largest difference of a numeric column, its name, and how many other cells differ."""

    largest: float
    column: str
    n_other: int


def pairs_of_columns(
    before: pa.Table, after: pa.Table, key: str
) -> Iterator[tuple[str, pa.ChunkedArray, pa.ChunkedArray]]:
    """Return the columns of two tables, with the rows of the second in the order of the first."""
    row = {value: number for number, value in enumerate(after[key].to_pylist())}
    after = after.take([row[value] for value in before[key].to_pylist()])
    for name in before.column_names:
        if name != key:
            yield name, before[name], after[name]


def n_changed(before: pa.ChunkedArray, after: pa.ChunkedArray) -> int:
    """Return how many cells differ."""
    return sum(a != b for a, b in zip(before.to_pylist(), after.to_pylist(), strict=True))


def largest_gap(before: pa.ChunkedArray, after: pa.ChunkedArray) -> float:
    """Return the largest difference of numbers; a number beside none is infinitely far away."""
    x, y = (column.to_numpy().astype(np.float64) for column in (before, after))
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    gap = np.nan_to_num(np.abs(np.where(same, 0.0, x) - np.where(same, 0.0, y)), nan=np.inf)
    return float(gap.max(initial=0.0))


def table_difference(before: pa.Table, after: pa.Table, key: str) -> Difference:
    """Compare two tables row by row, by id."""
    largest, column, n_other = 0.0, MISSING, 0
    for name, old, new in pairs_of_columns(before, after, key):
        if not (pa.types.is_floating(old.type) or pa.types.is_integer(old.type)):
            n_other += n_changed(old, new)
        elif (gap := largest_gap(old, new)) > largest:
            largest, column = gap, name
    return Difference(largest, column, n_other)


def shuffled(labels: Labels, rng: np.random.Generator) -> Labels:
    """Return the labels as they are read from rows in a random order."""
    order = rng.permutation(labels.n_labels)
    table = pa.table(
        {
            "item": labels.items.take(pa.array(labels.item_of_label()[order])),
            "annotator": labels.annotators.take(pa.array(labels.annotator[order])),
            "label": labels.scale.categories.take(pa.array(labels.category_of_label()[order])),
        }
    )
    return Labels.of(table, scale=labels.scale.kind, duplicates="keep")


def shuffle_table(options: PeopleOptions, model: str) -> PartTable:
    """Return what the order of rows changes."""
    rows = []
    for name, labels in all_sets(options):
        note(f"stability: {model}: rows shuffled: {name}")
        rng = np.random.default_rng(options.seed)
        before, after = (fit_model(each, model) for each in (labels, shuffled(labels, rng)))
        cells: list[TargetFigure | str] = []
        for one, other, key in (
            (before.item_table(), after.item_table(), "item"),
            (before.annotator_table(), after.annotator_table(), "annotator"),
        ):
            found = table_difference(one, other, key)
            cells += [figure(found.largest, SAME, 1, "e"), found.column]
            cells.append(count(found.n_other, NOTHING))
        rows.append(((name,), cells))
    return PartTable(
        title=f"Rows shuffled: {model}",
        description=(
            "The largest difference of a numeric column of the tables of items and of annotators, "
            f"the column, and how many other cells differ. Target: {SAME}, 0 cells."
        ),
        heads=("set",),
        columns=(
            *("items", "items' column", "items' cells"),
            *("annotators", "annotators' column", "annotators' cells"),
        ),
        rows=rows,
    )


# Updated in parts


def update_in_parts(labels: Labels, model: str, rng: np.random.Generator) -> Fit:
    """Fit a random quarter of the labels, and add the other quarters one by one."""
    part = rng.permutation(labels.n_labels) % N_PARTS
    fit = fit_model(labels.subset(part == 0), model)
    for number in range(1, N_PARTS):
        fit = updated(fit, labels.subset(part == number))
    return fit


def update_table(options: PeopleOptions, model: str) -> PartTable:
    """Return how a chain of updates differs from one fit."""
    rows = []
    for name, labels in all_sets(options):
        note(f"stability: {model}: updates: {name}")
        fit = fit_model(labels, model)
        chain = update_in_parts(labels, model, np.random.default_rng(options.seed))
        rows.append(((name,), update_figures(fit, chain)))
    return PartTable(
        title=f"Updates in {N_PARTS} parts: {model}",
        description=(
            "A random quarter of the labels is fitted and the other quarters are added by `update`, "
            "beside one fit of all: items whose label differs, people whose flag, behavior or verdict "
            "(`keep`) differs, and the largest differences of an item's confidence, a reliability and "
            f"an accuracy. Target: the same labels and verdicts, confidence to {SAME_CONFIDENCE.high:g}."
        ),
        heads=("set",),
        columns=(
            *("labels", "share of items", "flags", "behaviors", "verdicts"),
            *("confidence", "reliability", "accuracy"),
        ),
        rows=rows,
    )


def update_figures(fit: Fit, chain: Fit) -> list[TargetFigure | str]:
    """Return the cells of a row."""
    columns = {
        f"{key} {name}": (old, new)
        for before, after, key in (
            (fit.item_table(), chain.item_table(), "item"),
            (fit.annotator_table(), chain.annotator_table(), "annotator"),
            (fit.verdict_table(), chain.verdict_table(), "annotator"),
        )
        for name, old, new in pairs_of_columns(before, after, key)
    }

    def changed(name: str) -> float | None:
        return n_changed(*columns[name]) if name in columns else None

    def gap(name: str) -> float | None:
        return largest_gap(*columns[name]) if name in columns else None

    return [
        count(changed("item label"), NOTHING),
        figure(share(changed("item label"), fit.data.n_items), NOTHING, 4),
        count(changed("annotator spammer"), NOTHING),
        count(changed("annotator behavior"), NOTHING),
        count(changed("annotator verdict"), NOTHING),
        figure(gap("item confidence"), SAME_CONFIDENCE, 1, "e"),
        figure(gap("annotator reliability"), None, 1, "e"),
        figure(gap("annotator accuracy"), None, 1, "e"),
    ]


# A campaign, week by week


def careless_crowd(n_classes: int, rng: np.random.Generator) -> Labels:
    """Return labels of constant people with confusions of their own, some of whom are careless."""
    design = Design(
        n_items=ITEMS_PER_WEEK * N_WEEKS,
        n_annotators=N_ANNOTATORS,
        n_classes=n_classes,
        labels_per_item=5,
    )
    rows = dawid_skene_rows(design, rng, low=0.6)
    rows[: round(CARELESS_SHARE * N_ANNOTATORS)] = 1 / n_classes
    crowd = one_variant(class_prior(n_classes, balanced=False), rows)
    return draw_labels(crowd, design, rng, oracle=False).labels


def opinion_crowd(rng: np.random.Generator) -> Labels:
    """Return opinions on five categories; some of the people answer at random."""
    return at.simulate.crowd(
        n_items=ITEMS_PER_WEEK * N_WEEKS,
        n_annotators=N_ANNOTATORS,
        labels_per_item=5,
        spammer_share=CARELESS_SHARE,
        seed=rng,
    ).labels


CAMPAIGNS: dict[str, Callable[[np.random.Generator], Labels]] = {
    "2 classes": lambda rng: careless_crowd(2, rng),
    "5 classes": lambda rng: careless_crowd(5, rng),
    "opinions on 5 categories": opinion_crowd,
}


def weekly_fits(labels: Labels, model: str) -> Iterator[Fit]:
    """Return a fit after every week, each an update of the one before; a week has items of its own."""
    week = labels.item_of_label() * N_WEEKS // labels.n_items
    fit = fit_model(labels.subset(week == 0), model)
    yield fit
    for number in range(1, N_WEEKS):
        fit = updated(fit, labels.subset(week == number))
        yield fit


def n_changes(history: list[dict[Any, Any]]) -> Codes:
    """Return how often each person's verdict changes from one week to the next."""
    changes = dict.fromkeys(history[-1], 0)
    for before, after in pairwise(history):
        for person in before.keys() & after.keys():
            changes[person] += before[person] != after[person]
    return np.array(list(changes.values()))


def campaign_table(options: PeopleOptions, model: str) -> PartTable:
    """Return how often the verdicts on constant people change."""
    runs = options.runs_or(CAMPAIGN_RUNS)
    rows = []
    for name, draw in CAMPAIGNS.items():
        note(f"stability: {model}: campaign: {name}")
        of_standing: list[Codes] = []
        of_verdicts: list[Codes] = []
        of_flags: list[Codes] = []
        for run in range(runs):
            labels = draw(np.random.default_rng([options.seed, run]))
            standing, verdicts, flags = [], [], []
            for fit in weekly_fits(labels, model):
                people = last_fit(fit.past_fit_table())
                standing.append(by_id(people, "standing"))
                verdicts.append(by_id(people, "verdict"))
                flags.append(flags_of(fit))
            of_standing.append(n_changes(standing))
            of_verdicts.append(n_changes(verdicts))
            of_flags.append(n_changes(flags))
        changes, of_labels, flips = map(np.concatenate, (of_standing, of_verdicts, of_flags))
        rows.append(
            (
                (name, str(changes.size)),
                [
                    figure(float(np.mean(changes <= 1)), STEADY),
                    figure(float(np.mean(changes == 0))),
                    figure(float(changes.mean())),
                    figure(float(np.mean(of_labels <= 1))),
                    figure(float(np.mean(flips <= 1)) if flips.size else None),
                ],
            )
        )
    return PartTable(
        title=f"A campaign of {N_WEEKS} weeks: {model}",
        description=(
            f"{runs} simulated crowd(s) each of {N_ANNOTATORS} people who never change, "
            f"{CARELESS_SHARE:.0%} of them careless: {ITEMS_PER_WEEK} new items with 5 labels each are "
            "added every week by `update`. The shares of people whose standing verdict changes at most once and "
            "never, the mean number of changes, and for whom the verdict of the labels alone, and the flag, "
            f"change at most once. Target: {STEADY} of the standing verdicts change at most once."
        ),
        heads=("crowd", "people"),
        columns=("at most once", "never", "changes", "by labels alone", "flag by labels alone"),
        rows=rows,
    )
