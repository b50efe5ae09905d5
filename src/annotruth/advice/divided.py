r"""Items on which people are divided, where one answer was thought right.

The fit has blamed the annotators for such items: its matrix of the crowd, and all rates with it,
are blurred by them. Here an item is of class k with probability :math:`(1 - \delta) p_k`, or
divided between any two classes with :math:`\delta`. EM finds the share :math:`\delta`, beginning
as if 1 of 5 items had been seen to be divided, and the crowd's matrix M from the labels of the
items that have a class; annotators' rates follow it:

.. math:: a_s(n \mid k) \propto a_s(n \mid k) \, M^{new}_{n,k} / M^{old}_{n,k}.
"""

from __future__ import annotations

import numpy as np

from annotruth.advice.beliefs import beliefs_of, counts_of, parts
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.models.robust_gpm.results import Kinds

_DIVIDED, _NOT_DIVIDED = 1.0, 4.0  # items of either sort seen before the first
_EACH = 0.5  # labels of each category in each class seen before the first
_MOST_PARTS = 2  # of the items; a sample will do
_MOST_STEPS = 100
_SETTLED = 1e-4
_LEAST = 1e-12


def admit_divided(labels: Labels, kinds: Kinds) -> tuple[Kinds, float]:
    """Find the share of divided items, and the rates that annotators have on the others."""
    if not kinds.one_truth or labels.n_categories < 2:
        return kinds, 0.0
    every = parts(labels, kinds)
    some = every[:: -(-len(every) // _MOST_PARTS)]
    n_items = sum(hi - lo for lo, hi in some)
    matrix, _ = _counted(labels, kinds, 0.0, some)
    share = _DIVIDED / (_DIVIDED + _NOT_DIVIDED)
    for _ in range(_MOST_STEPS):
        new, n_divided = _counted(labels, kinds, share, some)
        rates = kinds.rates * (new / matrix)
        rates /= rates.sum(axis=1, keepdims=True)
        kinds, matrix = kinds._replace(rates=np.maximum(rates, _LEAST)), new
        before = share
        share = (n_divided + _DIVIDED) / (n_items + _DIVIDED + _NOT_DIVIDED)
        if abs(share - before) < _SETTLED:
            break
    return kinds, share


def _counted(
    labels: Labels, kinds: Kinds, share: float, some: list[tuple[int, int]]
) -> tuple[Floats, float]:
    """Return the crowd's matrix, labels x classes, and how many items are divided."""
    matrix = np.full((labels.n_categories, labels.n_categories), _EACH)
    n_divided = 0.0
    for lo, hi in some:
        weights = beliefs_of(labels, kinds, share, lo, hi).weights
        matrix += counts_of(labels, lo, hi).T @ weights[:, : labels.n_categories]
        n_divided += float(weights[:, labels.n_categories :].sum())
    return matrix / matrix.sum(axis=0), n_divided
