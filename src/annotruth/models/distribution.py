"""Distributions of items over the categories, stored sparsely."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import (
    Codes,
    Floats,
    reduce_rows,
    slices,
)
from annotruth.observations import Labels, Scale
from annotruth.observations.frames import as_arrow

_EQUAL = 1e-9  # the difference between equal probabilities, by rounding
# The same for the top category: in GPM, differences of 1e-13 between nearly certain annotators decide.
_TIED = 1e-14
_ITEMS = 1 << 18  # per partition, which bounds the temporary arrays


@dataclass(frozen=True, eq=False)
class Distribution:
    """One categorical distribution per item, in compressed sparse rows.

    Item e has ``probability[j]`` in ``category[j]`` for j in ``ptr[e]:ptr[e+1]``, with categories
    in ascending order; all other categories have probability 0. Every item has at least one entry.
    """

    ptr: NDArray[np.int64]
    category: NDArray[np.int32]
    probability: Floats

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @classmethod
    def of_cells(cls, labels: Labels, probability: Floats) -> Distribution:
        """Return the distributions with one probability per cell of the labels.

        An item of known truth has probability 1 there.
        """
        distribution = cls(labels.item_ptr, labels.cell_category, probability)
        has_truths = bool((labels.known >= 0).any())
        return distribution._with_known_truth(labels.known) if has_truths else distribution

    @classmethod
    def of_dense(cls, theta: Floats) -> Distribution:
        """Return the distributions of an array, items x categories, without its zeros.

        Every row must have an entry other than 0.
        """
        n_items, n = theta.shape
        if theta.all():
            category = np.tile(np.arange(n, dtype=np.int32), n_items)
            return cls(n * np.arange(n_items + 1), category, theta.ravel())
        entry = np.flatnonzero(theta)
        ptr = np.append(0, np.cumsum(np.count_nonzero(theta, axis=1)))
        return cls(ptr, (entry % n).astype(np.int32), theta.ravel()[entry])

    def _with_known_truth(self, truth: NDArray[np.int32]) -> Distribution:
        """Return the distributions with probability 1 at the known truths; -1 is unknown."""
        known, item = np.flatnonzero(truth >= 0), self.item()
        kept = truth[item] < 0
        item = np.concatenate([item[kept], known])
        order = np.argsort(item, kind="stable")
        category = np.concatenate([self.category[kept], truth[known]])
        probability = np.concatenate([self.probability[kept], np.ones(len(known))])
        ptr = np.searchsorted(item[order], np.arange(len(self) + 1))
        return Distribution(ptr.astype(np.int64), category[order], probability[order])

    def partition(self, items: slice) -> Distribution:
        """Return the distributions of consecutive items, without copying them."""
        ptr = self.ptr[items.start : items.stop + 1]
        entries = slice(ptr[0], ptr[-1])
        return Distribution(ptr - ptr[0], self.category[entries], self.probability[entries])

    def _by_partition(self, compute: Callable[[Distribution], NDArray[Any]]) -> NDArray[Any]:
        """Compute one number per item, with temporary arrays of one partition at a time."""
        return np.concatenate(
            [compute(self.partition(items)) for items in slices(len(self), _ITEMS)]
        )

    def item(self) -> Codes:
        """Return the item of every entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.ptr))

    def confidence(self) -> Floats:
        """Return the probability of each item's top category."""
        return self._by_partition(_max_probability)

    def mode(self) -> NDArray[np.int32]:
        """Return each item's top category; a tie, but for rounding, goes to the first on the scale."""
        return self._by_partition(_mode)

    def expectation(self, values: Floats) -> Floats:
        """Return each item's mean, the sum of values[n] * theta[n] over the categories n."""
        return self._by_partition(
            lambda one: np.add.reduceat(one.probability * values[one.category], one.ptr[:-1])
        )

    def entropy(self) -> Floats:
        """Return each item's entropy in nats: from 0 to log N for N categories."""
        return self._by_partition(
            lambda one: np.add.reduceat(entr(one.probability), one.ptr[:-1]) + 0.0  # no -0.0
        )

    def rows(self, item: Codes, n_categories: int) -> Floats:
        """Return the distributions of some items as an array, one row per item."""
        return self.take(item).dense(n_categories)

    def take(self, item: Codes, code: Codes | None = None) -> Distribution:
        """Return the distributions of some items, in the given order, with new codes of categories."""
        n = self.ptr[item + 1] - self.ptr[item]
        ends = np.cumsum(n)
        entry = np.arange(n.sum()) + np.repeat(self.ptr[item] - (ends - n), n)
        if code is not None:
            entry = entry[np.lexsort((code[self.category[entry]], np.repeat(np.arange(len(n)), n)))]
        category = self.category[entry] if code is None else code[self.category[entry]]
        return Distribution(np.append(0, ends), category.astype(np.int32), self.probability[entry])

    def of_each_cell(self, labels: Labels) -> Floats:
        """Return the probability of every cell of the labels, 0 for items beyond these."""
        if not len(self):
            return np.zeros(labels.n_cells)
        if self.category is labels.cell_category:
            return self.probability.copy()  # the caller may write into it
        n = labels.n_categories
        keys = self.item() * n + self.category
        cell_keys = labels.item_of_cell() * n + labels.cell_category
        entry = np.minimum(np.searchsorted(keys, cell_keys), len(keys) - 1)
        return np.where(keys[entry] == cell_keys, self.probability[entry], 0.0)

    def dense(self, n_categories: int) -> Floats:
        """Return the distributions as an array, items x categories."""
        full = np.zeros((len(self), n_categories))
        full[self.item(), self.category] = self.probability
        return full


