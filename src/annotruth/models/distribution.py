"""Each item's distribution over the categories, stored where it is not zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotruth.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.entropy import entr


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
        known = np.flatnonzero(labels.known >= 0)
        if len(known) == 0:
            return cls(labels.item_ptr, labels.cell_category, probability)
        item = labels.item_of_cell()
        open_ = labels.known[item] < 0
        item = np.concatenate([item[open_], known])
        order = np.argsort(item, kind="stable")
        category = np.concatenate([labels.cell_category[open_], labels.known[known]])
        probability = np.concatenate([probability[open_], np.ones(len(known))])
        ptr = np.searchsorted(item[order], np.arange(labels.n_items + 1))
        return cls(ptr.astype(np.int64), category[order], probability[order])

    @classmethod
    def of_dense(cls, theta: Floats) -> Distribution:
        """Take items x categories, leaving out the zeros; no item may be zero throughout."""
        item, category = np.nonzero(theta)
        ptr = np.searchsorted(item, np.arange(len(theta) + 1)).astype(np.int64)
        return cls(ptr, category.astype(np.int32), theta[item, category])

    def item(self) -> Codes:
        """Name the item of every entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.ptr))

    def confidence(self) -> Floats:
        """Return the probability of each item's leading category."""
        return np.maximum.reduceat(self.probability, self.ptr[:-1])

    def mode(self) -> NDArray[np.int32]:
        """Return each item's leading category; an exact tie goes to the first on the scale."""
        leads = np.flatnonzero(self.probability == self.confidence()[self.item()])
        mode = np.empty(len(self), dtype=np.int32)
        # Written from the last to the first, so that the first category of a tie stays.
        mode[self.item()[leads[::-1]]] = self.category[leads[::-1]]
        return mode

    def expectation(self, values: Floats) -> Floats:
        """Return each item's mean, the sum of n * theta[n] with n the category's value."""
        return np.add.reduceat(self.probability * values[self.category], self.ptr[:-1])

    def entropy(self) -> Floats:
        """Return each item's entropy in nats: 0 when all agree, log N when anything goes."""
        return np.add.reduceat(entr(self.probability), self.ptr[:-1]) + 0.0  # no -0.0

    def rows(self, item: Codes, n_categories: int) -> Floats:
        """Write the distributions of some items out, one row each."""
        n = np.diff(self.ptr)[item]
        row = np.repeat(np.arange(len(item)), n)
        entry = np.arange(len(row)) + np.repeat(self.ptr[item] - (np.cumsum(n) - n), n)
        full = np.zeros((len(item), n_categories))
        full[row, self.category[entry]] = self.probability[entry]
        return full

    def dense(self, n_categories: int) -> Floats:
        """Write the distributions out, items x categories."""
        full = np.zeros((len(self), n_categories))
        full[self.item(), self.category] = self.probability
        return full


def mixed_rates(kinds: Floats, rates: Floats, annotator: Codes) -> Floats:
    """Average what annotators say of each kind of item over the kinds an item may be of.

    ``kinds`` is one row a label asked for, kinds in columns; ``rates`` is kinds x annotators x
    categories. Kind by kind, so that no array is larger than the answer.
    """
    rows = np.zeros((len(annotator), rates.shape[2]))
    for share, rate in zip(kinds.T, rates, strict=True):
        rows += share[:, np.newaxis] * rate[annotator]
    return rows
