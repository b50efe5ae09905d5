"""Where annotators change: found by the model, and checked by shuffling their labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.over_time.change_model import ChangeModel
from annotruth.over_time.sequences import Sequences
from annotruth.over_time.windows import Windows

MIN_LABELS = 10
"""Annotators with fewer labels are taken as constant: so few cannot show a change."""

LEAST_BEFORE_AND_AFTER = 5
"""The least number of labels before a change, and after it."""

LIKELY = 0.5
"""The probability above which an annotator is likely to change."""

N_SHUFFLES = 99
"""How often the labels of an annotator are shuffled."""

MAX_AS_CLEAR = 3
"""The largest number of shuffled orders that may show a change as clearly as the order of time."""

N_FIRST_SHUFFLES = 49
"""After how many shuffles, none of which shows a change as clearly, there are no more."""

_FAR = 16  # labels from the place of a change: all places so far away count alike


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
    nearly all shuffled orders of the same labels (`beats_shuffled`). Then the parts before and after
    the change are searched likewise.
    """
    found: list[FoundChanges] = []
    some, factors = sequences, log_bayes_factors
    while some.n:
        is_long = may_change(some)
        some, factors = some.take(is_long), factors[is_long]
        p_changing = model.p_changing(factors)
        likely = p_changing > LIKELY
        likely[likely] = beats_shuffled(session, some.take(likely), model)
        some = some.take(likely)
        if not some.n:
            break
        place = _places_of_changes(session, some, model)
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


def beats_shuffled(session: Session, sequences: Sequences, model: ChangeModel) -> NDArray[np.bool_]:
    r"""Return which sequences show a change more clearly than in nearly all shuffled orders.

    Shuffling ends when at most `MAX_AS_CLEAR` of `N_SHUFFLES` orders were as clear, or more of
    them, or none of the first `N_FIRST_SHUFFLES`. In a sequence that does not change all orders are alike,
    so given the share u of all orders that are as clear, which is uniform or larger, each shuffle is
    as clear with probability u, and the test's size is at most

    .. math:: \int_0^1 P(B_{99} \le 3 \text{ or } B_{49} = 0) \, du = 0.0412,

    where :math:`B_n` counts those among the first n. This holds whatever the labels are.
    """
    passed = np.zeros(sequences.n, dtype=np.bool_)
    for length in np.unique(sequences.lengths):
        same = np.flatnonzero(sequences.lengths == length)
        # Sequences of the same length are shuffled alike, so that no result depends on others.
        rng = np.random.default_rng(int(length))
        counts = _count_as_clear(session, sequences.take(same), model, rng, N_FIRST_SHUFFLES)
        passed[same[counts == 0]] = True
        undecided = (counts > 0) & (counts <= MAX_AS_CLEAR)
        if undecided.any():
            same, counts = same[undecided], counts[undecided]
            n_more = N_SHUFFLES - N_FIRST_SHUFFLES
            counts += _count_as_clear(session, sequences.take(same), model, rng, n_more)
            passed[same] = counts <= MAX_AS_CLEAR
    return passed


def _count_as_clear(
    session: Session,
    sequences: Sequences,
    model: ChangeModel,
    rng: np.random.Generator,
    n_shuffles: int,
) -> Codes:
    """Return how many shuffled orders are as clear; sequences have the same length."""
    length = int(sequences.lengths[0])
    orders = np.stack([rng.permutation(length) for _ in range(n_shuffles)])
    return model.count_as_clear(session, sequences, orders, enough=MAX_AS_CLEAR + 1)


def _places_of_changes(session: Session, sequences: Sequences, model: ChangeModel) -> Codes:
    """Return the place of the label from which on each sequence has changed.

    It is the one with the least expected squared distance from changes, of at most ``_FAR`` labels:
    near the mean of the places where the change most probably is, whatever is far from them.
    """
    nearness = 1.0 - (np.arange(1 - _FAR, _FAR) / _FAR) ** 2
    windows = Windows.of(sequences)
    p_change = model.smooth(session, sequences, np.ones(sequences.n), windows).p_change
    places = np.empty(sequences.n, dtype=np.int64)
    for i, (begin, end) in enumerate(zip(sequences.begin, sequences.end, strict=True)):
        near = np.convolve(p_change[begin:end], nearness)[_FAR - 1 :]
        inner = slice(LEAST_BEFORE_AND_AFTER, end - begin - LEAST_BEFORE_AND_AFTER + 1)
        places[i] = begin + LEAST_BEFORE_AND_AFTER + near[inner].argmax()
    return places
