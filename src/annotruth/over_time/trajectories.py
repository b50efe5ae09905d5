"""Reliability over time of all annotators, with what is found on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.label_evidence import LabelEvidence, PartedFit, Parts
from annotruth.over_time.change_model import ChangeModel, Smoothed, learn_change_model
from annotruth.over_time.changes import FoundChanges, find_changes, may_change
from annotruth.over_time.clock import Clock
from annotruth.over_time.crowd import Trend, find_trend
from annotruth.over_time.seconds import HeldOutGain
from annotruth.over_time.sequences import Sequences

_LABELS_PER_WINDOW, _MAX_WINDOWS = 5, 20


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Reliability over time.

    Attributes
    ----------
    clock, sequences
        The order of the labels, and their evidence in it: one sequence per annotator.
    model
        The model of changes.
    p_changing
        The probability that each annotator changes.
    changes
        The changes that were found.
    before, after
        The reliability before and after each of them.
    window
        The window of each label: consecutive labels of an annotator, for the table.
    smoothed
        The posterior of the levels of reliability.
    gain
        How much better held-out labels are predicted with changes than by constant annotators.
    trend
        The crowd's trend; None if there is nothing to test.

    Examples
    --------
    >>> import annotruth as at
    >>> made = at.simulate.changing(n_items=60, n_annotators=10, seed=0)
    >>> at.fit(made.labels).over_time().columns[:4].tolist()
    ['annotator', 'from', 'to', 'n_labels']
    """

    clock: Clock
    sequences: Sequences
    model: ChangeModel
    p_changing: Floats
    changes: FoundChanges
    before: Floats
    after: Floats
    window: Codes
    smoothed: Smoothed
    gain: HeldOutGain
    trend: Trend | None

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

    def with_parts(self, session: Session, parts: Parts, parted: PartedFit) -> Trajectories:
        """Return the trajectories by the fit of the parts."""
        clock, place = self.clock, self.changes.place
        sequences = Sequences.of(parted.evidence, clock.order, clock.begin, clock.end)
        part = parts.of_label[clock.order]
        # Those in whom a change was found are shown as changing, as the parts are.
        p_changing = self.p_changing.copy()
        p_changing[np.searchsorted(clock.begin, place, side="right") - 1] = 1.0
        return replace(
            self,
            sequences=sequences,
            before=parted.reliability[part[place - 1]],
            after=parted.reliability[part[place]],
            smoothed=self.model.smooth(session, sequences, p_changing, self.window),
        )


def find_trajectories(session: Session, clock: Clock, evidence: LabelEvidence) -> Trajectories:
    """Return the reliability over time, and where annotators change."""
    sequences = Sequences.of(evidence, clock.order, clock.begin, clock.end)
    is_long = may_change(sequences)
    long = sequences.take(is_long) if is_long.any() else sequences
    model = learn_change_model(session, long, evidence)
    factors = model.log_bayes_factors(session, sequences)
    changes = find_changes(session, sequences, model, factors)
    found = np.searchsorted(clock.begin, changes.place, side="right") - 1
    model = model.with_share_of(len(np.unique(found)), long.n)
    p_changing = model.p_changing(factors)
    p_changing[~is_long] = 0.0
    window = _windows(sequences)
    smoothed = model.smooth(session, sequences, p_changing, window)
    constant, changing = smoothed.without.T
    difference = sequences.serious - sequences.irregular
    gains = np.log(sequences.irregular + changing * difference)
    gains -= np.log(sequences.irregular + constant * difference)
    nothing = np.full(len(changes.place), np.nan)
    return Trajectories(
        clock=clock,
        sequences=sequences,
        model=model,
        p_changing=p_changing,
        changes=changes,
        before=nothing,
        after=nothing,
        window=window,
        smoothed=smoothed,
        gain=HeldOutGain.of(gains),
        trend=find_trend(sequences, constant),
    )


def _windows(sequences: Sequences) -> Codes:
    """Return the window of each label: a few consecutive labels of an annotator."""
    lengths = sequences.lengths
    n_windows = np.clip(lengths // _LABELS_PER_WINDOW, 1, _MAX_WINDOWS)
    first = np.cumsum(n_windows) - n_windows
    sequence = np.repeat(np.arange(sequences.n), lengths)
    windows: Codes = (
        first[sequence] + sequences.positions() * n_windows[sequence] // lengths[sequence]
    )
    return windows
