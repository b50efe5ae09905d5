"""What annotators did, held against what was recovered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.result import Fit


@dataclass(frozen=True, eq=False)
class Bins:
    """Categories, few enough to draw: the same ones, or neighbours and rare ones together.

    Attributes
    ----------
    names
        What each bin holds.
    of
        The bin of each category.
    first
        One category of each bin, whose colour it bears.
    """

    names: list[str]
    of: Codes
    first: Codes

    def __len__(self) -> int:
        return len(self.names)


def bins_of(labels: Labels, most: int) -> Bins:
    """Put categories into at most ``most`` bins: neighbours if ordinal, else the rare ones."""
    n, names = labels.n_categories, labels.scale.names
    if n <= most:
        return Bins(names, np.arange(n), np.arange(n))
    if labels.scale.is_ordinal:
        of = np.arange(n) * most // n
        first = np.searchsorted(of, np.arange(most))
        last = np.append(first[1:], n) - 1
        return Bins(
            [f"{names[a]} to {names[b]}" for a, b in zip(first, last, strict=True)], of, first
        )
    counts = np.bincount(labels.cell_category, np.diff(labels.cell_ptr), n)
    common = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
    of = np.full(n, most - 1)
    of[common] = np.arange(most - 1)
    rest = int(np.flatnonzero(of == most - 1)[0])
    told = [names[k] for k in common] + [f"{n - most + 1:,} others"]
    return Bins(told, of, np.append(common, rest))


@dataclass(frozen=True, eq=False)
class Consensus:
    """A fit's labels beside the recovered label of their items, one entry a label."""

    fit: Fit

    @cached_property
    def truth(self) -> Codes:
        """The code of each item's recovered label; of a score, the category nearest to it."""
        fit = self.fit
        if fit.label is not None:
            return fit.label.astype(np.int64)
        assert fit.expectation is not None  # a model gives one or the other
        values = fit.data.scale.values
        middles = (values[1:] + values[:-1]) / 2
        return np.searchsorted(middles, fit.expectation).astype(np.int64)

    @cached_property
    def item(self) -> Codes:
        """The item of each label."""
        return self.fit.data.item_of_cell()[self.fit.data.cell_of_label()]

    @cached_property
    def category(self) -> NDArray[np.int32]:
        """The category that each label names."""
        return self.fit.data.cell_category[self.fit.data.cell_of_label()]

    @cached_property
    def matches(self) -> Floats:
        """The share of each annotator's labels that are the recovered one, their own included."""
        data = self.fit.data
        same = self.category == self.truth[self.item]
        return np.bincount(data.annotator, same, data.n_annotators) / data.labels_per_annotator

    def confusion(self, bins: Bins) -> Codes:
        """Count each annotator's labels: annotators x recovered bin x given bin."""
        data, n = self.fit.data, len(bins)
        recovered, given = bins.of[self.truth[self.item]], bins.of[self.category]
        place = (data.annotator.astype(np.int64) * n + recovered) * n + given
        counts = np.bincount(place, minlength=data.n_annotators * n * n)
        return counts.reshape(data.n_annotators, n, n)

    def vote_entropy(self) -> Floats:
        """Return the entropy in nats of each item's observed shares."""
        data = self.fit.data
        votes = np.diff(data.cell_ptr)
        item = data.item_of_cell()
        share = votes / data.labels_per_item[item]
        # + 0.0 turns -0.0 into 0.0.
        return np.asarray(np.bincount(item, -share * np.log(share), data.n_items) + 0.0, float)

    def difficulty(self) -> Floats:
        """Return each item's entropy: of its distribution, or of its votes where it has none."""
        theta = self.fit.distribution
        return self.vote_entropy() if theta is None else theta.entropy()
