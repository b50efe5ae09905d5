"""Means over sets, differences with a bootstrap over families, and files of the results."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annotruth.io.atomic import atomic_write
from annotruth.kernels.arrays import Floats
from annotruth.paper.tables import markdown_table
from benchmarks.truth.scoring import Score
from benchmarks.truth.sets import TruthSet

N_DRAWS = 10_000

MEASURES = {
    "accuracy": "accuracy",
    "nll": "negative log-likelihood",
    "ece": "calibration error",
    "brier": "Brier score",
    "not_given": "label not given by anybody, %",
    "seconds": "seconds",
}
_COMPARED = ("accuracy", "nll", "ece", "brier")

Scores = Mapping[str, Mapping[str, Score]]
"""By model, then by set."""


class Difference(NamedTuple):
    """A mean difference over sets with its 95% interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


def mean_over_sets(scores: Mapping[str, Score], measure: str) -> float | None:
    """Return a model's mean over sets; None if it lacks the measure on one of them."""
    values = [getattr(score, measure) for score in scores.values()]
    return None if not values or None in values else float(np.mean(values))


def complete(scores: Scores, sets: Sequence[TruthSet]) -> dict[str, Mapping[str, Score]]:
    """Return the models that were fitted to every set: only their means can be compared."""
    return {model: found for model, found in scores.items() if len(found) == len(sets)}


def difference(
    values: Floats, families: Sequence[str], *, n_draws: int = N_DRAWS, seed: int = 0
) -> Difference:
    """Return the mean of the differences of sets with a bootstrap interval over families.

    Every draw takes as many families as there are, with replacement, and the mean over all of
    their sets. The interval is from the 2.5th to the 97.5th percentile of these means.
    """
    _, code = np.unique(families, return_inverse=True)
    sums, n_sets = np.bincount(code, values), np.bincount(code)
    drawn = np.random.default_rng(seed).integers(len(sums), size=(n_draws, len(sums)))
    means = sums[drawn].sum(axis=1) / n_sets[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(float(np.mean(values)), float(low), float(high))


def differences(
    scores: Scores, sets: Sequence[TruthSet], reference: str
) -> dict[str, dict[str, Difference]]:
    """Return every model's differences to a reference model, by model and measure."""
    whole = complete(scores, sets)
    if reference not in whole:
        return {}
    families = [one.family for one in sets]
    result: dict[str, dict[str, Difference]] = {}
    for model in whole:
        for measure in _COMPARED if model != reference else ():
            pairs = [
                (getattr(whole[model][one.name], measure), getattr(whole[reference][one.name], measure))
                for one in sets
            ]  # fmt: skip
            if all(a is not None and b is not None for a, b in pairs):
                values = np.array([a - b for a, b in pairs])
                result.setdefault(model, {})[measure] = difference(values, families)
    return result


def mean_table(scores: Scores, sets: Sequence[TruthSet]) -> str:
    """Return one row per model: its means over the sets."""
    body = [
        [model, *(_cell(mean_over_sets(found, measure), measure) for measure in MEASURES)]
        for model, found in complete(scores, sets).items()
    ]
    return markdown_table(["model", *MEASURES.values()], body, n_left=1)


def set_table(scores: Scores, sets: Sequence[TruthSet], measure: str) -> str:
    """Return one row per model, one column per set."""
    body = [
        [
            model,
            *(_cell(getattr(found.get(one.name), measure, None), measure) for one in sets),
            _cell(mean_over_sets(found, measure) if len(found) == len(sets) else None, measure),
        ]
        for model, found in scores.items()
    ]
    return markdown_table(["model", *(one.name for one in sets), "mean"], body, n_left=1)


def difference_table(found: Mapping[str, Mapping[str, Difference]]) -> str:
    """Return one row per model: differences to the reference with 95% intervals."""
    body = [
        [model, *(str(row[measure]) if measure in row else "" for measure in _COMPARED)]
        for model, row in found.items()
    ]
    return markdown_table(["model", *(MEASURES[name] for name in _COMPARED)], body, n_left=1)


def set_description(sets: Sequence[TruthSet]) -> str:
    """Return one row per set: its sizes and its family."""
    body = [
        [one.name, f"{data.n_labels:,}", f"{data.n_items:,}", f"{data.n_annotators:,}",
         str(data.n_categories), f"{len(one.item):,}", one.family]
        for one in sets for data in [one.labels]
    ]  # fmt: skip
    head = ["set", "labels", "items", "annotators", "classes", "known", "family"]
    return markdown_table(head, body, n_left=1)


def write_results(
    folder: Path, scores: Scores, sets: Sequence[TruthSet],
    found: Mapping[str, Mapping[str, Difference]], about: Mapping[str, Any],
) -> None:  # fmt: skip
    """Write results.csv, one row per set and model, and results.json with everything."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"set": name, "model": model, **{key: getattr(score, key) for key in MEASURES}}
        for model, by_set in scores.items()
        for name, score in by_set.items()
    ]
    with atomic_write(folder / "results.csv") as path, path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["set", "model", *MEASURES])
        writer.writeheader()
        writer.writerows(rows)
    bins = {
        model: {
            name: {key: values.tolist() for key, values in score.bins._asdict().items()}
            for name, score in by_set.items()
            if score.bins is not None
        }
        for model, by_set in scores.items()
    }
    means = {
        model: {key: mean_over_sets(by_set, key) for key in MEASURES}
        for model, by_set in complete(scores, sets).items()
    }
    content = {
        **about,
        "families": {one.name: one.family for one in sets},
        "scores": rows,
        "means": means,
        "differences": {
            model: {key: value._asdict() for key, value in row.items()}
            for model, row in found.items()
        },
        "calibration": bins,
    }
    with atomic_write(folder / "results.json") as path:
        path.write_text(json.dumps(content, indent=1) + "\n")


def _cell(value: float | None, measure: str) -> str:
    if value is None:
        return ""
    if measure == "not_given":
        return f"{100 * value:.2f}"
    return f"{value:.2f}" if measure == "seconds" else f"{value:.4f}"
