r"""Which items need labels: their status, how many labels to add, and why.

Each further label of an item gains less than the one before. With uncertainty U and the first
label's gain g, the uncertainty after m labels is taken as

.. math:: U_m = U \frac{c}{c + m}, \quad c = U / g - 1,

which holds exactly for the posterior variance of a normal mean and, on average, of Dirichlet shares:
c is the number of labels that the present knowledge is worth. The m-th label then gains
:math:`U c / ((c + m - 1)(c + m))`, which falls with m. So the greedy allocation is optimal, and
one least gain (a "price") below which no label is bought gives all counts at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Distribution
from annotruth.models.result import Fit
from annotruth.observations.frames import as_arrow

_LEAST = 1e-15
_BISECTIONS = 60

LEAST_GAIN = 0.001
"""Labels that gain less, in squared Hellinger distance, are not asked for.

Opinions on five categories reach it after some 20 labels by reliable annotators, a class when it is
certain to about 0.999.
"""

MAX_PER_ROUND = 5
"""An item gets at most this many labels per round; then fit again and ask again."""

ITEM_STATUS = {
    "needs labels": f"one more label is expected to gain at least {LEAST_GAIN:g}",
    "divided": "more labels gain little, and two labels have nearly the same share",
    "needs no more labels": "more labels gain little",
    "known truth": "its truth was given",
}
"""The statuses of items, and the rule for each."""

_ALIKE = 0.75  # of the top label's share: from here on the second has nearly the same


class TopTwo(NamedTuple):
    """The two categories with the highest shares of each item."""

    category: NDArray[np.int64]  # items x 2, the top one first
    alike: NDArray[np.bool_]  # whether they have nearly the same share

    @classmethod
    def of_dense(cls, shares: Floats) -> TopTwo:
        """Find them in shares, items x categories."""
        if shares.shape[1] < 2:
            return cls(np.zeros((len(shares), 2), np.int64), np.zeros(len(shares), np.bool_))
        two = np.argsort(-shares, axis=1, kind="stable")[:, :2]
        first, second = np.take_along_axis(shares, two, axis=1).T
        return cls(two, second >= _ALIKE * first)

    @classmethod
    def of_sparse(cls, shares: Distribution) -> TopTwo:
        """Find them in distributions stored without zeros."""
        item = shares.item()
        order = np.lexsort((-shares.probability, item))
        category, share = shares.category[order], shares.probability[order]
        first = shares.ptr[:-1]
        # An item with one category alone has no second; its first stands in, with no share.
        several = np.diff(shares.ptr) > 1
        second = first + several
        alike = several & (share[second] >= _ALIKE * share[first])
        return cls(np.column_stack([category[first], category[second]]).astype(np.int64), alike)

    @classmethod
    def concatenate(cls, parts: Sequence[TopTwo]) -> TopTwo:
        """Put the items of several partitions together."""
        category, alike = zip(*parts, strict=True)
        return cls(np.concatenate(category), np.concatenate(alike))


class Reasons(NamedTuple):
    """Why each item would need labels, and why it would need none."""

    uncertain: pa.Array
    certain: pa.Array

    @classmethod
    def of_sets(cls, sets: pa.Array, names: Sequence[str]) -> Reasons:
        """Write them from the categories that may be the top label, joined by bars."""
        encoded = sets.dictionary_encode()
        members = [_members(text, names) or [text] for text in encoded.dictionary.to_pylist()]
        uncertain = [
            f"top label undecided: {', '.join(some[:-1])} or {some[-1]}"
            if len(some) > 1
            else f"top label {some[0]}, distribution uncertain"
            for some in members
        ]
        certain = [f"top label {' or '.join(some)}" for some in members]
        return cls(
            as_arrow(uncertain).take(encoded.indices), as_arrow(certain).take(encoded.indices)
        )

    @classmethod
    def of_scores(cls, low: Floats, high: Floats) -> Reasons:
        """Write them from the intervals of scores."""
        ends = [pc.cast(as_arrow(np.round(end, 2)), pa.string()) for end in (low, high)]
        interval = pc.binary_join_element_wise(*ends, " to ")
        return cls(
            pc.binary_join_element_wise("score uncertain: ", interval, ""),
            pc.binary_join_element_wise("score ", interval, ""),
        )


class ItemAssessment(NamedTuple):
    """What a fit says of items: how uncertain they are, and what a label would gain."""

    uncertainty: Floats  # expected squared Hellinger distance from the truth
    gain: Floats  # by how much one more label is expected to lower it
    top: TopTwo
    reasons: Reasons


@dataclass(frozen=True, eq=False)
class ItemAdvice:
    """The status of every item, one entry per item."""

    # the expected squared Hellinger distance of the item's distribution from its truth
    uncertainty: Floats
    # by how much one more label, by one of the annotators to ask, is expected to lower it
    gain: Floats
    status: NDArray[np.str_]  # one of `ITEM_STATUS`
    why: pa.Array  # the reason for the status

    @property
    def needs_labels(self) -> NDArray[np.bool_]:
        """Which items need labels."""
        needs: NDArray[np.bool_] = self.status == "needs labels"
        return needs

    def count(self) -> dict[str, int]:
        """Return how many items have each status."""
        return {status: int(np.count_nonzero(self.status == status)) for status in ITEM_STATUS}


def item_advice(fit: Fit, assessment: ItemAssessment) -> ItemAdvice:
    """Return the status of every item of a fit by the rules of `ITEM_STATUS`."""
    known = fit.data.known >= 0
    uncertainty, gain = (
        np.where(known, 0.0, values) for values in (assessment.uncertainty, assessment.gain)
    )
    statuses = list(ITEM_STATUS)
    which = np.select([known, gain >= LEAST_GAIN, assessment.top.alike], [3, 0, 1], default=2)
    divided = _divided_reasons(assessment.top.category, fit.data.scale.names)
    why = pc.choose(
        as_arrow(which),
        assessment.reasons.uncertain,
        divided,
        assessment.reasons.certain,
        pa.scalar("its truth was given"),
    )
    return ItemAdvice(uncertainty, gain, np.array(statuses)[which], why)


def _divided_reasons(top: Codes, names: Sequence[str]) -> pa.Array:
    """Write which two categories each item would be divided between, in the scale's order."""
    one, other = (
        as_arrow(names).take(as_arrow(np.ascontiguousarray(column))) for column in np.sort(top).T
    )
    return pc.binary_join_element_wise(
        pc.binary_join_element_wise("divided between ", one, ""), other, " and "
    )


