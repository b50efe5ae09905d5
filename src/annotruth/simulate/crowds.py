"""Simulated labels with known truth: the generators of the paper's experiments.

Both draw the truth, the reliabilities, the assignment of items to annotators, and the labels, in
this order. With one seed, crowds that differ only in their behavior therefore have the same
items, annotators and serious labels, and crowds that differ only in their number of annotators
have the same items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import betainc

from annotruth.errors import InputError, did_you_mean, option, shown
from annotruth.io.content import available_memory
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels, Scale
from annotruth.observations.disk import format_size
from annotruth.observations.validate import check_seed, is_integer

# The basic behaviors, in the order of their codes; "mixed" combines them.
_BEHAVIORS = ("random", "repeated", "inverted")

CHOICES = {
    "behavior": (*_BEHAVIORS, "mixed"),
    "mixing": ("label", "annotator"),
    "gamma": ("rate", "scale"),
}
"""The values that options of generators may have."""

# Memory at the peak of `crowd` and `gaussian`, measured and rounded down.
_BYTES_PER_LABEL, _BYTES_PER_PROBABILITY, _BYTES_PER_ANNOTATOR = 100, 20, 50


_MOST = 10**9  # more are a mistake in typing, whatever the memory


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """Simulated labels with the truth they were drawn from.

    Arrays of annotators are in the order of ``labels.annotators``. Annotators who were assigned
    no item, as may happen in a sparse design, are left out.

    Attributes
    ----------
    labels
        The labels, item by item; items, annotators and categories are numbered from 1.
    distribution
        True distribution, items x categories; None where the truth is only a score.
    score
        True score of every item: the expectation of its distribution, or its Gaussian's mean.
    label
        Code (from 0) of every item's true category: the mode of its distribution (the first of
        equals), or the category nearest to its score.
    reliability
        Every annotator's probability of a serious label.
    behavior
        Every annotator's behavior when not serious: "random", "repeated", "inverted" or "mixed".
    repeated_label
        Code (from 0) of the label every annotator repeats if their behavior is "repeated".
    serious
        Whether each label was serious, in the order of the rows that ``labels`` was made from:
        by item, and within an item by annotator. ``serious[labels.row]`` is in the order of the
        codes in ``labels``.

    Examples
    --------
    >>> from annotruth import simulate
    >>> simulation = simulate.crowd(n_items=10, n_annotators=4, seed=0)
    >>> simulation.labels.n_labels, simulation.distribution.shape
    (40, (10, 5))
    """

    labels: Labels
    distribution: Floats | None
    score: Floats
    label: Codes
    reliability: Floats
    behavior: NDArray[np.str_]
    repeated_label: Codes
    serious: NDArray[np.bool_]


def crowd(
    *,
    n_items: int = 150,
    n_annotators: int = 25,
    n_categories: int = 5,
    behavior: str = "random",
    spammer_share: float = 0.2,
    labels_per_item: int | None = None,
    mixing: str = "label",
    seed: int | np.random.Generator = 0,
) -> Simulation:
    """Simulate labels of items whose truth is a categorical distribution (Exp1-a to Exp1-c).

    Item e's distribution theta_e is the mass of Beta(a, b) in equal bins, with a and b uniform on
    [1, 10].
    Annotator s is serious with probability eps_s: a serious label is drawn from theta_e, any
    other follows the annotator's behavior.

    Parameters
    ----------
    n_items, n_annotators, n_categories
        Size of the crowd and of its task.
    behavior : {"random", "repeated", "inverted", "mixed"}
        How labels that are not serious arise: any category, one fixed category per annotator,
        the serious label counted from the other end of the scale, or a mix of the three.
    spammer_share
        Share of annotators with eps uniform on [0, 0.5), rounded to a whole number of them
        (halves to the even one); that of the others is uniform on [0.5, 1].
    labels_per_item
        Number of annotators who label each item, drawn at random per item; None: all of them.
    mixing : {"label", "annotator"}
        Whether "mixed" draws one of the three for every label or for every annotator.
    seed
        The same seed gives the same labels, byte for byte.
    """
    check_choices(CHOICES, behavior=behavior, mixing=mixing)
    check_numbers(n_items, n_annotators, n_categories, labels_per_item, spammer_share)
    rng = generator(seed)

    alpha, beta = rng.uniform(1.0, 10.0, size=(2, n_items, 1))
    distribution = discretize(alpha, beta, n_categories)
    reliability = reliabilities(rng, n_annotators, spammer_share)
    annotator = assign(rng, n_items, n_annotators, labels_per_item)

    return draw_labels(
        rng,
        distribution=distribution,
        reliability=reliability,
        annotator=annotator,
        behavior=behavior,
        mixing=mixing,
    )


def draw_labels(
    rng: np.random.Generator,
    *,
    distribution: Floats,
    reliability: Floats,
    annotator: Codes,
    behavior: str = "random",
    mixing: str = "label",
    of_labels: Floats | None = None,
) -> Simulation:
    """Draw the labels of items from their distributions and the annotators' reliabilities.

    ``distribution`` is items x categories, ``annotator`` items x labels per item; ``of_labels``, items x
    labels x categories, are the distributions of labels where annotators' opinions differ. The others are
    as in `crowd`.
    """
    n_categories = distribution.shape[1]
    opinions = distribution[:, np.newaxis] if of_labels is None else of_labels
    return make_simulation(
        rng,
        annotator=annotator,
        serious_label=categories_at(rng.random(annotator.shape), opinions),
        n_categories=n_categories,
        reliability=reliability,
        behavior=behavior,
        mixing=mixing,
        distribution=distribution,
        score=distribution @ np.arange(1.0, n_categories + 1),
        label=distribution.argmax(axis=1),
    )


def categories_at(uniform: Floats, distribution: Floats) -> Codes:
    """Return the category at a quantile of each distribution, whose last axis are categories."""
    # One comparison per category, without a table of labels x categories.
    category = np.zeros(uniform.shape, dtype=np.int64)
    for below in np.moveaxis(np.cumsum(distribution, axis=-1), -1, 0)[:-1]:
        category += uniform >= below
    return category


def gaussian(
    *,
    n_items: int = 150,
    n_annotators: int = 25,
    n_categories: int = 5,
    behavior: str = "mixed",
    spammer_share: float = 0.25,
    labels_per_item: int | None = None,
    gamma: str = "rate",
    mixing: str = "label",
    seed: int | np.random.Generator = 0,
) -> Simulation:
    """Simulate labels of items whose truth is a continuous score (Exp1-d).

    Scores are uniform on [1, N]. A serious label is drawn from a Gaussian around the score, then
    rounded and clipped to 1..N. Each item's precision, one over the Gaussian's variance, is drawn
    from Gamma(10, 5). Annotators are those of `crowd`, as are the options not listed here.

    Parameters
    ----------
    gamma : {"rate", "scale"}
        Whether the 5 in Gamma(10, 5) is a rate (mean precision 2) or a scale (mean 50).
    """
    check_choices(CHOICES, behavior=behavior, mixing=mixing, gamma=gamma)
    check_numbers(n_items, n_annotators, n_categories, labels_per_item, spammer_share)
    rng = generator(seed)

    score = rng.uniform(1.0, n_categories, size=n_items)
    reliability = reliabilities(rng, n_annotators, spammer_share)
    annotator = assign(rng, n_items, n_annotators, labels_per_item)

    deviation = 1 / np.sqrt(rng.gamma(10.0, 1 / 5 if gamma == "rate" else 5.0, size=(n_items, 1)))
    opinion = score[:, np.newaxis] + deviation * rng.standard_normal(annotator.shape)

    return make_simulation(
        rng,
        annotator=annotator,
        serious_label=_nearest_category(opinion, n_categories),
        n_categories=n_categories,
        reliability=reliability,
        behavior=behavior,
        mixing=mixing,
        distribution=None,
        score=score,
        label=_nearest_category(score, n_categories),
    )


def make_simulation(
    rng: np.random.Generator,
    *,
    annotator: Codes,
    serious_label: Codes,
    n_categories: int,
    reliability: Floats,
    behavior: str,
    mixing: str,
    distribution: Floats | None,
    score: Floats,
    label: Codes,
) -> Simulation:
    """Replace labels that are not serious by the annotator's behavior and build the Simulation.

    `annotator` and `serious_label` are items x labels per item.
    """
    n_items, per_item = annotator.shape
    n_annotators = reliability.size
    serious = rng.random(annotator.shape) < reliability[annotator]
    repeated_label = rng.integers(n_categories, size=n_annotators)

    behavior_of_label: Codes | int
    if behavior != "mixed":
        names = np.full(n_annotators, behavior)
        behavior_of_label = _BEHAVIORS.index(behavior)
    elif mixing == "annotator":
        behavior_of_annotator = rng.integers(len(_BEHAVIORS), size=n_annotators)
        names = np.array(_BEHAVIORS)[behavior_of_annotator]
        behavior_of_label = behavior_of_annotator[annotator]
    else:
        names = np.full(n_annotators, behavior)
        behavior_of_label = rng.integers(len(_BEHAVIORS), size=annotator.shape)
    irregular = np.choose(
        behavior_of_label,  # in the order of _BEHAVIORS
        (
            rng.integers(n_categories, size=annotator.shape),
            repeated_label[annotator],
            n_categories - 1 - serious_label,
        ),
    )

    # Labels lists only annotators with a label.
    active, annotator_code = np.unique(annotator, return_inverse=True)
    labels = Labels.from_codes(
        np.repeat(np.arange(n_items), per_item),
        annotator_code.ravel(),
        np.where(serious, serious_label, irregular).ravel(),
        items=pa.array(np.arange(1, n_items + 1)),
        annotators=pa.array(active + 1),
        scale=Scale.ordinal(list(range(1, n_categories + 1))),
    )
    return Simulation(
        labels=labels,
        distribution=distribution,
        score=score,
        label=label,
        reliability=reliability[active],
        behavior=names[active],
        repeated_label=repeated_label[active],
        serious=serious.ravel(),
    )


def discretize(alpha: Floats, beta: Floats, n_categories: int) -> Floats:
    """Return the mass of Beta(alpha, beta) in equal bins; both are columns."""
    edges = np.arange(n_categories + 1) / n_categories
    # Rounding may give slightly negative masses where the tail is flat.
    mass = np.maximum(np.diff(betainc(alpha, beta, edges), axis=1), 0.0)
    normalised: Floats = mass / mass.sum(axis=1, keepdims=True)
    return normalised


def reliabilities(rng: np.random.Generator, n_annotators: int, spammer_share: float) -> Floats:
    """Return the annotators' reliabilities, in random order."""
    n_spammers = round(spammer_share * n_annotators)
    reliability = rng.random(n_annotators)
    reliability[:n_spammers] *= 0.5
    reliability[n_spammers:] = 0.5 + 0.5 * reliability[n_spammers:]
    return rng.permutation(reliability)