def _max_probability(distribution: Distribution) -> Floats:
    largest: Floats = np.maximum.reduceat(distribution.probability, distribution.ptr[:-1])
    return largest


def _mode(distribution: Distribution) -> NDArray[np.int32]:
    item = distribution.item()
    is_top = distribution.probability >= (_max_probability(distribution) - _TIED)[item]
    # Written from the last to the first, so that the first category of a tie stays.
    top = np.flatnonzero(is_top)[::-1]
    mode = np.empty(len(distribution), dtype=np.int32)
    mode[item[top]] = distribution.category[top]
    return mode


def mixed_confusion(p_class: Floats, confusion: Floats, annotator: Codes) -> Floats:
    """Return the probability of each label, averaged over the classes an item may have.

    ``p_class`` has one row and ``annotator`` one entry per label to predict; ``confusion`` is
    classes x annotators x categories.
    """
    rows = np.zeros((len(annotator), confusion.shape[2]))
    # One class at a time, so that no array is larger than the result.
    for share, rates in zip(p_class.T, confusion, strict=True):
        rows += share[:, np.newaxis] * rates[annotator]
    return rows


# SciPy has the next two, but importing it takes longer than fitting a small table.


def xlogy(x: Floats, y: Floats) -> Floats:
    """Return x log y, and 0 where x is 0."""
    nonzero = x != 0.0
    with np.errstate(divide="ignore"):  # the log of 0 is -inf
        return np.where(nonzero, x * np.log(np.where(nonzero, y, 1.0)), 0.0)


def entr(x: Floats) -> Floats:
    """Return -x log x, and 0 where x is 0."""
    return 0.0 - x * np.log(np.where(x > 0.0, x, 1.0))


Profile = Callable[[Floats], tuple[Floats, Floats]]
"""From reliabilities to each annotator's log-likelihood and its slope."""

# Half the 95% quantile of chi-squared with one degree of freedom.
DROP_95 = 1.9207294103470627

Z_95 = 1.959963984540054
"""The 97.5% quantile of the standard Gaussian."""

_EDGE = 1e-9
_PRECISION = 0.01
_MAX_STEPS = 60


def score_interval(
    scale: Scale, score: Floats, variance: Floats, known: NDArray[np.int32]
) -> dict[str, Floats]:
    """Return the columns of scores' 95% intervals, which have no width where the truth is known."""
    lowest, highest = scale.values[0], scale.values[-1]
    margin = np.where(known < 0, Z_95 * np.sqrt(variance), 0.0)
    return {
        "score_low": np.clip(score - margin, lowest, highest),
        "score_high": np.clip(score + margin, lowest, highest),
    }


