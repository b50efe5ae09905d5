r"""Sharing a budget of labels among items, and the work among annotators.

Each further label of an item gains less than the one before. With uncertainty U and the first
label's gain g, the uncertainty after m labels is taken as

.. math:: U_m = U \frac{c}{c + m}, \quad c = U / g - 1,

which holds exactly for the posterior variance of a normal mean and, on average, of Dirichlet shares:
c is the number of labels that the present knowledge is worth. The m-th label then gains
:math:`U c / ((c + m - 1)(c + m))`, which falls with m. So the greedy allocation is optimal, and
one least gain (a "price") below which no label is bought gives all counts at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels

NOBODY = -1
"""Code of an assignment to a new annotator, where none of those to ask is left."""

_LEAST = 1e-15
_BISECTIONS = 60


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
    marginal = _marginal(bought + 1, uncertainty, gain)
    if max_per_item is not None:
        marginal[bought >= max_per_item] = -1.0
    bought[np.argsort(-marginal, kind="stable")[:left]] += 1
    return bought


def _labels_so_far(uncertainty: Floats, gain: Floats) -> Floats:
    """Return c, the number of labels that the present knowledge is worth."""
    return np.maximum(uncertainty / np.maximum(gain, _LEAST) - 1.0, 1e-3)


def _marginal(m: Codes, uncertainty: Floats, gain: Floats) -> Floats:
    """Return the gain of the m-th label."""
    c = _labels_so_far(uncertainty, gain)
    marginal: Floats = np.where(gain > _LEAST, uncertainty * c / ((c + m - 1) * (c + m)), 0.0)
    return marginal


def _bought(price: float, uncertainty: Floats, gain: Floats, max_per_item: int | None) -> Codes:
    """Return the last m whose gain is at least the price."""
    c = _labels_so_far(uncertainty, gain)
    last = np.floor(0.5 - c + np.sqrt(0.25 + uncertainty * c / price) + 1e-9)
    last = np.clip(last, 1.0, max_per_item)
    return np.where(gain >= price, last, 0.0).astype(np.int64)


def assign(
    labels: Labels,
    add: Codes,
    gain: Floats,
    information: Floats,
    ask: NDArray[np.bool_],
    max_per_annotator: int,
) -> tuple[Codes, Codes]:
    """Assign the labels to add: codes of items, and of annotators or `NOBODY`.

    Items with the highest gain choose first: they take the most informative annotators who have
    not labelled the item and have fewer than ``max_per_annotator`` assignments.
    """
    free = np.flatnonzero(ask)[np.argsort(-information[ask], kind="stable")].tolist()
    load = np.zeros(labels.n_annotators, dtype=np.int64)
    starts = labels.cell_ptr[labels.item_ptr]
    items: list[int] = []
    annotators: list[int] = []
    for e in np.argsort(-gain, kind="stable").tolist():
        wanted = int(add[e])
        if not wanted:
            continue
        labelled_by = set(labels.annotator[starts[e] : starts[e + 1]].tolist())
        chosen: list[int] = []
        for s in free:
            if len(chosen) == wanted:
                break
            if s not in labelled_by:
                chosen.append(s)
        load[chosen] += 1
        if chosen and load[chosen].max() >= max_per_annotator:
            free = [s for s in free if load[s] < max_per_annotator]
        items += [e] * wanted
        annotators += chosen + [NOBODY] * (wanted - len(chosen))
    return np.array(items, dtype=np.int64), np.array(annotators, dtype=np.int64)
