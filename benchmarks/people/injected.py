"""Careless, colluding and strict people, added to real crowds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes
from annotruth.models.result import Fit
from annotruth.observations import Labels
from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.honesty.real import votes
from benchmarks.people import kinds
from benchmarks.people.kinds import RealCrowd
from benchmarks.people.known import known_people
from benchmarks.people.options import (
    PeopleOptions,
    figure,
    fit_if_supported,
    has_truth,
    mean_of,
    note,
    read_set,
)
from benchmarks.people.verdicts import Bools, says_no_verdicts, verdicts_of
from benchmarks.truth.sets import load_set

CLASSES = ("rte", "ms", "dog", "face", "labelme")
SCALES = ("ftv", "uhd4u")
DEFAULT_RUNS = 5
SHARES = (0.1, 0.3)
N_LABELS = (20, 50, 200)
AS_CROWD = 0
"""As many labels as real people have."""

LABELLINGS: dict[str, kinds.Labelling] = {
    "random": kinds.random,
    "repeated": kinds.repeated,
    "mixed": kinds.mixed,
    "half-careless": kinds.half_careless,
    "consistently wrong": kinds.wrong,
    "consistently wrong, alike": kinds.wrong_alike,
    "colluding": kinds.colluding,
    "strict": kinds.away,
    "lenient": kinds.towards,
}
COPYING = "copying"
SERIOUS = ("strict", "lenient")
WRONG = ("consistently wrong", "consistently wrong, alike")
CARELESS = ("random", "repeated", "mixed")


class Case(NamedTuple):
    """Which people are added: how they label, their share of all people, their labels each."""

    kind: str
    share: float
    n_labels: int

    def cells(self) -> tuple[str, str, str]:
        """Return the cells of a table's row."""
        labels = "as crowd" if self.n_labels == AS_CROWD else str(self.n_labels)
        return self.kind, f"{self.share:.0%}", labels


def cases() -> Iterator[Case]:
    """Return all cases."""
    of_share = (*CARELESS, "half-careless", *WRONG, COPYING)
    yield from (Case(*case) for case in product(of_share, SHARES, N_LABELS))
    yield from (Case("colluding", share, AS_CROWD) for share in (0.3, 0.5))
    yield from (Case(*case) for case in product(SERIOUS, (0.1,), N_LABELS))


@dataclass(frozen=True)
class Outcome:
    """What a fit says about a crowd with added people; None where the model has no flags.

    Attributes
    ----------
    recall, noticed
        The shares of the added people who are flagged, and who are flagged or noticed.
    false_alarms, false_notices
        The same of real people who are not known to be uninformative.
    f1
        Of the flags.
    no_verdicts
        Whether the first line says that there are no verdicts.
    added_labels, wrong_labels
        The shares of all labels that are of added people, and that are wrong (of items of known
        class; None without any).
    """

    recall: float | None
    false_alarms: float | None
    f1: float | None
    noticed: float | None
    false_notices: float | None
    no_verdicts: float
    added_labels: float
    wrong_labels: float | None

    @property
    def most_are_wrong(self) -> bool:
        """Whether half of all labels or more are wrong."""
        wrong = self.added_labels if self.wrong_labels is None else self.wrong_labels
        return wrong >= 0.5


MEASURES = {
    "recall": "flagged",
    "false_alarms": "false alarms",
    "f1": "F1",
    "noticed": "noticed",
    "false_notices": "false notices",
    "no_verdicts": "no verdicts",
    "added_labels": "added labels",
    "wrong_labels": "wrong labels",
}


def injected(options: PeopleOptions) -> list[PartTable]:
    """Add people of every kind to every crowd, and fit all models."""
    tables = []
    for model in options.models_or():
        rows: list[tuple[str, Case, str, Outcome]] = []
        for folder in options.folders((*CLASSES, *SCALES)):
            scale = "classes" if has_truth(folder) else "scales"
            crowd = load_crowd(folder)
            rows += [
                (scale, case, folder.name, outcome)
                for case, outcome in outcomes(crowd, folder.name, model, options)
            ]
        tables += [summary_table(rows, model, options), set_table(rows, model)] if rows else []
    return tables


