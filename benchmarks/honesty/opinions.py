"""Distributions of opinion against held-back labels of the same items, with clickers added."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels
from benchmarks.honesty.options import (
    PartOptions,
    PartTable,
    Target,
    TargetFigure,
    fit_model,
    probabilities,
)
from benchmarks.honesty.real import votes
from benchmarks.truth.sets import find_sets, load_set

SETS = ("hate-speech", "cf", "ms", "web")
DEFAULT_RUNS = 5
LEAST_LABELS = 4
CLICKER_SHARE = 0.25
FLOOR = 1e-3
# Pseudo-counts per class that leave-one-out chooses from.
PSEUDO_COUNTS = np.geomspace(0.01, 10.0, 13)
RAW, ADDITIVE, CHOSEN, TO_CROWD = (
    "raw shares",
    "smoothed, 1/K",
    "smoothed, leave-one-out",
    "smoothed to the crowd",
)
COMPARED = (RAW, ADDITIVE, CHOSEN, "gpm", "dawid-skene")


class HeldBack(NamedTuple):
    """Labels with clickers, and the votes that were held back, items x classes.

    Items are those of the labels; items of which nothing was held back have no votes.
    """

    labels: Labels
    votes: Codes


def hold_back(labels: Labels, rng: np.random.Generator) -> HeldBack:
    """Hold back half of every item's labels, rounded down, and add clickers to the rest.

    Only items with at least 4 labels lose some. The clickers are a quarter of all annotators. Each
    gives uniform labels to different items, drawn at random: as many as an annotator has left,
    where these annotators are spread evenly from the least to the most active. So clickers give
    about a quarter of the labels too.
    """
    item, category = labels.item_of_label(), labels.category_of_label()
    n_hidden = np.where(labels.labels_per_item >= LEAST_LABELS, labels.labels_per_item // 2, 0)
    is_hidden = _rank_within(item, rng) < n_hidden[item]
    held_back = np.zeros((labels.n_items, labels.n_categories), dtype=np.int64)
    np.add.at(held_back, (item[is_hidden], category[is_hidden]), 1)

    active, annotator = np.unique(labels.annotator[~is_hidden], return_inverse=True)
    n_clickers = round(active.size * CLICKER_SHARE / (1 - CLICKER_SHARE))
    spread = (np.arange(n_clickers) + rng.random()) * active.size / n_clickers
    n_labels = np.sort(np.bincount(annotator))[spread.astype(np.int64)]
    clicked = [rng.choice(labels.n_items, size=size, replace=False) for size in n_labels]
    with_clickers = Labels.from_codes(
        np.concatenate([item[~is_hidden], *clicked]),
        np.concatenate([annotator, active.size + np.repeat(np.arange(n_clickers), n_labels)]),
        np.concatenate(
            [category[~is_hidden], rng.integers(labels.n_categories, size=n_labels.sum())]
        ),
        items=pa.array(np.arange(labels.n_items)),
        annotators=pa.array(np.arange(active.size + n_clickers)),
        scale=labels.scale,
    )
    return HeldBack(with_clickers, held_back)


def _rank_within(item: NDArray[np.integer], rng: np.random.Generator) -> Codes:
    """Return the place of every label in a random order of its item's labels."""
    order = np.lexsort((rng.random(item.size), item))
    by_item = item[order]
    rank = np.empty(item.size, dtype=np.int64)
    rank[order] = np.arange(item.size) - np.searchsorted(by_item, by_item)
    return rank


def divergence(held_back: Codes, estimate: Floats) -> float:
    """Return the mean over items of KL(held-back shares || estimate).

    Estimates are floored at 0.001 and normalised again; ``0 log 0`` is 0. Items without held-back
    votes do not count.
    """
    has_votes = held_back.sum(axis=1) > 0
    shares = held_back[has_votes] / held_back[has_votes].sum(axis=1, keepdims=True)
    floored = np.maximum(estimate[has_votes], FLOOR)
    floored /= floored.sum(axis=1, keepdims=True)
    terms = shares * (np.log(np.where(shares > 0, shares, 1.0)) - np.log(floored))
    return float(terms.sum(axis=1).mean())


