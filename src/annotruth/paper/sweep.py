"""Which of the settings that the paper leaves open come nearest to its printed tables.

The table of Exp1-a and the rows Mean, Majority and GPM of Exp1-d are compared, for every
combination of settings, with what was printed. The distance is the root mean square over the
figures of a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.paper import crowds, exp1a, exp1d
from annotruth.paper.base import (
    Condition,
    Experiment,
    Measure,
    Record,
    Results,
    Setting,
    Settings,
)
from annotruth.paper.measuring import gpm, of_reliability, of_scores
from annotruth.paper.tables import Figure, aligned, figure, values_of

# How GPM may have been fitted; the first is what the paper says.
ESTIMATORS: dict[str, dict[str, Any]] = {
    "paper's equations": {"iteration": "paper", "max_iter": 1000},
    "paper's, cap 100": {"iteration": "paper", "max_iter": 100},
    "paper's, cap 10": {"iteration": "paper", "max_iter": 10},
    "program, cap 100": {"iteration": "program", "max_iter": 100},
    "program, cap 10": {"iteration": "program", "max_iter": 10},
}
AS_PRINTED = next(iter(ESTIMATORS))
CROWD_OPTIONS = {
    "shape": crowds.SHAPE,
    "mixing": crowds.MIXING,
    "reliable_above_half": crowds.ABOVE_HALF,
}
SCORE_OPTIONS = {
    "precision": crowds.PRECISION,
    "gamma": crowds.GAMMA,
    "mixing": crowds.MIXING,
    "reliable_above_half": crowds.ABOVE_HALF,
}
_BEST = 10


def conditions(settings: Settings) -> list[Condition]:
    """Every combination; only the mixed behavior depends on how it is mixed."""
    first = [
        {"experiment": "exp1a", "behavior": behavior, **options}
        for options in _combinations(CROWD_OPTIONS)
        for behavior in exp1a.BEHAVIORS
        if behavior == "mixed" or options["mixing"] == crowds.MIXING.choices[0]
    ]
    return [*first, *({"experiment": "exp1d", **o} for o in _combinations(SCORE_OPTIONS))]


def _combinations(options: Mapping[str, Setting]) -> list[dict[str, Any]]:
    choices = [setting.choices for setting in options.values()]
    return [dict(zip(options, chosen, strict=True)) for chosen in product(*choices)]


def drawn_as(condition: Condition) -> tuple[str, Condition]:
    """Draw what the experiment itself draws, so that settings differ on the same crowds."""
    name = condition["experiment"]
    return name, ({"behavior": condition["behavior"]} if name == "exp1a" else {})


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate one crowd and fit it in every way."""
    if condition["experiment"] == "exp1a":
        full = {**exp1a.EXPERIMENT.resolve({}), **settings, **condition}
        made = crowds.crowd(full, rng, behavior=condition["behavior"])
        return {
            name: of_reliability(made.reliability, gpm(made.labels, {**full, **how}).reliability)
            for name, how in ESTIMATORS.items()
        }
    full = {**exp1d.EXPERIMENT.resolve({}), **settings, **condition}
    made = crowds.gaussian(full, rng)
    values, shares = made.labels.scale.values, made.labels.observed_shares()
    return {
        "mean": of_scores(made.score, shares @ values),
        "majority": of_scores(made.score, values[shares.argmax(axis=1)]),
        **{
            name: of_scores(made.score, gpm(made.labels, {**full, **how}).shares @ values)
            for name, how in ESTIMATORS.items()
        },
    }


def summary(records: Sequence[Record], settings: Settings) -> tuple[str, pa.Table]:
    """Rank the combinations by their distance to the printed tables."""
    first, second = _reliability_table(records), _score_table(records)
    joint = _joint(first, second)
    best = joint[0]
    ours_first = next(row for row in first if _agrees(row, best))
    ours_second = next(row for row in second if _agrees(row, best))
    text = "\n\n".join(
        [
            _reached(best, first[0], second[0]),
            "## The nearest with GPM as the paper states it: the defaults",
            "Distance over the 16 figures of Exp1-a and the 9 of Exp1-d together.",
            _ranking(joint),
            "The nearest, figure by figure:",
            _figures(ours_first),
            _figures(ours_second),
            "## Exp1-a alone, GPM fitted in any way",
            _ranking(first),
            "## Exp1-d alone, GPM fitted in any way",
            _ranking(second),
            "## What each value costs",
            "The least distance that is left when a setting is held at a value.",
            _marginals(first, second),
        ]
    )
    lines = [
        {"experiment": name, **_plain(row), "distance": row["distance"]}
        for name, table in (("exp1a", first), ("exp1d", second))
        for row in table
    ]
    columns = list(dict.fromkeys(key for line in lines for key in line))
    return text, pa.table({key: [line.get(key) for line in lines] for key in columns})


def _reached(*nearest: Mapping[str, Any]) -> str:
    """Say how near the printed tables can be come to, in standard errors of our figures."""
    texts = []
    titles = (
        "for both tables with GPM as stated",
        "for Exp1-a with GPM in any way",
        "for Exp1-d with GPM in any way",
    )
    for title, row in zip(titles, nearest, strict=True):
        errors = [found.error or 0.0 for found in row["cells"].values()]
        noise = math.sqrt(sum(error**2 for error in errors) / len(errors))
        texts.append(f"{title} {row['distance']:.4f}, where chance alone would leave {noise:.4f}")
    return f"The least distance that any combination leaves: {'; '.join(texts)}."