def load_crowd(folder: Path) -> RealCrowd:
    """Read a crowd, and what its truth says about people where there is one."""
    if not has_truth(folder):
        labels = read_set(folder, "ordinal")
        truth = np.full(labels.n_items, -1)
        is_fine = np.ones(labels.n_annotators, dtype=np.bool_)
    else:
        found = load_set(folder, "nominal")
        labels = found.labels
        truth = np.full(labels.n_items, -1)
        truth[found.item] = found.truth
        is_fine = ~known_people(found).is_uninformative
    right = np.where(truth >= 0, truth, votes(labels).argmax(axis=1))
    return RealCrowd(labels, is_fine, right, truth)


def outcomes(
    crowd: RealCrowd, name: str, model: str, options: PeopleOptions
) -> Iterator[tuple[Case, Outcome]]:
    """Return the outcome of every case and run."""
    runs = options.runs_or(DEFAULT_RUNS)
    for number, case in enumerate(cases()):
        if case.kind == WRONG[1] and (
            crowd.labels.scale.is_ordinal or crowd.labels.n_categories < 3
        ):
            continue  # the same as the kind before
        note(f"injected: {model}: {name}: {', '.join(case.cells())}")
        for run in range(runs):
            rng = np.random.default_rng([options.seed, run, number])
            labels = draw_crowd(crowd, case, rng)
            fit = fit_if_supported(labels, model)
            if fit is not None:
                yield case, measure(fit, crowd, case)


def draw_crowd(crowd: RealCrowd, case: Case, rng: np.random.Generator) -> Labels:
    """Add people to a crowd, so that they are the case's share of all people."""
    n_real = crowd.labels.n_annotators
    n_added = max(1, round(n_real * case.share / (1 - case.share)))
    if case.n_labels == AS_CROWD:
        spread = (np.arange(n_added) + rng.random()) * n_real / n_added
        n_labels: Codes = np.sort(crowd.labels.labels_per_annotator)[spread.astype(np.int64)]
    else:
        n_labels = np.full(n_added, case.n_labels)
    if case.kind == COPYING:
        added = kinds.add_copies(crowd, n_labels, rng)
    else:
        added = kinds.add_people(crowd, LABELLINGS[case.kind], n_labels, rng)
    return kinds.with_people(crowd.labels, added)


def measure(fit: Fit, crowd: RealCrowd, case: Case) -> Outcome:
    """Compare the flags with who was added."""
    labels, n_real = fit.data, crowd.labels.n_annotators
    is_added = np.arange(labels.n_annotators) >= n_real
    is_fine = np.concatenate([crowd.is_fine, np.zeros(is_added.sum(), dtype=np.bool_)])
    verdicts = verdicts_of(fit)
    f1 = None if case.kind in SERIOUS else f1_score(verdicts.flagged, is_added, is_fine)
    return Outcome(
        recall=_share_of(verdicts.flagged, is_added),
        false_alarms=_share_of(verdicts.flagged, is_fine),
        f1=f1,
        noticed=_share_of(verdicts.noticed, is_added),
        false_notices=_share_of(verdicts.noticed, is_fine),
        no_verdicts=float(says_no_verdicts(fit)),
        added_labels=float(np.mean(is_added[labels.annotator])),
        wrong_labels=wrong_share(labels, crowd.truth),
    )


def _share_of(said: Bools | None, people: Bools) -> float | None:
    return None if said is None else float(said[people].mean())


def f1_score(flagged: Bools | None, is_added: Bools, is_fine: Bools) -> float | None:
    """Return the F1 of flags; real people who are uninformative count neither way."""
    if flagged is None:
        return None
    found = np.count_nonzero(flagged & is_added)
    n_flagged = np.count_nonzero(flagged & (is_added | is_fine))
    return 2 * found / (n_flagged + np.count_nonzero(is_added))


