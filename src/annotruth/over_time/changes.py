"""Where annotators change: found by the model, and checked by shuffling their labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.over_time.change_model import ChangeModel
from annotruth.over_time.sequences import Sequences

MIN_LABELS = 10
"""Annotators with fewer labels are taken as constant: so few cannot show a change."""

LEAST_BEFORE_AND_AFTER = 5
"""The least number of labels before a change, and after it."""

N_SHUFFLES = 99
"""How often the labels of an annotator are shuffled."""

MAX_P_VALUE = 0.04
"""The largest share of shuffled orders that may show a change as clearly as the order of time."""

_NEAR = 2  # labels on either side that count for the place of a change


class FoundChanges(NamedTuple):
    """Changes of annotators, in the order of the sorted labels.

    Attributes
    ----------
    place
        The place of the first label after each change, among the sorted labels.
    probability
        The probability that the annotator changed.

    Examples
    --------
    >>> FoundChanges(np.array([40, 75]), np.array([0.99, 0.7])).place.tolist()
    [40, 75]
    """

    place: Codes
    probability: Floats


def may_change(sequences: Sequences) -> NDArray[np.bool_]:
    """Return which sequences have enough labels to show a change."""
    return sequences.lengths >= max(MIN_LABELS, 2 * LEAST_BEFORE_AND_AFTER)


def find_changes(
    session: Session, sequences: Sequences, model: ChangeModel, log_bayes_factors: Floats
) -> FoundChanges:
    r"""Return the changes in sequences, given the Bayes factor of each of them.

    A sequence changes if its probability of changing is above one half, and if its Bayes factor
    :math:`P(\text{labels} \mid \text{changing}) / P(\text{labels} \mid \text{constant})` is larger than in
    all but `MAX_P_VALUE` of shuffled orders of the same labels. In a sequence that does not change all
    orders are alike, so this is a test of that size whatever the labels are. The change is where
    it is most probable; then the parts before and after it are searched likewise.
    """
    found: list[FoundChanges] = []
    some, factors = sequences, log_bayes_factors
    while some.n:
        is_long = may_change(some)
        some, factors = some.take(is_long), factors[is_long]
        p_changing = model.p_changing(factors)
        likely = p_changing > 0.5
        likely[likely] = _beats_shuffled(session, some.take(likely), model, factors[likely])
        some = some.take(likely)
        if not some.n:
            break
        place = _most_probable_places(session, some, model)
        found.append(FoundChanges(place, p_changing[likely]))
        some = Sequences(
            some.serious,
            some.irregular,
            np.concatenate([some.begin, place]),
            np.concatenate([place, some.end]),
        )
        factors = model.log_bayes_factors(session, some)
    if not found:
        return FoundChanges(np.empty(0, np.int64), np.empty(0))
    place, probability = map(np.concatenate, zip(*found, strict=True))
    order = np.argsort(place)
    return FoundChanges(place[order], probability[order])


def _beats_shuffled(
    session: Session, sequences: Sequences, model: ChangeModel, factors: Floats
) -> NDArray[np.bool_]:
    """Return which sequences show a change more clearly than in nearly all shuffled orders."""
    p_values = np.empty(sequences.n)
    for i in range(sequences.n):  # one at a time, since their shuffled labels are many
        shuffled = sequences.take(np.array([i])).shuffled(N_SHUFFLES)
        as_clear = model.log_bayes_factors(session, shuffled) >= factors[i]
        p_values[i] = (1 + np.count_nonzero(as_clear)) / (1 + N_SHUFFLES)
    return p_values <= MAX_P_VALUE


def _most_probable_places(session: Session, sequences: Sequences, model: ChangeModel) -> Codes:
    """Return the place of the label from which on each sequence has most probably changed."""
    window = np.zeros(len(sequences.serious), dtype=np.int64)
    p_change = model.smooth(session, sequences, np.ones(sequences.n), window).p_change
    places = np.empty(sequences.n, dtype=np.int64)
    for i, (begin, end) in enumerate(zip(sequences.begin, sequences.end, strict=True)):
        near = np.convolve(p_change[begin:end], np.ones(2 * _NEAR + 1), mode="same")
        inner = slice(LEAST_BEFORE_AND_AFTER, end - begin - LEAST_BEFORE_AND_AFTER + 1)
        places[i] = begin + LEAST_BEFORE_AND_AFTER + near[inner].argmax()
    return places
