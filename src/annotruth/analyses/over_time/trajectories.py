"""Reliability over time of all annotators, with what is found on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.over_time.changes import (
    ChangeModel,
    FoundChanges,
    Smoothed,
    find_changes,
    learn_change_model,
    may_change,
)
from annotruth.analyses.over_time.crowd import HeldOutGain, Trend, find_trend
from annotruth.analyses.over_time.sequences import Clock, Sample, Sequences, Windows
from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.latent_classes import LabelEvidence, PartedFit, Parts
from annotruth.models.robust_gpm.annotators import level_interval
from annotruth.observations import Labels

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