def assign(
    rng: np.random.Generator, n_items: int, n_annotators: int, labels_per_item: int | None
) -> Codes:
    """Return the codes of every item's annotators, ascending: items x labels per item."""
    per_item = n_annotators if labels_per_item is None else labels_per_item
    if per_item == n_annotators:
        return np.tile(np.arange(n_annotators), (n_items, 1))
    if 4 * per_item >= n_annotators:
        # A table of items x annotators is then at most four times as large as the labels.
        rank = rng.random((n_items, n_annotators))
        return np.sort(np.argpartition(rank, per_item, axis=1)[:, :per_item], axis=1)
    # Floyd's sampling without replacement, for all items at once and without extra memory: draw
    # from the first annotators; if that one is taken, the last of them is still free.
    chosen = np.empty((n_items, per_item), dtype=np.int64)
    for column in range(per_item):
        last = n_annotators - per_item + column
        drawn = rng.integers(last + 1, size=n_items)
        is_taken = (chosen[:, :column] == drawn[:, np.newaxis]).any(axis=1)
        chosen[:, column] = np.where(is_taken, last, drawn)
    return np.sort(chosen, axis=1)


def one_right_label(
    rng: np.random.Generator, n_items: int, n_categories: int, accuracy: float
) -> tuple[Codes, Floats]:
    """Return a right label of each item, and the distribution of serious labels around it."""
    right = rng.integers(n_categories, size=n_items)
    distribution = np.full((n_items, n_categories), (1.0 - accuracy) / (n_categories - 1))
    distribution[np.arange(n_items), right] = accuracy
    return right, distribution


