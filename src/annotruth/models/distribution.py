"""Each item's distribution over the categories, stored where it is not zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.labels import Labels
from annotruth.models.entropy import entr

_ITEMS = 1 << 18  # how many are worked on at a time


@dataclass(frozen=True, eq=False)
class Distribution:
    """Categorical distributions of the items, in rows of different length.

    Item e gives ``probability[j]`` to ``category[j]`` for j in ``ptr[e]:ptr[e+1]``, categories
    rising; the rest have probability 0. No item is without a category.
    """

    ptr: NDArray[np.int64]
    category: NDArray[np.int32]
    probability: Floats

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @classmethod
    def of_cells(cls, labels: Labels, probability: Floats) -> Distribution:
        """Take one probability a cell; an item of known truth is certain of it."""
        if not (labels.known >= 0).any():
            return cls(labels.item_ptr, labels.cell_category, probability)
        cells = cls(labels.item_ptr, labels.cell_category, probability)
        return cls._joined(
            [cells.part(at)._certain_of(labels.known[at]) for at in slices(labels.n_items, _ITEMS)]
        )

    @classmethod
    def of_dense(cls, theta: Floats) -> Distribution:
        """Take items x categories, leaving out the zeros; no item may be zero throughout."""
        return cls._joined([_without_zeros(theta[at]) for at in slices(len(theta), _ITEMS)])

    @classmethod
    def _joined(cls, parts: Sequence[Distribution]) -> Distribution:
        lengths = [np.zeros(1, dtype=np.int64), *(np.diff(part.ptr) for part in parts)]
        return cls(
            np.cumsum(np.concatenate(lengths)),
            np.concatenate([part.category for part in parts]),
            np.concatenate([part.probability for part in parts]),
        )

    def _certain_of(self, truth: NDArray[np.int32]) -> Distribution:
        """Give the items of known truth, which is not -1, all probability there."""
        known, item = np.flatnonzero(truth >= 0), self.item()
        open_ = truth[item] < 0
        item = np.concatenate([item[open_], known])
        order = np.argsort(item, kind="stable")
        category = np.concatenate([self.category[open_], truth[known]])
        probability = np.concatenate([self.probability[open_], np.ones(len(known))])
        ptr = np.searchsorted(item[order], np.arange(len(self) + 1))
        return Distribution(ptr.astype(np.int64), category[order], probability[order])

    def part(self, at: slice) -> Distribution:
        """Take the distributions of some items in a row."""
        ptr = self.ptr[at.start : at.stop + 1]
        entries = slice(ptr[0], ptr[-1])
        return Distribution(ptr - ptr[0], self.category[entries], self.probability[entries])

    def _by_parts(self, read: Callable[[Distribution], NDArray[Any]]) -> NDArray[Any]:
        """Read something off every item, with scratch arrays for a part of them at a time."""
        return np.concatenate([read(self.part(at)) for at in slices(len(self), _ITEMS)])

    def item(self) -> Codes:
        """Name the item of every entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.ptr))

    def confidence(self) -> Floats:
        """Return the probability of each item's leading category."""
        return self._by_parts(_largest)

    def mode(self) -> NDArray[np.int32]:
        """Return each item's leading category; an exact tie goes to the first on the scale."""
        return self._by_parts(_leading)

    def expectation(self, values: Floats) -> Floats:
        """Return each item's mean, the sum of n * theta[n] with n the category's value."""
        return self._by_parts(
            lambda part: np.add.reduceat(part.probability * values[part.category], part.ptr[:-1])
        )

    def entropy(self) -> Floats:
        """Return each item's entropy in nats: 0 when all agree, log N when anything goes."""
        return self._by_parts(
            lambda part: np.add.reduceat(entr(part.probability), part.ptr[:-1]) + 0.0  # no -0.0
        )

    def rows(self, item: Codes, n_categories: int) -> Floats:
        """Write the distributions of some items out, one row each."""
        return self.take(item).dense(n_categories)

    def take(self, item: Codes) -> Distribution:
        """Take the distributions of some items, in the order they are named."""
        n = self.ptr[item + 1] - self.ptr[item]
        ends = np.cumsum(n)
        entry = np.arange(n.sum()) + np.repeat(self.ptr[item] - (ends - n), n)
        return Distribution(np.append(0, ends), self.category[entry], self.probability[entry])

    def and_(self, others: Distribution) -> Distribution:
        """Put the distributions of other items behind these."""
        return Distribution(
            np.concatenate([self.ptr, self.ptr[-1] + others.ptr[1:]]),
            np.concatenate([self.category, others.category]),
            np.concatenate([self.probability, others.probability]),
        )

    def of_each_cell(self, labels: Labels) -> Floats:
        """Return the probability of every cell of the labels, 0 of items that are not here."""
        if not len(self):
            return np.zeros(labels.n_cells)
        if self.category is labels.cell_category:
            return self.probability.copy()  # whoever gets it may write into it
        n = labels.n_categories
        ours = self.item() * n + self.category
        wanted = labels.item_of_cell() * n + labels.cell_category
        at = np.minimum(np.searchsorted(ours, wanted), len(ours) - 1)
        return np.where(ours[at] == wanted, self.probability[at], 0.0)

    def dense(self, n_categories: int) -> Floats:
        """Write the distributions out, items x categories."""
        full = np.zeros((len(self), n_categories))
        full[self.item(), self.category] = self.probability
        return full


