r"""The model of an annotator's reliability over time, and what it finds about all annotators.

Label t of an annotator has the probability :math:`\epsilon_k S_t + (1 - \epsilon_k) I_t` at level k of
the reliability. An annotator is *constant*, with one level for all labels, or, with probability c,
*changing*: a hidden Markov chain that keeps its level from one label to the next with probability 1 - h
and otherwise draws it anew, all levels alike. The first level has the shares of levels in the crowd.
c and h are learned over the crowd, so that where labels do not say otherwise, annotators are constant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from annotruth.analyses.over_time.crowd import HeldOutGain, Trend, find_trend
from annotruth.analyses.over_time.sequences import Clock, Sample, Sequences, Windows
from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.latent_classes import LabelEvidence, PartedFit, Parts
from annotruth.models.robust_gpm.annotators import level_interval
from annotruth.observations import Labels

EXPECTED_CHANGES = (1.0, 2.0, 4.0)
"""The expected numbers of changes of a changing annotator that are compared."""

# Pseudo-annotators: behind the share of those who change, of whom half a one does, and behind the
# shares of levels.
_PSEUDO_ANNOTATORS, _PSEUDO_CHANGING, _PSEUDO_LEVELS = 5.0, 0.5, 1.0
_TOL, _MAX_ITER = 1e-6, 500
_MAX_LABELS = 200_000  # that the model is learned from, about

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


class ChangeModel(NamedTuple):
    """Parameters of the model."""

    levels: Floats  # the levels of reliability
    # the probability of each level at the first label, and after a jump
    start: Floats
    jump: Floats
    hazard: float  # h, the probability of a jump from one label to the next
    share: float  # c, the share of annotators who change

    def log_bayes_factors(self, session: Session, sequences: Sequences) -> Floats:
        """Return the log of how much more probable each sequence is if it changes."""
        return self.compare(session, sequences)[0]

    def compare(self, session: Session, sequences: Sequences) -> tuple[Floats, Floats]:
        """Return the log of how much more probable each sequence is if it changes than if not.

        And the posterior of each sequence's level if it is constant, sequences x levels.
        """
        logs, constant = np.zeros((sequences.n, 2)), np.empty((sequences.n, len(self.levels)))
        self._run(session, "likelihood", sequences, log_likelihood=logs, constant=constant)
        return logs[:, 1] - logs[:, 0], constant

    def p_changing(self, log_bayes_factor: Floats) -> Floats:
        """Return the probability that a sequence changes."""
        p: Floats = expit(logit(self.share) + log_bayes_factor)
        return p

    def smooth(
        self, session: Session, sequences: Sequences, p_changing: Floats, windows: Windows
    ) -> Smoothed:
        """Return the posterior of the levels; ``windows`` are those of the same sequences."""
        n_labels = len(sequences.serious)
        smoothed = Smoothed(
            np.zeros((len(windows.place), len(self.levels))),
            np.zeros(n_labels),
            np.zeros((n_labels, 2)),
        )
        bounds = {"first_window": windows.begin, "last_window": windows.end}
        results = smoothed._asdict()
        self._run(session, "smooth", sequences, p_changing=p_changing, **bounds, **results)
        return smoothed

    def _run(self, session: Session, kernel: str, sequences: Sequences, **arrays: Any) -> None:
        names = ("begin", "end", "serious", "irregular")
        given = {name: getattr(sequences, name) for name in names}
        model = {name: getattr(self, name) for name in ("levels", "start", "jump", "hazard")}
        kernel = f"over_time.{kernel}"
        session.run_over_annotators(kernel, sequences.n, **given, **model, **arrays)


class Smoothed(NamedTuple):
    """The posterior of the levels of reliability at labels of some sequences, summed or averaged."""

    # the sum of the posteriors of the labels of each window if the annotator changes, windows x
    # levels
    by_window: Floats
    # the probability that a changing annotator's level at a label is another than before
    p_change: Floats
    # the mean reliability at each label without its own evidence, labels x 2: of a constant
    # annotator, and by the model. 0 at labels of other sequences.
    without: Floats


def learn_change_model(
    session: Session, sequences: Sequences, evidence: LabelEvidence
) -> ChangeModel:
    """Return the model that makes the labels of the crowd most probable; of many labels, of some.

    ``evidence.weights`` are the constant posteriors of those whose labels the sequences are.
    """
    n_levels, n = len(evidence.levels), len(evidence.weights)
    crowd = evidence.weights.sum(axis=0) + _PSEUDO_LEVELS / n_levels
    start, jump = crowd / (n + _PSEUDO_LEVELS), np.full(n_levels, 1.0 / n_levels)
    candidates = []
    step = -(-int(sequences.lengths.sum()) // _MAX_LABELS)
    sequences = sequences.take(np.arange(0, sequences.n, step))
    for n_changes in EXPECTED_CHANGES:
        hazard = n_changes / float(sequences.lengths.mean())
        model = ChangeModel(evidence.levels, start, jump, min(hazard, 0.5), share=0.5)
        factors = model.log_bayes_factors(session, sequences)
        share = _learn_share(factors)
        total = np.logaddexp(np.log(1.0 - share), np.log(share) + factors).sum()
        candidates.append((float(total), model._replace(share=share)))
    return max(candidates, key=lambda one: one[0])[1]


def _learn_share(log_bayes_factors: Floats) -> float:
    """Return the share of annotators who change, by EM."""
    share = _PSEUDO_CHANGING / _PSEUDO_ANNOTATORS
    for _ in range(_MAX_ITER):
        before = share
        changing = expit(logit(share) + log_bayes_factors).sum()
        share = float((changing + _PSEUDO_CHANGING) / (len(log_bayes_factors) + _PSEUDO_ANNOTATORS))
        if abs(share - before) < _TOL:
            break
    return share


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


_NEGLIGIBLE = 0.05  # probability of changing, below which annotators are shown as constant


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Reliability over time."""

    # the order of the labels, and their evidence in it: one sequence per annotator
    clock: Clock
    sequences: Sequences
    changes: FoundChanges  # the changes that were found
    # the reliability before and after each of them
    before: Floats
    after: Floats
    # windows of consecutive labels of annotators, and the reliability in each with the ends of its
    # interval, windows x 3
    windows: Windows
    shown: Floats
    sample: Sample  # the labels from which what concerns the whole crowd is learned
    varying: Sample  # the labels of annotators whose probability of changing is not negligible
    # how much better held-out labels are predicted with changes than by constant annotators
    gain: HeldOutGain
    trend: Trend | None  # the crowd's trend; None if there is nothing to test

    def parts(self, labels: Labels) -> Parts:
        """Return the labels before and after changes as parts of annotators' labels.

        An annotator's first part has the annotator's code; labels without a time are in it.
        """
        place, order = self.changes.place, self.clock.order
        last = np.searchsorted(place, np.arange(len(order)), side="right") - 1
        begin = np.repeat(self.sequences.begin, self.sequences.lengths)
        is_later = (last >= 0) & (place[last] >= begin)
        of_label = labels.annotator.astype(np.int64)
        of_label[order[is_later]] = labels.n_annotators + last[is_later]
        later = labels.annotator[order[place]]
        return Parts(of_label, np.concatenate([np.arange(labels.n_annotators), later]))

    def update(self, p_serious: Floats) -> Floats:
        """Return the probabilities that labels are serious, by the reliability at each label.

        It is averaged over constant and changing annotators and over the places of changes, without
        the label's own evidence. Labels of those who hardly ever change are as they were.
        """
        updated = p_serious.copy()
        updated[self.clock.order[self.varying.place]] = self.varying.p_serious()
        return updated

    def with_parts(self, parts: Parts, parted: PartedFit) -> Trajectories:
        """Return the trajectories with the reliability of the parts before and after changes."""
        place, part = self.changes.place, parts.of_label[self.clock.order]
        return replace(
            self,
            before=parted.reliability[part[place - 1]],
            after=parted.reliability[part[place]],
        )