def wrong_share(labels: Labels, truth: Codes) -> float | None:
    """Return the share of labels, of items of known class, that are wrong."""
    of_label = truth[labels.item_of_label()]
    known = of_label >= 0
    if not known.any():
        return None
    return float(np.mean(labels.category_of_label()[known] != of_label[known]))


def targets(case: Case, scale: str, *, most_are_wrong: bool) -> dict[str, Target]:
    """Return the targets of the measures of a case."""
    if case.kind in CARELESS and case.n_labels in (20, 50):
        return {"f1": Target(low=0.85 if case.n_labels == 20 else 0.95)}
    if case.kind in WRONG and case.n_labels == 50 and not most_are_wrong:
        return {"f1": Target(low=0.9)}
    if case.kind == "half-careless" and case.n_labels == 200:
        return {"noticed": Target(low=0.6), "false_notices": Target(high=0.03)}
    if case.kind == "colluding" and case.share == 0.3:
        f1 = {"f1": Target(low=0.6)} if scale == "classes" else {}
        return {"false_alarms": Target(high=0.0), **f1}
    if case.kind == "colluding":
        nobody = Target(high=0.0)
        return {"recall": nobody, "false_alarms": nobody, "no_verdicts": Target(low=1.0)}
    if case.kind in SERIOUS:
        return {"recall": Target(high=0.02)}
    return {}


Rows = Sequence[tuple[str, Case, str, Outcome]]


def _figures(found: Sequence[Outcome], goals: dict[str, Target]) -> list[TargetFigure | str]:
    return [
        figure(mean_of([getattr(one, name) for one in found]), goals.get(name)) for name in MEASURES
    ]


def summary_table(rows: Rows, model: str, options: PeopleOptions) -> PartTable:
    """Return the means over sets and runs, for classes and for scales."""

    def key(row: tuple[str, Case, str, Outcome]) -> tuple[str, int, bool]:
        scale, case, _, outcome = row
        apart = case.kind in WRONG and outcome.most_are_wrong
        return scale, order[case], apart

    order = {case: number for number, case in enumerate(cases())}
    known = list(order)
    lines = []
    for (scale, number, apart), group in groupby(sorted(rows, key=key), key=key):
        found, case = [row[-1] for row in group], known[number]
        goals = targets(case, scale, most_are_wrong=apart)
        kind = f"{case.kind}; half or more of all labels wrong" if apart else case.kind
        cells = (scale, kind, *case.cells()[1:], str(len(found)))
        lines.append((cells, _figures(found, goals)))
    return PartTable(
        title=f"Added people: {model}",
        description=(
            f"Means over sets and {options.runs_or(DEFAULT_RUNS)} run(s) each. People are added so that "
            "they are this share of all. Flagged and noticed (flagged, or said to be of low accuracy "
            "or partly careless): shares of the added. False alarms and false notices: shares of "
            "the real people who are not known to be uninformative. No verdicts: share of fits whose "
            "first line says that there are no verdicts. Added labels: share of all labels; wrong "
            "labels: share of the labels of items of known class. Strict and lenient people are "
            "serious, and must not be flagged."
        ),
        heads=("crowds", "added", "share", "labels each", "fits"),
        columns=tuple(MEASURES.values()),
        rows=lines,
    )


def set_table(rows: Rows, model: str) -> PartTable:
    """Return the means over runs, set by set."""
    lines = []
    for (_, case, name), group in groupby(rows, key=lambda row: row[:3]):
        lines.append(((name, *case.cells()), _figures([row[-1] for row in group], {})))
    return PartTable(
        title=f"Added people by set: {model}",
        description="As above, for every set.",
        heads=("set", "added", "share", "labels each"),
        columns=tuple(MEASURES.values()),
        rows=lines,
    )
