"""Real labels with some annotators made spammers, and only a few votes an item kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels

BEHAVIORS = ("random", "repeated", "inverted")


class Votes(NamedTuple):
    """Labels as codes, one entry a label."""

    item: Codes
    annotator: Codes
    category: Codes


class Spoiled(NamedTuple):
    """Labels after spammers came in, and whether each annotator is one."""

    labels: Labels
    spammer: NDArray[np.bool_]


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


def inject(
    labels: Labels, behavior: str, rng: np.random.Generator, *, share: float, per_item: int
) -> Spoiled:
    """Replace a share of the annotators by spammers, and keep `per_item` votes an item.

    A spammer labels every item by one behavior: "random", "repeated" (one category, drawn for
    each annotator), "inverted", or with "mixed" one of the three, drawn for each annotator.
    """
    votes = votes_of(labels)
    spammers = rng.permutation(labels.n_annotators)[: round(share * labels.n_annotators)]
    kind = np.full(labels.n_annotators, -1)
    kind[spammers] = (
        rng.integers(len(BEHAVIORS), size=spammers.size)
        if behavior == "mixed"
        else BEHAVIORS.index(behavior)
    )
    spoiled = _predict_proba(votes, kind, labels.n_categories, rng)
    kept = _keep(votes.item, per_item, rng)

    # Labels lists only those who gave one, so whoever lost all votes leaves here.
    active, annotator = np.unique(votes.annotator[kept], return_inverse=True)
    thinned = Labels.from_codes(
        votes.item[kept],
        annotator,
        spoiled[kept],
        items=labels.items,
        annotators=labels.annotators.take(pa.array(active)),
        scale=labels.scale,
    )
    return Spoiled(thinned, kind[active] >= 0)


def _predict_proba(votes: Votes, kind: Codes, n_categories: int, rng: np.random.Generator) -> Codes:
    """Return every label's category: the given one, or what the annotator's behavior makes it."""
    repeated = rng.integers(n_categories, size=kind.size)
    return np.choose(
        kind[votes.annotator] + 1,  # serious, then the order of BEHAVIORS
        (
            votes.category,
            rng.integers(n_categories, size=votes.category.size),
            repeated[votes.annotator],
            n_categories - 1 - votes.category,
        ),
    )


def _keep(item: Codes, per_item: int, rng: np.random.Generator) -> Codes:
    """Draw up to `per_item` labels of every item."""
    order = rng.permutation(item.size)
    order = order[np.argsort(item[order], kind="stable")]
    by_item = item[order]
    rank = np.arange(item.size) - np.searchsorted(by_item, by_item)
    return order[rank < per_item]
