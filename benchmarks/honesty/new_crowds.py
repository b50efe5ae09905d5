"""Eight kinds of crowds to measure intervals on.

They were written before any model was fitted to them, and no model is tuned to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth import simulate
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels, Scale
from annotruth.simulate import Simulation
from benchmarks.honesty.crowds import AnyCodes, class_scale, draw_rows

COPIED_SHARE = 0.6
N_COPYING_PAIRS = 5


class CrowdTruth(NamedTuple):
    """Labels, and the true values that intervals should cover.

    Attributes
    ----------
    labels
        The labels.
    reliability
        Every annotator's probability that a label is serious: drawn from the item's distribution
        of serious labels, rather than from an irregular behavior. Where it changes over time, the
        mean over the annotator's labels.
    score
        The expectation of every item's distribution of serious labels; None for classes.
    """

    labels: Labels
    reliability: Floats
    score: Floats | None


def confusable_classes(seed: int) -> CrowdTruth:
    """Return labels of 5 classes, of which two pairs are often confused by serious annotators."""
    rows = np.full((5, 5), 0.05)
    for one, other in ((0, 1), (2, 3)):
        rows[one, other] = rows[other, one] = 0.25
    np.fill_diagonal(rows, 0.0)
    np.fill_diagonal(rows, 1 - rows.sum(axis=1))
    prior = np.full(5, 0.2)
    size = simulate.crowd(n_items=200, n_annotators=30, labels_per_item=6, seed=seed)
    return _classes(size, prior, rows, seed)


def rare_class(seed: int) -> CrowdTruth:
    """Return labels of 4 classes, of which one has 2% of the items."""
    rows = np.full((4, 4), 0.05) + 0.8 * np.eye(4)
    prior = np.array([0.5, 0.3, 0.18, 0.02])
    size = simulate.crowd(
        n_items=500, n_annotators=40, n_categories=4, labels_per_item=5, seed=seed
    )
    return _classes(size, prior, rows, seed)


def few_annotators(seed: int) -> CrowdTruth:
    """Return votes of 5 annotators, of different behaviors, on 600 items each."""
    return _votes(
        simulate.crowd(n_items=600, n_annotators=5, behavior="mixed", mixing="annotator", seed=seed)
    )


def five_labels_each(seed: int) -> CrowdTruth:
    """Return votes of 300 annotators with about 5 labels each."""
    return _votes(
        simulate.crowd(
            n_items=300,
            n_annotators=300,
            labels_per_item=5,
            behavior="mixed",
            mixing="annotator",
            seed=seed,
        )
    )


def three_categories(seed: int) -> CrowdTruth:
    """Return votes on a scale of 3."""
    return _votes(
        simulate.crowd(
            n_items=200,
            n_annotators=25,
            n_categories=3,
            labels_per_item=6,
            behavior="mixed",
            mixing="annotator",
            seed=seed,
        )
    )


def lazy_community(seed: int) -> CrowdTruth:
    """Return votes of a crowd of which 40% often give the same middle category."""
    crowd = simulate.crowd(n_annotators=30, spammer_share=0.4, labels_per_item=8, seed=seed)
    rng = np.random.default_rng([seed, 1])
    annotator = crowd.labels.annotator
    lazy = crowd.reliability[annotator] < 0.5
    irregular = np.where(lazy, 2, rng.integers(5, size=annotator.size))
    return _replaced(crowd, crowd.reliability[annotator], irregular, rng)


def drifting(seed: int) -> CrowdTruth:
    """Return votes of annotators whose reliability changes evenly from the first item to the last."""
    crowd = simulate.crowd(n_items=200, labels_per_item=8, seed=seed)
    rng = np.random.default_rng([seed, 1])
    labels = crowd.labels
    start, end = rng.uniform(0.5, 1.0, size=labels.n_annotators), rng.random(labels.n_annotators)
    time = labels.item_of_label() / (labels.n_items - 1)
    p_serious = start[labels.annotator] + (end - start)[labels.annotator] * time
    return _replaced(crowd, p_serious, rng.integers(5, size=labels.n_labels), rng)


def copying_pairs(seed: int) -> CrowdTruth:
    """Return votes in which 5 of 20 annotators copy 60% of their labels from another one each.

    A copied label is serious if the original is.
    """
    crowd = simulate.crowd(n_annotators=20, seed=seed)
    labels, rng = crowd.labels, np.random.default_rng([seed, 1])
    given = np.empty((labels.n_items, labels.n_annotators), dtype=np.int64)
    given[labels.item_of_label(), labels.annotator] = labels.category_of_label()
    reliability = crowd.reliability.copy()
    for original, copier in np.arange(2 * N_COPYING_PAIRS).reshape(-1, 2):
        copied = rng.random(labels.n_items) < COPIED_SHARE
        given[copied, copier] = given[copied, original]
        reliability[copier] = (
            COPIED_SHARE * reliability[original] + (1 - COPIED_SHARE) * reliability[copier]
        )
    category = given[labels.item_of_label(), labels.annotator]
    return CrowdTruth(_relabelled(labels, category, labels.scale), reliability, crowd.score)


NEW_CROWDS: dict[str, Callable[[int], CrowdTruth]] = {
    "confusable classes": confusable_classes,
    "rare class": rare_class,
    "few annotators": few_annotators,
    "5 labels per annotator": five_labels_each,
    "3 categories": three_categories,
    "lazy community": lazy_community,
    "drifting reliability": drifting,
    "copying pairs": copying_pairs,
}


def _votes(crowd: Simulation) -> CrowdTruth:
    return CrowdTruth(crowd.labels, crowd.reliability, crowd.score)


def _classes(size: Simulation, prior: Floats, rows: Floats, seed: int) -> CrowdTruth:
    """Return classes by the annotators of a simulation.

    A serious label is drawn from the row of the item's class. Of the others, half of the
    annotators give any class and half always the same.
    """
    labels, rng = size.labels, np.random.default_rng([seed, 1])
    n_classes = prior.size
    truth = rng.choice(n_classes, size=labels.n_items, p=prior)
    serious_label = draw_rows(rows, (truth[labels.item_of_label()],), rng)
    repeats = rng.random(labels.n_annotators) < 0.5
    irregular = np.where(
        repeats[labels.annotator],
        size.repeated_label[labels.annotator],
        rng.integers(n_classes, size=labels.n_labels),
    )
    is_serious: NDArray[np.bool_] = size.serious[labels.row]
    category = np.where(is_serious, serious_label, irregular)
    return CrowdTruth(_relabelled(labels, category, class_scale(n_classes)), size.reliability, None)


def _replaced(
    crowd: Simulation, p_serious: Floats, irregular: Codes, rng: np.random.Generator
) -> CrowdTruth:
    """Return votes on the items of a simulation, drawn again."""
    labels = crowd.labels
    assert crowd.distribution is not None
    serious_label = draw_rows(crowd.distribution, (labels.item_of_label(),), rng)
    category = np.where(rng.random(labels.n_labels) < p_serious, serious_label, irregular)
    reliability = np.bincount(labels.annotator, p_serious) / labels.labels_per_annotator
    return CrowdTruth(_relabelled(labels, category, labels.scale), reliability, crowd.score)


def _relabelled(labels: Labels, category: AnyCodes, scale: Scale) -> Labels:
    return Labels.from_codes(
        labels.item_of_label(),
        labels.annotator,
        category,
        items=labels.items,
        annotators=labels.annotators,
        scale=scale,
    )