def _members(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that a text joins by bars, in the scale's order; names may have bars."""
    for place, name in enumerate(names):
        if text == name:
            return [name]
        if text.startswith(f"{name}|"):
            rest = _members(text[len(name) + 1 :], names[place + 1 :])
            if rest:
                return [name, *rest]
    return []


def share_out(
    budget: int | None,
    uncertainty: Floats,
    gain: Floats,
    least_gain: float,
    max_per_item: int | None = None,
) -> Codes:
    """Return how many labels each item gets, none of which gains less than ``least_gain``.

    Without a budget every item gets all labels that gain as much, with a budget the labels that
    gain most; no item gets more than ``max_per_item``.
    """
    bought = _bought(least_gain, uncertainty, gain, max_per_item)
    if budget is None or bought.sum() <= budget:
        return bought
    # Bisect for the lowest price at which the budget suffices.
    low, high = np.log(least_gain), np.log(gain.max()) + 1e-9
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        price = float(np.exp(middle))
        suffices = _bought(price, uncertainty, gain, max_per_item).sum() <= budget
        low, high = (low, middle) if suffices else (middle, high)
    bought = _bought(float(np.exp(high)), uncertainty, gain, max_per_item)
    left = int(budget - bought.sum())
    # The rest goes to the labels that gain most of those not bought; of equals, the first.
    c = _labels_so_far(uncertainty, gain)
    worth = uncertainty * c / ((c + bought) * (c + bought + 1))
    marginal = np.where(gain > _LEAST, worth, 0.0)
    if max_per_item is not None:
        marginal[bought >= max_per_item] = -1.0
    bought[np.argsort(-marginal, kind="stable")[:left]] += 1
    return bought


def share_removed(add: Codes, items: ItemAdvice) -> float:
    """Return the share of all items' uncertainty that adding these labels is expected to remove."""
    total = float(items.uncertainty.sum())
    if total <= 0.0:
        return 0.0
    c = _labels_so_far(items.uncertainty, items.gain)
    return float((items.uncertainty * add / (c + add)).sum() / total)


def _labels_so_far(uncertainty: Floats, gain: Floats) -> Floats:
    """Return c, the number of labels that the present knowledge is worth."""
    return np.maximum(uncertainty / np.maximum(gain, _LEAST) - 1.0, 1e-3)


def _bought(price: float, uncertainty: Floats, gain: Floats, max_per_item: int | None) -> Codes:
    """Return the last m whose gain is at least the price."""
    c = _labels_so_far(uncertainty, gain)
    last = np.floor(0.5 - c + np.sqrt(0.25 + uncertainty * c / price) + 1e-9)
    last = np.clip(last, 1.0, max_per_item)
    return np.where(gain >= price, last, 0.0).astype(np.int64)
