"""Real labels with some annotators replaced by spammers, reduced to a few votes per item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels

BEHAVIORS = ("random", "repeated", "inverted")


class Votes(NamedTuple):
    """Labels as codes, one entry per label."""

    item: Codes
    annotator: Codes
    category: Codes


class InjectedLabels(NamedTuple):
    """Labels with injected spammers, and whether each annotator is one."""

    labels: Labels
    is_spammer: NDArray[np.bool_]


def votes_of(labels: Labels) -> Votes:
    cell = labels.cell_of_label()
    return Votes(
        labels.item_of_cell()[cell],
        labels.annotator.astype(np.int64),
        labels.cell_category[cell].astype(np.int64),
    )


def mean_scores(labels: Labels) -> Floats:
    """Return the mean of all votes on every item."""
    votes = votes_of(labels)
    total = np.bincount(votes.item, labels.scale.values[votes.category])
    means: Floats = total / labels.labels_per_item
    return means


def inject_spammers(
    labels: Labels, behavior: str, rng: np.random.Generator, *, share: float, per_item: int
) -> InjectedLabels:
    """Replace a share of the annotators by spammers, and keep `per_item` votes per item.

    All labels of a spammer follow one behavior: "random", "repeated" (one category per
    annotator, drawn at random), "inverted", or with "mixed" one of the three, drawn per
    annotator.
    """
    votes = votes_of(labels)
    spammers = rng.permutation(labels.n_annotators)[: round(share * labels.n_annotators)]
    behavior_code = np.full(labels.n_annotators, -1)
    behavior_code[spammers] = (
        rng.integers(len(BEHAVIORS), size=spammers.size)
        if behavior == "mixed"
        else BEHAVIORS.index(behavior)
    )
    category = _replace_labels(votes, behavior_code, labels.n_categories, rng)
    kept = _sample_labels(votes.item, per_item, rng)

    # Labels lists only annotators with a label.
    active, annotator = np.unique(votes.annotator[kept], return_inverse=True)
    reduced = Labels.from_codes(
        votes.item[kept],
        annotator,
        category[kept],
        items=labels.items,
        annotators=labels.annotators.take(pa.array(active)),
        scale=labels.scale,
    )
    return InjectedLabels(reduced, behavior_code[active] >= 0)


def _replace_labels(
    votes: Votes, behavior_code: Codes, n_categories: int, rng: np.random.Generator
) -> Codes:
    """Return every label's category: the original one, or that of the annotator's behavior."""
    repeated = rng.integers(n_categories, size=behavior_code.size)
    return np.choose(
        behavior_code[votes.annotator] + 1,  # serious, then the order of BEHAVIORS
        (
            votes.category,
            rng.integers(n_categories, size=votes.category.size),
            repeated[votes.annotator],
            n_categories - 1 - votes.category,
        ),
    )


def _sample_labels(item: Codes, per_item: int, rng: np.random.Generator) -> Codes:
    """Return the positions of up to `per_item` random labels of every item."""
    order = rng.permutation(item.size)
    order = order[np.argsort(item[order], kind="stable")]
    by_item = item[order]
    rank = np.arange(item.size) - np.searchsorted(by_item, by_item)
    return order[rank < per_item]