def _reliability_table(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return every combination of Exp1-a with its distance, the nearest first."""
    found = []
    means = _means(records, "exp1a")
    for options in _combinations(CROWD_OPTIONS):
        for how, f1 in product(ESTIMATORS, exp1a.F1_KINDS):
            cells = {}
            for behavior, printed in exp1a.PRINTED.items():
                mixing = options["mixing"] if behavior == "mixed" else crowds.MIXING.choices[0]
                key = _key({"behavior": behavior, **options, "mixing": mixing})
                for measure, value in printed.items():
                    name = f"f1_{f1}" if measure == "f1" else measure
                    cells[behavior, measure] = replace(means[key, how, name], paper=value)
            found.append({**options, "f1": f1, "GPM": how, **_distance(cells)})
    return sorted(found, key=lambda row: row["distance"])


def _score_table(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return every combination of Exp1-d with its distance, the nearest first."""
    found = []
    means = _means(records, "exp1d")
    for options in _combinations(SCORE_OPTIONS):
        for how in ESTIMATORS:
            cells = {
                (model, measure): replace(means[_key(options), name, measure], paper=value)
                for model, name in (("mean", "mean"), ("majority", "majority"), ("gpm", how))
                for measure, value in exp1d.PRINTED[model].items()
            }
            found.append({**options, "GPM": how, **_distance(cells)})
    return sorted(found, key=lambda row: row["distance"])


def _joint(
    first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return both tables together where they agree, with GPM as the paper states it."""
    found = [
        {**_plain(a), **_plain(b), **_distance(a["cells"] | b["cells"])}
        for a, b in product(first, second)
        if a["GPM"] == b["GPM"] == AS_PRINTED and _agrees(a, b)
    ]
    return sorted(found, key=lambda row: row["distance"])


def _means(records: Sequence[Record], experiment: str) -> dict[tuple[Any, ...], Figure]:
    found: dict[tuple[Any, ...], Figure] = {}
    for condition in conditions({}):
        if condition["experiment"] != experiment:
            continue
        mine = [record for record in records if record.condition == condition]
        options = {name: value for name, value in condition.items() if name != "experiment"}
        for how in mine[0].results:
            for measure in mine[0].results[how]:
                found[_key(options), how, measure] = figure(values_of(mine, how, measure))
    return found


def _key(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(options.items()))


def _distance(cells: Mapping[tuple[str, str], Figure]) -> dict[str, Any]:
    """Return the root mean square of what lies between our figures and the printed ones."""
    gaps = [(found.mean, found.paper) for found in cells.values()]
    # A correlation that never had a value is as far off as one that is zero.
    squares = [((mean or 0.0) - (paper or 0.0)) ** 2 for mean, paper in gaps]
    return {"distance": math.sqrt(sum(squares) / len(squares)), "cells": cells}


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("cells", "distance")}


def _agrees(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    shared = _plain(row).keys() & _plain(other).keys()
    return all(row[name] == other[name] for name in shared)


def _ranking(rows: Sequence[Mapping[str, Any]]) -> str:
    head = ["rank", *_plain(rows[0]), "distance"]
    body = [
        [str(rank), *(str(value) for value in _plain(row).values()), f"{row['distance']:.4f}"]
        for rank, row in enumerate(rows[:_BEST], start=1)
    ]
    return aligned(head, body, n_left=len(head) - 1)


def _figures(row: Mapping[str, Any]) -> str:
    cells = row["cells"]
    names = list(dict.fromkeys(name for name, _ in cells))
    measures = list(dict.fromkeys(measure for _, measure in cells))
    head = ["", *(word for measure in measures for word in (measure, "paper"))]
    body = []
    for name in names:
        figures = [cells[name, measure] for measure in measures]
        body.append([name, *(text for f in figures for text in (str(f), f"{f.paper:.4f}"))])
    return aligned(head, body, n_left=1)


def _marginals(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> str:
    settings = dict.fromkeys([*_plain(first[0]), *_plain(second[0])])
    body = []
    for name in settings:
        values = dict.fromkeys(row[name] for row in [*first, *second] if name in row)
        for value in values:
            left = [
                min((row["distance"] for row in table if row.get(name) == value), default=None)
                for table in (first, second)
            ]
            body.append([name, str(value), *("" if d is None else f"{d:.4f}" for d in left)])
    return aligned(["setting", "value", "Exp1-a", "Exp1-d"], body, n_left=2)


def measures(settings: Settings) -> list[Measure]:
    """Nothing but distances is tabled."""
    return []


EXPERIMENT = Experiment(
    name="settings",
    title="Settings that the paper leaves open",
    about=(
        "Every combination of the settings that the paper leaves open, against its printed tables "
        "of Exp1-a (16 figures) and Exp1-d (the 9 of Mean, Majority and GPM). The distance is the "
        "root mean square of the differences. GPM is fitted as the paper states it, with the caps "
        "of 10 and 100 iterations of the authors' published program, and as that program iterates."
    ),
    settings={
        name: setting for name, setting in crowds.SIZES.items() if name in ("items", "categories")
    },
    conditions=conditions,
    run=run,
    measures=measures,
    models={name: name for name in ("mean", "majority", *ESTIMATORS)},
    summary=summary,
    drawn_as=drawn_as,
    default_runs=20,
)