def find_trajectories(
    session: Session, clock: Clock, evidence: LabelEvidence, sampled: NDArray[np.bool_]
) -> Trajectories:
    """Return the reliability over time, and where annotators change.

    ``sampled`` are the annotators from whom what concerns the whole crowd is learned.
    """
    sequences = Sequences.of(evidence, clock.order, clock.begin, clock.end)
    is_long = may_change(sequences)
    long = sequences.take(is_long) if is_long.any() else sequences
    model = learn_change_model(session, long, evidence)
    log_bayes_factor, constant = model.compare(session, sequences)
    changes = find_changes(session, sequences, model, log_bayes_factor)
    found = np.searchsorted(clock.begin, changes.place, side="right") - 1
    # What is shown allows for changes that were not found, with the share that is most probable.
    p_changing = np.where(is_long, model.p_changing(log_bayes_factor), 0.0)
    p_changing[found] = 1.0
    varying = np.flatnonzero(p_changing > _NEGLIGIBLE)
    is_sampled = sampled[clock.annotator]
    if not is_sampled.any():  # as none of them has labels with a time
        is_sampled[:] = True
    chosen = np.union1d(np.flatnonzero(is_sampled), varying)
    windows = Windows.of(sequences)
    smoothed = model.smooth(
        session, sequences.take(chosen), p_changing[chosen], windows.take(chosen)
    )
    sample = _sample(sequences, np.flatnonzero(is_sampled), smoothed)
    nothing = np.full(len(changes.place), np.nan)
    return Trajectories(
        clock=clock,
        sequences=sequences,
        changes=changes,
        before=nothing,
        after=nothing,
        windows=windows,
        shown=_reliability_in_windows(model, windows, p_changing, constant, smoothed),
        sample=sample,
        varying=_sample(sequences, varying, smoothed),
        gain=HeldOutGain.of(sample.log_gains()),
        trend=find_trend(sample),
    )


def _sample(sequences: Sequences, chosen: Codes, smoothed: Smoothed) -> Sample:
    """Return the labels of some sequences as a sample."""
    some = sequences.take(chosen)
    place = some.places()
    return Sample(
        place,
        np.repeat(np.arange(some.n), some.lengths),
        some.positions(),
        sequences.serious[place],
        sequences.irregular[place],
        *smoothed.without[place].T,
    )


def _reliability_in_windows(
    model: ChangeModel, windows: Windows, p_changing: Floats, constant: Floats, smoothed: Smoothed
) -> Floats:
    """Return the reliability in each window with the ends of its interval, windows x 3.

    The posterior of the level is that of a constant annotator and that of a changing one, weighted by
    the probability of changing; where this is negligible, that of a constant annotator.
    """
    weights = np.repeat(constant, windows.end - windows.begin, axis=0)
    some = np.flatnonzero(p_changing > _NEGLIGIBLE)
    some_windows = windows.take(some)
    numbers = some_windows.numbers()
    p = np.repeat(p_changing[some], some_windows.end - some_windows.begin)[:, np.newaxis]
    changing = smoothed.by_window[numbers] / windows.n_labels[numbers, np.newaxis]
    weights[numbers] = p * changing + (1.0 - p) * weights[numbers]
    reliability = weights @ model.levels
    low, high = level_interval(weights)
    return np.column_stack(
        [reliability, np.minimum(low, reliability), np.maximum(high, reliability)]
    )