def _nearest_category(score: Floats, n_categories: int) -> Codes:
    return np.clip(np.rint(score), 1, n_categories).astype(np.int64) - 1


def check_numbers(
    n_items: int, n_annotators: int, n_categories: int, per_item: int | None, spammer_share: object
) -> None:
    """Refuse sizes that no crowd can have, or that do not fit into memory."""
    check_counts(1, n_items=n_items, n_annotators=n_annotators)
    check_counts(2, n_categories=n_categories)
    check_per_item(n_annotators, labels_per_item=per_item)
    check_share(spammer_share=spammer_share)
    n_labels = n_items * (n_annotators if per_item is None else per_item)
    check_memory(
        _BYTES_PER_LABEL * n_labels
        + _BYTES_PER_PROBABILITY * n_items * n_categories
        + _BYTES_PER_ANNOTATOR * n_annotators
    )


def generator(seed: int | np.random.Generator) -> np.random.Generator:
    """Return the generator of random numbers of a seed, or the one that was given."""
    if isinstance(seed, np.random.Generator):
        return seed
    check_seed(seed)
    return np.random.default_rng(seed)


def check_choices(choices: Mapping[str, Sequence[str]], **given: str) -> None:
    """Refuse a value of an option that is not one of its choices."""
    for name, value in given.items():
        if value not in choices[name]:
            raise InputError(
                f"unknown {name} {shown(value)}: choose {', '.join(choices[name])}"
                f"{did_you_mean(value, choices[name])}"
            )


