r"""The most likely set of each item, and its probability.

Given its type k, the labels of an item are independent, so that a set A has the posterior probability

.. math:: \sum_k w_{e,k} \prod_{l \in A} T_{e,k,l} \prod_{l \notin A} (1 - T_{e,k,l}).

Through the types, labels that go together support each other. The search begins at the best set of
each type and at the labels above one half, and adds or removes single labels while that helps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.kernels.reference.sets.presence import type_posterior

_LEAST = 1e-12
_VALUES_AT_ONCE = 1 << 22


class JointSets(NamedTuple):
    """The most likely set of each item, items x labels, and its probability."""

    sets: NDArray[np.bool_]
    probability: Floats


def joint_sets(
    evidence: Floats, known: Codes, members: Floats, theta: Floats, types: Floats
) -> JointSets:
    """Return the most likely set of each item with this evidence, known truths as they are."""
    n_items, n_labels = evidence.shape
    sets = np.zeros((n_items, n_labels), dtype=np.bool_)
    probability = np.zeros(n_items)
    for rows in slices(n_items, max(1, _VALUES_AT_ONCE // theta.size)):
        weight, within, _ = type_posterior(evidence[rows], members, known[rows], theta, types)
        sets[rows], probability[rows] = _search(weight, within)
    return JointSets(sets, probability)


def _search(weight: Floats, within: Floats) -> tuple[NDArray[np.bool_], Floats]:
    log_weight = np.log(np.maximum(weight, _LEAST))
    log_in = np.log(np.maximum(within, _LEAST))
    log_out = np.log(np.maximum(1.0 - within, _LEAST))
    marginal = np.einsum("ek,ekl->el", weight, within) > 0.5
    starts = [marginal, *(within[:, k] > 0.5 for k in range(weight.shape[1]))]
    best, score = _improve(starts[0], log_weight, log_in, log_out)
    for start in starts[1:]:
        found, its_score = _improve(start, log_weight, log_in, log_out)
        better = its_score > score + _LEAST
        best = np.where(better[:, np.newaxis], found, best)
        score = np.maximum(score, its_score)
    return best, np.minimum(np.exp(score), 1.0)


def _improve(
    sets: NDArray[np.bool_], log_weight: Floats, log_in: Floats, log_out: Floats
) -> tuple[NDArray[np.bool_], Floats]:
    """Return the sets after single changes that raise their log-probability, and that."""
    sets = sets.copy()
    of_label = np.where(sets[:, np.newaxis], log_in, log_out)
    of_type = log_weight + of_label.sum(axis=2)
    score = np.logaddexp.reduce(of_type, axis=1)
    changed = True
    while changed:
        changed = False
        for label in range(sets.shape[1]):
            is_in = sets[:, label, np.newaxis]
            gain = np.where(is_in, -1.0, 1.0) * (log_in[:, :, label] - log_out[:, :, label])
            flipped = np.logaddexp.reduce(of_type + gain, axis=1)
            better = flipped > score + 1e-9
            if better.any():
                changed = True
                sets[better, label] ^= True
                of_type[better] += gain[better]
                score[better] = flipped[better]
    return sets, score
