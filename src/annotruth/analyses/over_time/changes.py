"""Where annotators change: found by the model, and checked by shuffling their labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.over_time.change_model import ChangeModel
from annotruth.analyses.over_time.sequences import Sequences
from annotruth.analyses.over_time.windows import Windows
from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats

MIN_LABELS = 10
"""Annotators with fewer labels are taken as constant: so few cannot show a change."""

LEAST_BEFORE_AND_AFTER = 5
"""The least number of labels before a change, and after it."""

LIKELY = 0.5
"""The probability above which an annotator is likely to change."""

MAX_ALARMS = 0.04
"""The share of shuffled orders of labels that may show a change as clearly as the order of time."""

_MAX_SHUFFLES = 99  # of the labels of a sequence
_N_SHUFFLED = 2000  # sequences to which others of about their length are compared, about
_FAR = 16  # labels from the place of a change: all places so far away count alike


class FoundChanges(NamedTuple):
    """Changes of annotators, in the order of the sorted labels."""

    place: Codes  # the place of the first label after each change, among the sorted labels
    probability: Floats  # the probability that the annotator changed


def may_change(sequences: Sequences) -> NDArray[np.bool_]:
    """Return which sequences have enough labels to show a change."""
    return sequences.lengths >= max(MIN_LABELS, 2 * LEAST_BEFORE_AND_AFTER)


def find_changes(
    session: Session, sequences: Sequences, model: ChangeModel, log_bayes_factors: Floats
) -> FoundChanges:
    r"""Return the changes in sequences, given the Bayes factor of each of them.

    A sequence changes if its probability of changing is above one half, and if its Bayes factor
    :math:`P(\text{labels} \mid \text{changing}) / P(\text{labels} \mid \text{constant})` is larger than
    nearly all of shuffled sequences (`beats_shuffled`). Then the parts before and after the change are
    searched likewise, each with half of the false alarms, as there are twice as many.
    """
    found: list[FoundChanges] = []
    some, factors, max_alarms = sequences, log_bayes_factors, MAX_ALARMS
    while some.n:
        is_long = may_change(some)
        some, factors = some.take(is_long), factors[is_long]
        p_changing = model.p_changing(factors)
        likely = p_changing > LIKELY
        likely &= beats_shuffled(session, some, model, factors, likely, max_alarms)
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
        max_alarms /= 2.0
    if not found:
        return FoundChanges(np.empty(0, np.int64), np.empty(0))
    place, probability = map(np.concatenate, zip(*found, strict=True))
    order = np.argsort(place)
    return FoundChanges(place[order], probability[order])


def beats_shuffled(
    session: Session,
    sequences: Sequences,
    model: ChangeModel,
    log_bayes_factors: Floats,
    of_interest: NDArray[np.bool_],
    max_alarms: float = MAX_ALARMS,
) -> NDArray[np.bool_]:
    """Return which sequences of interest show a change more clearly than nearly all shuffled ones.

    The labels of all sequences are shuffled, and sequences are compared with shuffled ones whose number
    of labels, as a power of two, has the same integer part. If sequences do not change, all orders of
    their labels are alike, so that of each such group a share of ``max_alarms`` is expected to pass,
    whatever the labels are.
    """
    passed = np.zeros(sequences.n, dtype=np.bool_)
    group = np.log2(np.maximum(sequences.lengths, 1)).astype(np.int64)
    for each in np.unique(group[of_interest]):
        own = np.flatnonzero(group == each)
        shuffled = np.sort(_shuffled_factors(session, sequences.take(own), model))
        n_as_clear = int(max_alarms * (len(shuffled) + 1))
        if n_as_clear:
            passed[own] = log_bayes_factors[own] > shuffled[-n_as_clear]
    return passed & of_interest


def _shuffled_factors(session: Session, sequences: Sequences, model: ChangeModel) -> Floats:
    """Return the log Bayes factors of shuffled sequences; of many, of some."""
    some = sequences.take(np.arange(0, sequences.n, max(sequences.n // _N_SHUFFLED, 1)))
    end = np.cumsum(some.lengths)
    begin = end - some.lengths
    factors = []
    for number in range(min(-(-_N_SHUFFLED // some.n), _MAX_SHUFFLES)):
        # Sequences of the same length are shuffled alike, so that the order of annotators does not matter.
        orders = {
            n: np.random.default_rng([n, number]).permutation(n)
            for n in np.unique(some.lengths).tolist()
        }
        order = np.concatenate(
            [first + orders[n] for first, n in zip(some.begin, some.lengths.tolist(), strict=True)]
        )
        shuffled = Sequences(some.serious[order], some.irregular[order], begin, end)
        factors.append(model.log_bayes_factors(session, shuffled))
    return np.concatenate(factors)


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