def check_counts(minimum: int, **given: object) -> None:
    """Refuse numbers of something that are not whole, below the minimum, or above a billion."""
    for name, count in given.items():
        if not (is_integer(count) and minimum <= count <= _MOST):
            raise InputError(
                f"{option(name)} is {shown(count)}: give a whole number from {minimum} to {_MOST:,}"
            )


def check_per_item(n_annotators: int, **given: int | None) -> None:
    """Refuse numbers of annotators per item that are not from 1 to all of them; None is all."""
    for name, count in given.items():
        if count is not None and not (is_integer(count) and 1 <= count <= n_annotators):
            raise InputError(
                f"{option(name)} is {shown(count)}: give a whole number from 1 to the number of "
                f"annotators ({n_annotators}), or leave it out for all"
            )


def check_share(**given: object) -> None:
    """Refuse shares outside 0 to 1."""
    for name, share in given.items():
        # Written as what is allowed, so that nan is refused too.
        if not (isinstance(share, Real) and 0 <= float(share) <= 1):
            raise InputError(f"{option(name)} is {shown(share)}: give a number from 0 to 1")


def check_range(**given: tuple[float, float]) -> None:
    """Refuse pairs that are not the lowest and the highest of shares."""
    for name, value in given.items():
        try:
            low, high = value
            is_valid = bool(0 <= low <= high <= 1)
        except (TypeError, ValueError):
            is_valid = False
        if not is_valid:
            raise InputError(f"{name} is {shown(value)}: give the lowest and highest, from 0 to 1")


def check_memory(n_bytes: int) -> None:
    """Refuse a crowd that needs more memory than there is, before any of it is drawn."""
    available = available_memory()
    if n_bytes > available:
        raise InputError(
            f"such a crowd needs about {format_size(n_bytes)} of memory, and {format_size(available)} "
            "are free: ask for fewer items, annotators, labels per item or categories"
        )
