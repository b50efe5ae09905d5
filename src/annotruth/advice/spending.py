r"""Sharing a budget out over items, and the work over annotators.

Of several labels to one item, each gains less than the one before. With uncertainty U, and the
first label's gain g known, the uncertainty after m labels is taken as

.. math:: U_m = U \frac{c}{c + m}, \quad c = U / g - 1,

which the posterior variance of a Gaussian's mean and of Dirichlet shares do exactly, in the mean:
c is how many labels what is known so far is worth. The m-th label then gains
:math:`U c / ((c + m - 1)(c + m))`, which falls with m, so the greedy sharing-out is the best one,
and a price below which no label is bought gives all the counts at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels

NOBODY = -1
"""Stands for somebody new, where nobody who may be asked is left."""

_LEAST = 1e-15
_PRICE_STEPS = 60


def share_out(budget: int | None, uncertainty: Floats, gain: Floats, least: float) -> Codes:
    """Return how many labels each item gets, none of which gains less than ``least``.

    Without a budget every item gets all that are worth it; with one, at most that many in all.
    """
    bought = _bought(least, uncertainty, gain)
    if budget is None or bought.sum() <= budget:
        return bought
    # The highest price at which the budget does not suffice, and the lowest at which it does.
    low, high = np.log(least), np.log(gain.max()) + 1e-9
    for _ in range(_PRICE_STEPS):
        middle = (low + high) / 2.0
        enough = _bought(float(np.exp(middle)), uncertainty, gain).sum() <= budget
        low, high = (low, middle) if enough else (middle, high)
    bought = _bought(float(np.exp(high)), uncertainty, gain)
    left = int(budget - bought.sum())
    # What is left goes to those who would have been next; the first of equals.
    order = np.argsort(-_marginal(bought + 1, uncertainty, gain), kind="stable")
    bought[order[:left]] += 1
    return bought


def _worth_so_far(uncertainty: Floats, gain: Floats) -> Floats:
    return np.maximum(uncertainty / np.maximum(gain, _LEAST) - 1.0, 1e-3)


def _marginal(m: Codes, uncertainty: Floats, gain: Floats) -> Floats:
    c = _worth_so_far(uncertainty, gain)
    marginal: Floats = np.where(gain > _LEAST, uncertainty * c / ((c + m - 1) * (c + m)), 0.0)
    return marginal


def _bought(price: float, uncertainty: Floats, gain: Floats) -> Codes:
    """Solve for the last m whose gain is the price or more."""
    c = _worth_so_far(uncertainty, gain)
    last = 0.5 - c + np.sqrt(0.25 + uncertainty * c / price)
    return np.where(gain >= price, np.maximum(np.floor(last + 1e-9), 1.0), 0.0).astype(np.int64)


def assign(
    labels: Labels, add: Codes, gain: Floats, worth: Floats, may_ask: NDArray[np.bool_], most: int
) -> tuple[Codes, Codes]:
    """Give the labels to be added to people: codes of items, and of annotators or `NOBODY`.

    Items that gain most choose first; they take whose labels are worth most, who have not
    labelled the item yet, and who have got fewer than ``most`` labels here.
    """
    free = np.flatnonzero(may_ask)[np.argsort(-worth[may_ask], kind="stable")].tolist()
    load = np.zeros(labels.n_annotators, dtype=np.int64)
    of_item = labels.cell_ptr[labels.item_ptr]
    items: list[int] = []
    people: list[int] = []
    for e in np.argsort(-gain, kind="stable").tolist():
        wanted = int(add[e])
        if not wanted:
            continue
        seen = set(labels.annotator[of_item[e] : of_item[e + 1]].tolist())
        chosen: list[int] = []
        for s in free:
            if len(chosen) == wanted:
                break
            if s not in seen:
                chosen.append(s)
        load[chosen] += 1
        if chosen and load[chosen].max() >= most:
            free = [s for s in free if load[s] < most]
        items += [e] * wanted
        people += chosen + [NOBODY] * (wanted - len(chosen))
    return np.array(items, dtype=np.int64), np.array(people, dtype=np.int64)
