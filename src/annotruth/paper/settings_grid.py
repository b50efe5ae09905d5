"""A grid over the settings that the paper leaves open, ranked by distance to its tables.

The table of Exp1-a and the rows Mean, Majority and GPM of Exp1-d are compared with the printed
figures for every combination of settings. The distance is the root mean square over the figures
of a table.
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

from annotruth.paper import simulated
from annotruth.paper.experiment import (
    Condition,
    Experiment,
    ExperimentRun,
    ExperimentSetting,
    Results,
    Settings,
)
from annotruth.paper.measures import fit_gpm, measure_reliability, measure_scores
from annotruth.paper.tables import MeanWithError, markdown_table, mean_with_error, values_of

# How GPM may have been fitted; the first is what the paper states.
ESTIMATORS: dict[str, dict[str, Any]] = {
    "paper's equations": {"iteration": "paper", "max_iter": 1000},
    "paper's, cap 100": {"iteration": "paper", "max_iter": 100},
    "paper's, cap 10": {"iteration": "paper", "max_iter": 10},
    "program, cap 100": {"iteration": "program", "max_iter": 100},
    "program, cap 10": {"iteration": "program", "max_iter": 10},
}
AS_PRINTED = next(iter(ESTIMATORS))
_N_RANKED = 10

# A combination of settings with its "distance" and the "means" behind it.
_Combination = dict[str, Any]


def conditions(settings: Settings) -> list[Condition]:
    """Return every combination; mixing matters for the mixed behavior only."""
    first = [
        {"experiment": "exp1a", "behavior": behavior, **choices}
        for choices in _combinations(simulated.CROWD_CHOICES)
        for behavior in simulated.BEHAVIORS
        if behavior == "mixed" or choices["mixing"] == simulated.MIXING.choices[0]
    ]
    second = [{"experiment": "exp1d", **c} for c in _combinations(simulated.SCORE_CHOICES)]
    return [*first, *second]


def _combinations(settings: Mapping[str, ExperimentSetting]) -> list[dict[str, Any]]:
    choices = [setting.choices for setting in settings.values()]
    return [dict(zip(settings, chosen, strict=True)) for chosen in product(*choices)]


def seeded_as(condition: Condition) -> tuple[str, Condition]:
    """Use the random numbers of the experiment itself, so that all settings see the same simulated."""
    name = condition["experiment"]
    return name, ({"behavior": condition["behavior"]} if name == "exp1a" else {})


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate one crowd and fit it by every estimator."""
    if condition["experiment"] == "exp1a":
        complete = {**simulated.EXP1A.resolve({}), **settings, **condition}
        simulation = simulated.simulate_crowd(complete, rng, behavior=condition["behavior"])
        return {
            name: measure_reliability(
                simulation.reliability,
                fit_gpm(simulation.labels, {**complete, **options}).reliability,
            )
            for name, options in ESTIMATORS.items()
        }
    complete = {**simulated.EXP1D.resolve({}), **settings, **condition}
    simulation = simulated.simulate_scores(complete, rng)
    labels = simulation.labels
    values, shares = labels.scale.values, labels.observed_shares()
    scores = {"mean": shares @ values, "majority": values[shares.argmax(axis=1)]}
    for name, options in ESTIMATORS.items():
        scores[name] = fit_gpm(labels, {**complete, **options}).distribution @ values
    return {name: measure_scores(simulation.score, score) for name, score in scores.items()}


def summary(runs: Sequence[ExperimentRun], settings: Settings) -> tuple[str, pa.Table]:
    """Return the combinations ranked by their distance to the printed tables."""
    first, second = _rank_exp1a(runs), _rank_exp1d(runs)
    joint = _rank_jointly(first, second)
    best = joint[0]
    best_first = next(row for row in first if _agree(row, best))
    best_second = next(row for row in second if _agree(row, best))
    text = "\n\n".join(
        [
            _describe_smallest(best, first[0], second[0]),
            "## Closest with GPM as the paper states it: the defaults",
            "Distance over the 16 figures of Exp1-a and the 9 of Exp1-d together.",
            _ranking_table(joint),
            "The closest combination, figure by figure:",
            _means_table(best_first),
            _means_table(best_second),
            "## Exp1-a alone, any estimator of GPM",
            _ranking_table(first),
            "## Exp1-d alone, any estimator of GPM",
            _ranking_table(second),
            "## Smallest distance by value",
            "The smallest distance that is left when a setting is held at a value.",
            _marginals_table(first, second),
        ]
    )
    lines = [
        {"experiment": name, **_settings_of(row), "distance": row["distance"]}
        for name, table in (("exp1a", first), ("exp1d", second))
        for row in table
    ]
    columns = list(dict.fromkeys(key for line in lines for key in line))
    return text, pa.table({key: [line.get(key) for line in lines] for key in columns})


def _describe_smallest(*closest: _Combination) -> str:
    """Return the smallest distances, and what chance alone would leave."""
    titles = (
        "for both tables with GPM as stated",
        "for Exp1-a with any estimator of GPM",
        "for Exp1-d with any estimator of GPM",
    )
    texts = []
    for title, row in zip(titles, closest, strict=True):
        errors = [mean.error or 0.0 for mean in row["means"].values()]
        noise = math.sqrt(sum(error**2 for error in errors) / len(errors))
        texts.append(f"{title} {row['distance']:.4f}, where chance alone would leave {noise:.4f}")
    return f"The smallest distance of any combination: {'; '.join(texts)}."


