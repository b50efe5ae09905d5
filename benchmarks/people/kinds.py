"""People who are added to a real crowd, and how they label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels
from benchmarks.honesty.crowds import draw_rows
from benchmarks.honesty.real import votes
from benchmarks.people.verdicts import Bools

TILT = np.exp(2.0)
COPY_NOISE = 0.05


@dataclass(frozen=True, eq=False)
class RealCrowd:
    """A real crowd, and what is known of it.

    Attributes
    ----------
    labels
        Their labels.
    is_fine
        Who may be copied, and must not be flagged: all but those known to be uninformative.
    right
        Each item's known class, or else its most frequent label.
    truth
        Each item's known class, -1 where it is unknown.
    """

    labels: Labels
    is_fine: Bools
    right: Codes
    truth: Codes

    @property
    def shares(self) -> Floats:
        """The shares of the real labels, items x categories."""
        counts = votes(self.labels)
        shares: Floats = counts / counts.sum(axis=1, keepdims=True)
        return shares


@dataclass(frozen=True, eq=False)
class Added:
    """The labels that the added people give, one entry per label; people are numbered from 0."""

    item: Codes
    person: Codes
    category: Codes


Labelling = Callable[[RealCrowd, Codes, Codes, np.random.Generator], Codes]
"""From a crowd, and the items and people of the labels to give, to the categories."""


def random(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """Every category is equally likely."""
    return rng.integers(crowd.labels.n_categories, size=item.size)


def repeated(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """Everybody repeats a category of their own, drawn at random."""
    own = rng.integers(crowd.labels.n_categories, size=int(person.max()) + 1)
    return own[person]


def serious(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """A label of somebody in the real crowd."""
    return draw_rows(crowd.shares, (item,), rng)


def mixed(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """Half of the people random, half repeated; on scales a third each of these and inverted."""
    behaviors: list[Labelling] = [random, repeated]
    if crowd.labels.scale.is_ordinal:
        behaviors.append(inverted)
    labels = [behavior(crowd, item, person, rng) for behavior in behaviors]
    return np.choose(person % len(behaviors), labels)


def inverted(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """Real labels on the reversed scale."""
    return crowd.labels.n_categories - 1 - serious(crowd, item, person, rng)


def half_careless(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """Every label is serious with probability 1/2, else random."""
    is_serious = rng.random(item.size) < 0.5
    honest, careless = serious(crowd, item, person, rng), random(crowd, item, person, rng)
    return np.where(is_serious, honest, careless)


def wrong(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """Real labels, exchanged by a derangement of everybody's own; on scales reversed."""
    n = int(person.max()) + 1
    if crowd.labels.scale.is_ordinal:
        return inverted(crowd, item, person, rng)
    exchanged = np.array([derangement(crowd.labels.n_categories, rng) for _ in range(n)])
    return exchanged[person, serious(crowd, item, person, rng)]


def wrong_alike(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """Real labels, exchanged by one derangement that all share."""
    exchanged = derangement(crowd.labels.n_categories, rng)
    return exchanged[serious(crowd, item, person, rng)]


def derangement(n: int, rng: np.random.Generator) -> Codes:
    """Return a permutation that leaves nothing in its place."""
    while True:
        drawn = rng.permutation(n)
        if n < 2 or (drawn != np.arange(n)).all():
            return drawn


def colluding(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """All give the same answer to an item: a wrong one, drawn at random."""
    n = crowd.labels.n_categories
    invented = (crowd.right + rng.integers(1, max(n, 2), size=crowd.right.size)) % n
    return invented[item]


def towards(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """Real labels, of which one category (everybody's own) weighs e^2 times as much."""
    return _tilted(TILT, crowd, item, person, rng)


def away(crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator) -> Codes:
    """Real labels, of which one category (everybody's own) weighs e^-2 times as much."""
    return _tilted(1 / TILT, crowd, item, person, rng)


def _tilted(
    factor: float, crowd: RealCrowd, item: Codes, person: Codes, rng: np.random.Generator
) -> Codes:
    n = crowd.labels.n_categories
    own = rng.integers(n, size=int(person.max()) + 1)[person]
    weights = crowd.shares[item]
    weights[np.arange(item.size), own] *= factor
    weights /= weights.sum(axis=1, keepdims=True)
    return draw_rows(weights, (np.arange(item.size),), rng)


def add_people(
    crowd: RealCrowd, labelling: Labelling, n_labels: Codes, rng: np.random.Generator
) -> Added:
    """Return the labels of people with so many labels each, on items drawn at random."""
    n_items = crowd.labels.n_items
    sizes = np.minimum(n_labels, n_items)
    item = np.concatenate([rng.choice(n_items, size=size, replace=False) for size in sizes])
    person = np.repeat(np.arange(sizes.size), sizes)
    return Added(item, person, labelling(crowd, item, person, rng))


def add_copies(crowd: RealCrowd, n_labels: Codes, rng: np.random.Generator) -> Added:
    """Return the labels of people who each copy one fine person, 5% of them random instead.

    The copied person has as many labels, or is the one with the most.
    """
    labels = crowd.labels
    of_person = labels.labels_per_annotator * crowd.is_fine
    items, people, categories = [], [], []
    for person, size in enumerate(n_labels.tolist()):
        enough = np.flatnonzero(of_person >= min(size, of_person.max()))
        own = np.flatnonzero(labels.annotator == rng.choice(enough))
        # Somebody with several labels of an item is copied once.
        _, first = np.unique(labels.item_of_label()[own], return_index=True)
        copied = rng.permutation(own[first])[:size]
        given = labels.category_of_label()[copied].astype(np.int64)
        noise = rng.integers(labels.n_categories, size=given.size)
        items.append(labels.item_of_label()[copied])
        people.append(np.full(copied.size, person))
        categories.append(np.where(rng.random(given.size) < COPY_NOISE, noise, given))
    return Added(np.concatenate(items), np.concatenate(people), np.concatenate(categories))


def with_people(labels: Labels, added: Added) -> Labels:
    """Return the labels of the real people, then those of the added ones."""
    n = int(added.person.max()) + 1
    ids = [*map(str, labels.annotators.to_pylist()), *(f"added {number}" for number in range(n))]
    return Labels.from_codes(
        np.concatenate([labels.item_of_label(), added.item]),
        np.concatenate([labels.annotator, labels.n_annotators + added.person]),
        np.concatenate([labels.category_of_label(), added.category]),
        items=labels.items,
        annotators=ids,
        scale=labels.scale,
    )