def _without_zeros(theta: Floats) -> Distribution:
    item, category = np.nonzero(theta)
    ptr = np.searchsorted(item, np.arange(len(theta) + 1)).astype(np.int64)
    return Distribution(ptr, category.astype(np.int32), theta[item, category])


def _largest(part: Distribution) -> Floats:
    largest: Floats = np.maximum.reduceat(part.probability, part.ptr[:-1])
    return largest


def _leading(part: Distribution) -> NDArray[np.int32]:
    item = part.item()
    leads = np.flatnonzero(part.probability == _largest(part)[item])[::-1]
    mode = np.empty(len(part), dtype=np.int32)
    # Written from the last to the first, so that the first category of a tie stays.
    mode[item[leads]] = part.category[leads]
    return mode


@dataclass(frozen=True, eq=False)
class PatchedDistribution:
    """Distributions of which those of some items are replaced or new; the others stay in place.

    ``item`` names the replaced and new ones, rising, and ``patch`` has their distributions.
    """

    base: Distribution
    item: Codes
    patch: Distribution

    @classmethod
    def of(cls, base: Distribution) -> PatchedDistribution:
        """Begin with nothing replaced."""
        nobody = np.empty(0, dtype=np.int64)
        return cls(base, nobody, base.take(nobody))

    def take(self, item: Codes) -> Distribution:
        """Take the distributions of some items, named in rising order."""
        if not len(self.item):
            return self.base.take(item)
        at = np.minimum(np.searchsorted(self.item, item), len(self.item) - 1)
        ours = self.item[at] == item
        both = self.base.take(item[~ours]).and_(self.patch.take(at[ours]))
        return both.take(np.argsort(np.concatenate([np.flatnonzero(~ours), np.flatnonzero(ours)])))

    def replaced(self, item: Codes, new: Distribution) -> PatchedDistribution:
        """Replace the distributions of some items, named in rising order."""
        stay = np.flatnonzero(~np.isin(self.item, item))
        items = np.concatenate([self.item[stay], item])
        order = np.argsort(items)
        return PatchedDistribution(
            self.base, items[order], self.patch.take(stay).and_(new).take(order)
        )

    def merged(self, n_items: int) -> Distribution:
        """Write them all out anew, ``n_items`` of them."""
        return self.take(np.arange(n_items))


def mixed_rates(kinds: Floats, rates: Floats, annotator: Codes) -> Floats:
    """Average what annotators say of each kind of item over the kinds an item may be of.

    ``kinds`` is one row a label asked for, kinds in columns; ``rates`` is kinds x annotators x
    categories. Kind by kind, so that no array is larger than the answer.
    """
    rows = np.zeros((len(annotator), rates.shape[2]))
    for share, rate in zip(kinds.T, rates, strict=True):
        rows += share[:, np.newaxis] * rate[annotator]
    return rows