def _rank_exp1a(runs: Sequence[ExperimentRun]) -> list[_Combination]:
    """Return every combination of Exp1-a with its distance, the closest first."""
    rows = []
    means = _mean_results(runs, "exp1a")
    for choices in _combinations(simulated.CROWD_CHOICES):
        for estimator, f1 in product(ESTIMATORS, simulated.F1_KINDS):
            compared = {}
            for behavior, printed in simulated.PRINTED_1A.items():
                mixing = choices["mixing"] if behavior == "mixed" else simulated.MIXING.choices[0]
                key = _key({"behavior": behavior, **choices, "mixing": mixing})
                for measure, value in printed.items():
                    name = f"f1_{f1}" if measure == "f1" else measure
                    compared[behavior, measure] = replace(means[key, estimator, name], paper=value)
            rows.append({**choices, "f1": f1, "GPM": estimator, **_with_distance(compared)})
    return sorted(rows, key=lambda row: row["distance"])


def _rank_exp1d(runs: Sequence[ExperimentRun]) -> list[_Combination]:
    """Return every combination of Exp1-d with its distance, the closest first."""
    rows = []
    means = _mean_results(runs, "exp1d")
    for choices in _combinations(simulated.SCORE_CHOICES):
        for estimator in ESTIMATORS:
            compared = {
                (model, measure): replace(means[_key(choices), name, measure], paper=value)
                for model, name in (("mean", "mean"), ("majority", "majority"), ("gpm", estimator))
                for measure, value in simulated.PRINTED_1D[model].items()
            }
            rows.append({**choices, "GPM": estimator, **_with_distance(compared)})
    return sorted(rows, key=lambda row: row["distance"])


def _rank_jointly(
    first: Iterable[_Combination], second: Iterable[_Combination]
) -> list[_Combination]:
    """Return both tables together where their settings agree, with GPM as the paper states it."""
    rows = [
        {**_settings_of(a), **_settings_of(b), **_with_distance(a["means"] | b["means"])}
        for a, b in product(first, second)
        if a["GPM"] == b["GPM"] == AS_PRINTED and _agree(a, b)
    ]
    return sorted(rows, key=lambda row: row["distance"])


def _mean_results(
    runs: Sequence[ExperimentRun], experiment: str
) -> dict[tuple[Any, ...], MeanWithError]:
    """Return the means over runs by (settings, estimator, measure)."""
    means: dict[tuple[Any, ...], MeanWithError] = {}
    for condition in conditions({}):
        if condition["experiment"] != experiment:
            continue
        selected = [run for run in runs if run.condition == condition]
        choices = {name: value for name, value in condition.items() if name != "experiment"}
        for estimator, results in selected[0].results.items():
            for measure in results:
                values = values_of(selected, estimator, measure)
                means[_key(choices), estimator, measure] = mean_with_error(values)
    return means


def _key(choices: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(choices.items()))


def _with_distance(means: Mapping[tuple[str, str], MeanWithError]) -> dict[str, Any]:
    """Return the means, and the root mean square of their differences to the printed figures."""
    # A correlation without a value counts as zero.
    squares = [((mean.mean or 0.0) - (mean.paper or 0.0)) ** 2 for mean in means.values()]
    return {"distance": math.sqrt(sum(squares) / len(squares)), "means": means}


def _settings_of(row: _Combination) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("means", "distance")}


def _agree(row: _Combination, other: _Combination) -> bool:
    shared = _settings_of(row).keys() & _settings_of(other).keys()
    return all(row[name] == other[name] for name in shared)


def _ranking_table(rows: Sequence[_Combination]) -> str:
    head = ["rank", *_settings_of(rows[0]), "distance"]
    body = [
        [str(rank), *(str(value) for value in _settings_of(row).values()), f"{row['distance']:.4f}"]
        for rank, row in enumerate(rows[:_N_RANKED], start=1)
    ]
    return markdown_table(head, body, n_left=len(head) - 1)


def _means_table(row: _Combination) -> str:
    means = row["means"]
    names = list(dict.fromkeys(name for name, _ in means))
    measures = list(dict.fromkeys(measure for _, measure in means))
    head = ["", *(word for measure in measures for word in (measure, "paper"))]
    body = []
    for name in names:
        compared = [means[name, measure] for measure in measures]
        body.append([name, *(text for m in compared for text in (str(m), f"{m.paper:.4f}"))])
    return markdown_table(head, body, n_left=1)


def _marginals_table(first: Sequence[_Combination], second: Sequence[_Combination]) -> str:
    settings = dict.fromkeys([*_settings_of(first[0]), *_settings_of(second[0])])
    body = []
    for name in settings:
        values = dict.fromkeys(row[name] for row in [*first, *second] if name in row)
        for value in values:
            distances = [
                min((row["distance"] for row in table if row.get(name) == value), default=None)
                for table in (first, second)
            ]
            body.append([name, str(value), *("" if d is None else f"{d:.4f}" for d in distances)])
    return markdown_table(["setting", "value", "Exp1-a", "Exp1-d"], body, n_left=2)


EXPERIMENT = Experiment(
    name="settings",
    title="Settings that the paper leaves open",
    description=(
        "Every combination of the settings that the paper leaves open, against its printed tables "
        "of Exp1-a (16 figures) and Exp1-d (the 9 of Mean, Majority and GPM). The distance is the "
        "root mean square of the differences. GPM is fitted as the paper states it, with the caps "
        "of 10 and 100 iterations of the authors' published program, and as that program iterates."
    ),
    settings={name: simulated.SIZES[name] for name in ("items", "categories")},
    conditions=conditions,
    run=run,
    models={name: name for name in ("mean", "majority", *ESTIMATORS)},
    summary=summary,
    seeded_as=seeded_as,
    default_runs=20,
)