def smoothed_shares(counts: Codes, pseudo_counts: Floats) -> Floats:
    """Return the items' shares after pseudo-counts per class were added."""
    smoothed = counts + pseudo_counts
    shares: Floats = smoothed / smoothed.sum(axis=1, keepdims=True)
    return shares


def choose_smoothing(counts: Codes, base: Floats) -> float:
    """Return by how much to multiply the pseudo-counts: the best leave-one-out likelihood."""
    n_labels = counts.sum(axis=1, keepdims=True)

    def log_likelihood(scale: float) -> float:
        rest = np.maximum(counts - 1, 0) + scale * base
        return float((counts * np.log(rest / (n_labels - 1 + scale * base.sum()))).sum())

    return float(max(PSEUDO_COUNTS, key=log_likelihood))


def opinion_shares(fit: Fit) -> Floats:
    """Return the fit's distributions of opinion, items x classes, or else its probabilities."""
    try:
        table = fit.distributions("opinion")
    except (TypeError, AnnotruthError):  # a model without distributions of opinion
        return probabilities(fit)
    data = fit.data
    item = {name: code for code, name in enumerate(data.items.to_pylist())}
    label = data.scale.codes_of(pa.array(np.asarray(table["label"])))
    shares = np.zeros((data.n_items, data.n_categories))
    shares[[item[name] for name in np.asarray(table["item"]).tolist()], label] = table["p"]
    return shares


def estimates(labels: Labels, model: str) -> dict[str, Floats]:
    """Return every method's estimate of the items' distributions of opinion."""
    counts = votes(labels)
    n_classes = labels.n_categories
    uniform = np.ones(n_classes)
    crowd = n_classes * (counts.sum(axis=0) + 1 / n_classes) / (labels.n_labels + 1)
    found: dict[str, Callable[[], Floats]] = {
        model: lambda: opinion_shares(fit_model(labels, model)),
        RAW: lambda: counts / counts.sum(axis=1, keepdims=True),
        ADDITIVE: lambda: smoothed_shares(counts, uniform / n_classes),
        CHOSEN: lambda: smoothed_shares(counts, choose_smoothing(counts, uniform) * uniform),
        TO_CROWD: lambda: smoothed_shares(counts, choose_smoothing(counts, crowd) * crowd),
        "gpm": lambda: probabilities(fit_model(labels, "gpm")),
        "dawid-skene": lambda: probabilities(fit_model(labels, "dawid-skene")),
    }
    return {name: estimate() for name, estimate in found.items()}


def opinions(options: PartOptions) -> list[PartTable]:
    """Compare the distributions of opinion with held-back votes."""
    runs = options.runs_or(DEFAULT_RUNS)
    rows: list[tuple[tuple[str, str], list[TargetFigure | str]]] = []
    for folder in find_sets(options.data(), SETS):
        labels = load_set(folder, "nominal").labels
        results: dict[str, list[float]] = {}
        for run in range(runs):
            rng = np.random.default_rng([options.seed, run])
            held_back = hold_back(labels, rng)
            for name, estimate in estimates(held_back.labels, options.model).items():
                results.setdefault(name, []).append(divergence(held_back.votes, estimate))
        best = min(np.mean(results[name]) for name in COMPARED if name != options.model)
        for name, values in results.items():
            target = Target(high=float(best)) if name == options.model else None
            error = np.std(values, ddof=1) / np.sqrt(runs) if runs > 1 else np.nan
            mean = TargetFigure(float(np.mean(values)), target, 4)
            rows.append(((folder.name, name), [mean, f"{error:.4f}"]))
    return [
        PartTable(
            title=f"Opinions: {options.model}",
            description=(
                f"Half of the labels of every item with at least {LEAST_LABELS} is held back; "
                f"clickers, {CLICKER_SHARE:.0%} of the annotators with about that share of the "
                "labels, are added to the rest. Mean over items of KL(held-back shares || "
                f"estimate), estimates floored at {FLOOR:g} and normalised; mean of {runs} runs "
                "and its standard error. Target: below raw and smoothed shares, GPM and "
                f"Dawid-Skene. '{TO_CROWD}' adds pseudo-counts in proportion to the crowd's shares, "
                "for information."
            ),
            heads=("labels", "estimate"),
            columns=("KL", "±"),
            rows=rows,
        )
    ]
