"""Flags on people in crowds of opinions, as they are: as far as is known, nobody is careless."""

from __future__ import annotations

import numpy as np

from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.people.options import (
    MISSING,
    PeopleOptions,
    count,
    figure,
    fit_if_supported,
    note,
    read_set,
)
from benchmarks.people.verdicts import (
    ANOTHER_OPINION,
    TOO_FEW,
    Verdicts,
    says_no_verdicts,
    verdicts_of,
)

NOBODY = Target(high=0.0)
SETS: dict[str, Target | None] = {
    "opinion-hsbrexit": NOBODY,
    "opinion-convabuse": NOBODY,
    "groups-offensiveness": NOBODY,
    "vqeg-hd": NOBODY,
    "ftv": NOBODY,
    "uhd4u": NOBODY,
    "movielens-100k": Target(high=0.02),
    "emotion-0-100": None,
}


def genuine(options: PeopleOptions) -> list[PartTable]:
    """Fit every set of opinions."""
    rows = []
    for folder in options.folders(tuple(SETS), truth=False):
        labels = read_set(folder, "auto")
        for model in options.models_or():
            note(f"genuine: {folder.name}: {model}")
            fit = fit_if_supported(labels, model)
            verdicts = None if fit is None else verdicts_of(fit)
            says = MISSING if fit is None else "yes" if says_no_verdicts(fit) else "no"
            figures = _figures(verdicts, SETS.get(folder.name))
            rows.append(((folder.name, model, str(labels.n_annotators)), [*figures, says]))
    return [
        PartTable(
            title="Genuine raters",
            description=(
                "People of whom nobody is careless as far as is known. Noticed: flagged, or said to "
                "be of low accuracy or partly careless. Target: nobody flagged, in movielens-100k at "
                "most 2%."
            ),
            heads=("set", "model", "people"),
            columns=(
                *(
                    "flagged",
                    "share",
                    "noticed",
                    "share noticed",
                    "too few to tell",
                    "share too few",
                ),
                *("another opinion", "no verdicts"),
            ),
            rows=rows,
        )
    ]


def _figures(verdicts: Verdicts | None, target: Target | None) -> list[TargetFigure | str]:
    if verdicts is None or verdicts.flagged is None or verdicts.noticed is None:
        return [MISSING] * 7
    few, other = verdicts.behaves(TOO_FEW), verdicts.behaves(ANOTHER_OPINION)
    cells: list[TargetFigure | str] = []
    for people, wanted in ((verdicts.flagged, target), (verdicts.noticed, None), (few, None)):
        cells += [count(float(np.count_nonzero(people))), figure(float(people.mean()), wanted)]
    return [*cells, count(float(np.count_nonzero(other)))]
