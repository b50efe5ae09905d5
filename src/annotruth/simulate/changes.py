"""Simulated crowds in which some annotators turn bad, and of whom each label has a time."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels, Scale
from annotruth.observations.arrays import Covariates
from annotruth.simulate.crowds import (
    categories_at,
    check_choices,
    check_share,
    crowd,
    generator,
    one_right_label,
)

_BEHAVIORS = ("random", "repeated")
_START = np.datetime64("2024-05-01T09:00:00", "us")
_HOURS_BETWEEN = 2.0  # labels of an annotator, on average


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangingSimulation:
    """Simulated labels over time, with the truth they were drawn from.

    Arrays of annotators are in the order of ``labels.annotators``; those of labels are in the
    order of the layout of ``labels``.

    Attributes
    ----------
    labels
        The labels, with covariates ``time``, ``order`` (from 1) and ``seconds``.
    label
        The code of each item's right label, or of the mode of its distribution.
    distribution
        The probability of each category if a label is serious, items x categories.
    reliability, later
        The reliability of each annotator before a change, and after it if there is one.
    change
        How many labels each annotator gave before the change; -1 for those who do not change.
    serious
        Whether each label was serious.
    repeated
        The label that each annotator gives if not serious, with ``behavior="repeated"``.

    Examples
    --------
    >>> from annotruth import simulate
    >>> made = simulate.changing(n_items=40, n_annotators=10, seed=0)
    >>> sorted(made.labels.covariates.labels), len(made.change)
    (['order', 'seconds', 'time'], 10)
    """

    labels: Labels
    label: Codes
    distribution: Floats
    reliability: Floats
    later: Floats
    change: Codes
    serious: NDArray[np.bool_]
    repeated: Codes | None = None


def changing(
    *,
    n_items: int = 150,
    n_annotators: int = 25,
    n_categories: int = 5,
    labels_per_item: int | None = None,
    ordinal: bool = True,
    changing_share: float = 0.2,
    before: tuple[float, float] = (0.8, 1.0),
    after: tuple[float, float] = (0.0, 0.2),
    behavior: str = "random",
    fast: float = 1.0,
    seed: int | np.random.Generator = 0,
) -> ChangingSimulation:
    """Simulate annotators of whom some turn bad halfway through their labels.

    On an ordinal scale items are those of `crowd`; otherwise an item has one right label, which
    serious annotators give with probability 0.9, and any other alike. Annotators label their items
    in random order, an hour or so apart. Seconds per answer are log-normal.

    Parameters
    ----------
    n_items, n_annotators, n_categories, labels_per_item
        As in `crowd`.
    ordinal
        Whether categories have an order and opinions differ.
    changing_share
        The share of annotators who change, rounded to a whole number of them.
    before, after
        Reliabilities before and after a change are uniform between these two ends.
    behavior : {"random", "repeated"}
        How labels that are not serious arise.
    fast
        By what the median seconds of labels that are not serious are multiplied; 1: they take as
        long as others.
    seed
        The same seed gives the same labels, byte for byte.
    """
    check_choices({"behavior": _BEHAVIORS}, behavior=behavior)
    check_share(changing_share=changing_share)
    for low, high in (before, after):
        check_share(low=low, high=high)
    rng = generator(seed)
    base = crowd(
        n_items=n_items,
        n_annotators=n_annotators,
        n_categories=n_categories,
        labels_per_item=labels_per_item,
        spammer_share=0.0,
        seed=rng,
    )
    data = base.labels
    assert base.distribution is not None
    distribution, label = base.distribution, base.label
    if not ordinal:
        label, distribution = one_right_label(rng, n_items, n_categories, accuracy=0.9)
    item, annotator = data.item_of_label().astype(np.int64), data.annotator.astype(np.int64)
    n_labels = data.labels_per_annotator
    reliability = rng.uniform(*before, data.n_annotators)
    later = rng.uniform(*after, data.n_annotators)
    chosen = rng.permutation(data.n_annotators)[: round(changing_share * data.n_annotators)]
    change = np.full(data.n_annotators, -1)
    change[chosen] = n_labels[chosen] // 2
    position = _random_positions(rng, annotator, n_labels)
    changed = (change[annotator] >= 0) & (position >= change[annotator])
    serious = rng.random(len(item)) < np.where(changed, later[annotator], reliability[annotator])
    drawn = categories_at(rng.random(len(item)), distribution[item])
    repeated = rng.integers(n_categories, size=data.n_annotators)
    irregular = repeated[annotator]
    if behavior == "random":
        irregular = rng.integers(n_categories, size=len(item))
    scale = (
        data.scale if ordinal else Scale.nominal([f"class {n}" for n in range(1, n_categories + 1)])
    )
    labels = Labels.from_codes(
        item,
        annotator,
        np.where(serious, drawn, irregular),
        items=data.items,
        annotators=data.annotators,
        scale=scale,
    )
    columns = _time_columns(rng, position, serious, fast)
    nobody = np.empty(0, dtype=np.int64)
    return ChangingSimulation(
        labels=replace(
            labels, covariates=Covariates(labels=columns).take(labels.row, nobody, nobody)
        ),
        label=label,
        distribution=distribution,
        reliability=reliability,
        later=later,
        change=change,
        serious=serious[labels.row],
        repeated=repeated if behavior == "repeated" else None,
    )


def _random_positions(
    rng: np.random.Generator, annotator: Codes, n_labels: NDArray[np.int64]
) -> Codes:
    """Return the position of each label among its annotator's, from 0, in random order."""
    order = np.lexsort((rng.random(len(annotator)), annotator))
    position = np.empty(len(annotator), dtype=np.int64)
    position[order] = np.arange(len(annotator)) - np.repeat(
        np.cumsum(n_labels) - n_labels, n_labels
    )
    return position


def _time_columns(
    rng: np.random.Generator, position: Codes, serious: NDArray[np.bool_], fast: float
) -> dict[str, pa.Array]:
    """Return the time, order and seconds of each label."""
    hours = _HOURS_BETWEEN * (position + rng.random(len(position)))
    seconds = 8.0 * np.exp(0.4 * rng.standard_normal(len(position)))
    return {
        "time": pa.array(_START + (3.6e9 * hours).astype("timedelta64[us]")),
        "order": pa.array(position + 1.0),
        "seconds": pa.array(seconds * np.where(serious, 1.0, fast)),
    }
