"""Small random crowds, renamed and reordered, and how much the results of a model change."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tests.fuzz.checks import Failed

import annotruth as at
from annotruth.models.registry import MODELS, get_model
from annotruth.models.result import Fit

KINDS = ("one truth", "chance", "ties", "equal annotators", "equal items", "mirrored")
TOLERANCE = 1e-9


class Crowd(NamedTuple):
    """Labels as codes (item, annotator, category), and whether categories have an order."""

    kind: str
    rows: list[tuple[int, int, int]]
    n_categories: int
    ordinal: bool


class Renaming(NamedTuple):
    """The number in the name of every item, annotator and category, and the order of the rows."""

    item: np.ndarray
    annotator: np.ndarray
    category: np.ndarray
    row: np.ndarray

    @classmethod
    def none(cls, crowd: Crowd) -> Renaming:
        return cls(*map(np.arange, _sizes(crowd)))

    @classmethod
    def draw(cls, crowd: Crowd, rng: np.random.Generator) -> Renaming:
        drawn = cls(*map(rng.permutation, _sizes(crowd)))
        return drawn._replace(category=np.arange(crowd.n_categories)) if crowd.ordinal else drawn

    def apply(self, crowd: Crowd) -> list[tuple[str, str, Any]]:
        """Return the renamed labels."""
        rows = [crowd.rows[row] for row in self.row]
        return [
            (f"i{self.item[e]}", f"a{self.annotator[s]}", self.name_of(crowd, n))
            for e, s, n in rows
        ]

    def name_of(self, crowd: Crowd, n: int) -> Any:
        """Return the new name of a category."""
        return n + 1 if crowd.ordinal else f"c{self.category[n]}"


def _sizes(crowd: Crowd) -> tuple[int, int, int, int]:
    n_items, n_annotators = (1 + max(codes) for codes in list(zip(*crowd.rows, strict=True))[:2])
    return n_items, n_annotators, crowd.n_categories, len(crowd.rows)


def draw_crowd(rng: np.random.Generator) -> Crowd:
    """Return 4 to 40 items, 2 to 10 annotators and 2 to 6 categories, dense or sparse."""
    n_items, n_annotators = int(rng.integers(4, 41)), int(rng.integers(2, 11))
    n_categories = int(rng.integers(2, 7))
    kind = str(rng.choice(KINDS))
    truth = rng.integers(n_categories, size=n_items)
    labels = rng.integers(n_categories, size=(n_items, n_annotators))
    if kind != "chance":
        right = rng.random(labels.shape) < rng.uniform(0.3, 1.0, size=n_annotators)
        labels = np.where(right, truth[:, np.newaxis], labels)
    given = rng.random(labels.shape) < rng.choice([1.0, rng.uniform(0.2, 1.0)])
    given[np.arange(n_items), rng.integers(n_annotators, size=n_items)] = True
    if kind == "equal annotators":
        equal = rng.permutation(n_annotators)[: 1 + n_annotators // 2]
        labels[:, equal], given[:, equal] = labels[:, equal[:1]], True
    if kind == "equal items":
        labels[: n_items // 2], given[: n_items // 2] = labels[0], given[0]
    if kind == "ties":
        half = np.arange(n_annotators) % 2
        labels = (truth[:, np.newaxis] + half) % n_categories
    rows = [(int(e), int(s), int(labels[e, s])) for e, s in np.argwhere(given)]
    if kind == "mirrored":
        # The image exchanges categories 0 and 1, and the annotators of every pair.
        other = {0: 1, 1: 0}
        rows += [(e + n_items, s ^ 1, other.get(n, n)) for e, s, n in rows]
    return Crowd(kind, _compact(rows), n_categories, ordinal=bool(rng.integers(2)))


def _compact(rows: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the rows with codes without gaps for items and annotators."""
    items, annotators = (sorted({row[role] for row in rows}) for role in (0, 1))
    return [(items.index(e), annotators.index(s), n) for e, s, n in rows]


