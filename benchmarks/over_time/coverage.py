"""How often the 95% intervals of reliability over time cover the true reliability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import annotruth as at
from annotruth.kernels.arrays import Floats
from annotruth.observations import Labels

KINDS = ("constant", "drifts", "switches")
MIXES: Mapping[str, tuple[float, float, float]] = {
    "all are constant": (1.0, 0.0, 0.0),
    "30% change": (0.7, 0.15, 0.15),
}


def reliability_of_labels(
    rng: np.random.Generator, kind: NDArray[Any], annotator: NDArray[Any], position: Floats
) -> Floats:
    """Return the reliability at each label; ``position`` is from 0 to 1 among the annotator's.

    A quarter of constant annotators are spammers. Those who drift go in a straight line, and those who
    switch do it once, at any place between a fifth and four fifths.
    """
    n = len(kind)
    steady = np.where(rng.random(n) < 0.25, rng.uniform(0.0, 0.4, n), rng.uniform(0.6, 1.0, n))
    first, last = rng.uniform(0.7, 1.0, n), rng.uniform(0.0, 0.4, n)
    place = rng.uniform(0.2, 0.8, n)
    drifting = first[annotator] + (last - first)[annotator] * position
    switching = np.where(position < place[annotator], first[annotator], last[annotator])
    by_kind = np.stack([steady[annotator], drifting, switching])
    return np.asarray(by_kind[kind[annotator], np.arange(len(annotator))])


def crowd_with(options: Mapping[str, Any], shares: Floats, seed: int) -> tuple[Labels, Floats, Any]:
    """Return labels of annotators of all kinds, the reliability at each, and the kinds."""
    base = at.simulate.changing(**options, changing_share=0.0, seed=seed)
    rng = np.random.default_rng([seed, 1])
    data, order = base.labels, base.labels.covariates.labels["order"].to_numpy()
    item, annotator = data.item_of_label(), data.annotator.astype(np.int64)
    kind = rng.permutation(
        np.searchsorted(np.cumsum(shares), (np.arange(data.n_annotators) + 0.5) / data.n_annotators)
    )
    position = (order - 1.0) / (data.labels_per_annotator[annotator] - 1.0)
    reliability = reliability_of_labels(rng, kind, annotator, position)
    below = np.cumsum(base.distribution, axis=1)[item, :-1]
    drawn = (rng.random(len(item))[:, np.newaxis] >= below).sum(axis=1)
    irregular = rng.integers(data.n_categories, size=len(item))
    label = np.where(rng.random(len(item)) < reliability, drawn, irregular)
    made = Labels.from_codes(
        item,
        annotator,
        label,
        items=data.items,
        annotators=data.annotators,
        scale=data.scale,
    )
    covariates = replace(data.covariates, labels={"order": data.covariates.labels["order"]})
    nobody = np.empty(0, dtype=np.int64)
    made = replace(made, covariates=covariates.take(made.row, nobody, nobody))
    return made, reliability[made.row], kind


def identified(reliability: Floats, *, ordinal: bool, n_categories: int) -> Floats:
    """Return what labels can show of reliabilities.

    Where an item has one right label, which serious labels are in 90%, serious labels that are wrong
    look as if they were not serious.
    """
    chance = 1.0 / n_categories
    return reliability if ordinal else reliability * (0.9 - chance) / (1.0 - chance)


class Window(NamedTuple):
    """Windows of annotators' labels, one entry per window."""

    kind: NDArray[Any]
    covered: NDArray[Any]
    width: Floats
    error: Floats


def measure_windows(options: Mapping[str, Any], shares: Floats, seed: int) -> Window:
    """Return which windows' intervals cover the mean reliability of their labels."""
    labels, reliability, kind = crowd_with(options, shares, seed)
    reliability = identified(
        reliability, ordinal=options.get("ordinal", True), n_categories=labels.n_categories
    )
    table = at.fit(labels).further_table("over_time", "over_time")
    order = np.lexsort((labels.covariates.labels["order"].to_numpy(), labels.annotator))
    n_labels = table["n_labels"].to_numpy()
    begin = np.cumsum(n_labels) - n_labels
    true = np.add.reduceat(reliability[order], begin) / n_labels
    shown, low, high = (table[name].to_numpy() for name in ("reliability", "low", "high"))
    return Window(
        kind[labels.annotator[order][begin]],
        (low <= true) & (true <= high),
        high - low,
        shown - true,
    )


def coverage(crowds: Mapping[str, Mapping[str, Any]], runs: int, first_seed: int) -> Iterator[str]:
    """Return a table of how often intervals of windows cover the truth, by kind of annotator."""
    yield "| crowd | annotators | windows | covered | mean width | root mean square error |"
    yield "|---|---|---|---|---|---|"
    for name, options in crowds.items():
        for mix, shares in MIXES.items():
            found = [
                measure_windows(options, np.array(shares), seed)
                for seed in range(first_seed, first_seed + runs)
            ]
            each = Window(*map(np.concatenate, zip(*found, strict=True)))
            for code, kind in enumerate(KINDS):
                own = each.kind == code
                if own.any():
                    error = np.sqrt(np.mean(each.error[own] ** 2))
                    yield (
                        f"| {name}, {mix} | {kind} | {own.sum():,} | {each.covered[own].mean():.1%} | "
                        f"{each.width[own].mean():.2f} | {error:.3f} |"
                    )


class Places(NamedTuple):
    """Annotators of a crowd, one entry each."""

    changed: NDArray[Any]  # whether they switch
    found: NDArray[Any]  # whether a change was found
    error: (
        Floats  # labels between the switch and the nearest change that was found; infinite without
    )


def measure_places(options: Mapping[str, Any], seed: int) -> Places:
    """Fit a crowd of whom a fifth switch, at any place, and compare the changes with the truth."""
    labels, reliability, kind = crowd_with(options, np.array([0.8, 0.0, 0.2]), seed)
    n, changed = labels.n_annotators, kind == KINDS.index("switches")
    order = np.lexsort((labels.covariates.labels["order"].to_numpy(), labels.annotator))
    ends = np.cumsum(labels.labels_per_annotator)
    error = np.full(n, np.inf)
    ids = labels.annotators.to_pylist()
    table = at.fit(labels).further_table("over_time", "changes_over_time")
    for row in table.to_pylist():
        s = ids.index(row["annotator"])
        own = reliability[order[ends[s] - labels.labels_per_annotator[s] : ends[s]]]
        place = np.flatnonzero(np.diff(own))[:1] + 1
        distance = abs(int(place[0]) - row["n_before"]) if changed[s] and len(place) else n
        error[s] = min(error[s], distance)
    return Places(changed, np.isfinite(error), error)


def places(crowds: Mapping[str, Mapping[str, Any]], runs: int, first_seed: int) -> Iterator[str]:
    """Return a table of how well switches at any place are found, among spammers."""
    yield "| crowd | found | within 10 labels | within 5 | false alarms |"
    yield "|---|---|---|---|---|"
    for name, options in crowds.items():
        found = [measure_places(options, seed) for seed in range(first_seed, first_seed + runs)]
        each = Places(*map(np.concatenate, zip(*found, strict=True)))
        theirs = each.error[each.changed]
        yield (
            f"| {name} | {np.isfinite(theirs).mean():.0%} of {len(theirs)} | "
            f"{(theirs <= 10).mean():.0%} | {(theirs <= 5).mean():.0%} | "
            f"{each.found[~each.changed].mean():.1%} of {(~each.changed).sum()} |"
        )