def likely_sets(probability: Floats, names: Sequence[str], share: float = 0.95) -> pa.Array:
    """Return the smallest set of categories that contains ``share`` of each row's probability.

    Categories that are equally likely are all in the set or all outside. A set is text: the names
    in the order given, joined by "|".
    """
    # Rounding decides neither at a sum of exactly ``share`` nor between equal probabilities.
    least = reduce_rows(np.maximum, probability)
    several = np.flatnonzero(least < share - _EQUAL)
    falling = -np.sort(-probability[several], axis=1)
    last = np.count_nonzero(np.cumsum(falling[:, :-1], axis=1) < share - _EQUAL, axis=1)
    least[several] = falling[np.arange(len(several)), last]
    within = probability >= least[:, np.newaxis] - _EQUAL
    # Few different sets occur, so each text is made once.
    sets, place = _distinct_rows(np.packbits(within, axis=1))
    members = np.unpackbits(sets, axis=1, count=len(names)).astype(bool)
    texts = [
        "|".join(name for name, is_in in zip(names, row, strict=True) if is_in) for row in members
    ]
    return as_arrow(texts).take(as_arrow(place))


def _distinct_rows(rows: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], Codes]:
    """Return the different rows of bytes, and which of them each row is."""
    if rows.shape[1] > 1:
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        return distinct, place.ravel()
    # With at most 8 categories, counting the bytes is much faster than sorting them.
    is_used = np.bincount(rows[:, 0], minlength=256) > 0
    place = np.cumsum(is_used)[rows[:, 0]] - 1
    return np.flatnonzero(is_used).astype(np.uint8)[:, np.newaxis], place


def likelihood_interval(profiles: Iterable[Profile], peak: Floats) -> tuple[Floats, Floats]:
    """Return where each annotator's log-likelihood has fallen by 1.92 on either side of its maximum.

    ``profile(eps)`` returns the log-likelihood and its slope per annotator. It is concave in eps,
    so Newton's method from the far end approaches the crossing without passing it; stopped early,
    the interval is only wider.

    The first of ``profiles`` belongs to the estimate. Others belong to other values of the
    annotators' remaining parameters: the interval then contains the values within 1.92 of the
    estimate's log-likelihood under any of them.
    """
    floor, low, high = peak, peak, peak
    for number, profile in enumerate(profiles):
        if number == 0:
            floor = profile(np.clip(peak, _EDGE, 1 - _EDGE))[0] - DROP_95
        # fmin and fmax ignore NaN: profiles that never reach the floor.
        low = np.fmin(low, _crossing(profile, floor, _EDGE))
        high = np.fmax(high, _crossing(profile, floor, 1 - _EDGE))
    low[low <= 2 * _EDGE] = 0.0
    high[high >= 1 - 2 * _EDGE] = 1.0
    return low, high


def _crossing(profile: Profile, floor: Floats, end: float) -> Floats:
    """Return where the log-likelihood crosses the floor, from one end; NaN where it stays below it.

    There may be millions of annotators, so arrays are reused.
    """
    eps = np.full_like(floor, end)
    never = np.zeros(len(eps), dtype=bool)
    for _ in range(_MAX_STEPS):
        value, slope = profile(eps)
        shortfall = np.subtract(floor, value, out=value)
        # Convergence is measured on the likelihood, which near 0 and 1 changes fast with eps.
        active = (shortfall > _PRECISION) & ~never
        if not active.any():
            break
        move = np.divide(shortfall, slope, out=shortfall, where=active)
        move[~active] = 0.0
        # Newton's method changes direction only beyond a maximum that is below the floor.
        never |= move < 0 if end < 0.5 else move > 0
        np.add(eps, move, out=eps, where=~never)
        np.clip(eps, _EDGE, 1 - _EDGE, out=eps)
    eps[never] = np.nan
    return eps