def results_of(
    model: str, crowd: Crowd, renaming: Renaming, **options: Any
) -> dict[str, np.ndarray]:
    """Return everything that a fit says, in the order of the codes and with the names as codes."""
    estimator = get_model(model)(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.AnnotruthWarning)
        fit = estimator.fit(renaming.apply(crowd)).result_
    data = fit.data
    item, annotator = (
        np.argsort([int(np.flatnonzero(numbers == int(name[1:]))[0]) for name in ids.to_pylist()])
        for ids, numbers in ((data.items, renaming.item), (data.annotators, renaming.annotator))
    )
    names = [str(name) for name in data.scale.names]
    of_name = {name: n for n, name in enumerate(names)}
    category = [
        of_name[name]
        for n in range(crowd.n_categories)
        if (name := str(renaming.name_of(crowd, n))) in of_name
    ]
    found = {"log_likelihood": np.array([fit.log_likelihood or 0.0])}
    for name, distribution in (("right", fit.distribution), ("other", fit.other_distribution)):
        if distribution is not None:
            found[name] = distribution.dense(len(names))[item][:, category]
    if fit.score is not None:
        found["score"] = fit.score[item]
    if fit.p_serious is not None:
        found["p_serious"] = fit.p_serious[_label_order(fit, renaming)]
    columns = {**fit.annotator_values(), **fit.item_columns}
    for name, values in columns.items():
        place = item if name in fit.item_columns else annotator
        found[name] = _plain(values, renaming, ordinal=crowd.ordinal)[place]
    pairs = np.indices((len(item), len(annotator))).reshape(2, -1)
    predicted = estimator.predict_proba(item[pairs[0]], annotator[pairs[1]])
    return {**found, "predicted": predicted[:, category]}


def _label_order(fit: Fit, renaming: Renaming) -> np.ndarray:
    """Return the place of each of the crowd's rows among the labels of a fit."""
    return np.argsort(renaming.row[fit.data.row])


def _plain(values: Any, renaming: Renaming, *, ordinal: bool) -> np.ndarray:
    """Return a column as numbers, or as text with the codes of categories for their names."""
    if isinstance(values, pa.Array):
        values = values.to_pylist()
    array = np.asarray(values)
    if array.dtype.kind != "U" or ordinal:
        return array
    code = {f"c{number}": f"c{n}" for n, number in enumerate(renaming.category)}
    texts = [re.sub(r"\bc\d+\b", lambda found: code[found[0]], text) for text in array]
    return np.array(["|".join(sorted(text.split("|"))) for text in texts])


def largest_change(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> dict[str, float]:
    """Return, for all that differs, the largest change; relative for numbers above 1."""
    assert before.keys() == after.keys()
    changes = {}
    for name, one in before.items():
        other = after[name]
        if one.dtype.kind in "fc":
            nan = np.isnan(one)
            change = np.abs(one - other) / np.maximum(1.0, np.abs(one))
            change = np.where(nan, np.where(np.isnan(other), 0.0, np.inf), change)
            largest = float(np.max(change, initial=0.0))
        else:
            largest = float((one != other).any())
        if largest:
            changes[name] = largest
    return changes


def change_of_crowd(model: str, seed: tuple[int, int], **options: Any) -> dict[str, float]:
    """Return how much the results change when the crowd of a seed is renamed and reordered."""
    rng = np.random.default_rng(seed)
    crowd = draw_crowd(rng)
    if get_model(model).capabilities.ordinal_only:
        crowd = crowd._replace(ordinal=True)
    renaming = Renaming.draw(crowd, rng)
    before = results_of(model, crowd, Renaming.none(crowd), **options)
    after = results_of(model, crowd, renaming, **options)
    return largest_change(before, after)


def renamed_crowd(rng: np.random.Generator, folder: Path) -> str:
    """Fit a random crowd and its renamed and reordered image with every model."""
    seed = (int(rng.integers(2**31)), 0)
    for model in MODELS:
        change = change_of_crowd(model, seed)
        if max(change.values(), default=0.0) > TOLERANCE:
            raise Failed(f"{model} depends on names or order, crowd {seed}: {change}")
    return f"crowd {seed}"
