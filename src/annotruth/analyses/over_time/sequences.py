"""The order in which annotators gave their labels: sequences, windows and samples of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.latent_classes import LabelEvidence
from annotruth.observations import Labels

_LABELS_PER_WINDOW, _MAX_WINDOWS = 5, 20
MAX_LABELS = 100_000
"""Of more labels, about so many are used, if these are of enough annotators."""

_MIN_ANNOTATORS = 100


class SortedLabels(NamedTuple):
    """Labels sorted by annotator, and within one by something else."""

    order: Codes  # the places of the labels in the layout
    annotator: Codes  # the annotators of these labels, each once
    # the labels of each of them are ``order[begin:end]``
    begin: Codes
    end: Codes

    def first(self) -> NDArray[np.bool_]:
        """Return which labels are the first of their annotator."""
        is_first = np.zeros(len(self.order), dtype=np.bool_)
        is_first[self.begin] = True
        return is_first


class Clock(NamedTuple):
    """Labels in order of time within each annotator."""

    kind: str  # what the order is by: "time" or "order"
    values: pa.Array  # the time or order of each label, in the layout; null where it is missing
    numbers: Floats  # the same as numbers
    # the labels that have one, as in `SortedLabels`
    order: Codes
    annotator: Codes
    begin: Codes
    end: Codes

    @property
    def is_date(self) -> bool:
        """Whether labels have dates."""
        return bool(pa.types.is_timestamp(self.values.type))

    def at(self, places: Codes) -> pa.Array:
        """Return the times of the sorted labels at some places."""
        return self.values.take(pa.array(self.order[places]))


def read_clock(session: Session, labels: Labels) -> Clock | None:
    """Return the order of the labels by their time, else by their order.

    None if labels have neither, or no annotator has labels of different times. Labels of the same
    time are in the order of the column ``order``, and then of the input.
    """
    ranks = {}
    for kind in ("time", "order"):
        values = labels.covariates.labels.get(kind)
        if values is not None and (pa.types.is_timestamp(values.type) or is_number(values)):
            ranks[kind] = values
    for kind, values in ranks.items():
        numbers, has_time = to_floats(values)
        found = sort_labels(session, labels, has_time, numbers)
        steps = np.diff(numbers[found.order])[~found.first()[1:]]
        if not (steps > 0.0).any():
            continue
        if kind == "time" and "order" in ranks and (steps == 0.0).any():
            among_equal = np.nan_to_num(to_floats(ranks["order"])[0], nan=np.inf)
            found = sort_labels(session, labels, has_time, among_equal, numbers)
        return Clock(kind, values, numbers, *found)
    return None


def sort_labels(
    session: Session, labels: Labels, some: NDArray[np.bool_], *keys: Floats
) -> SortedLabels:
    """Return some labels sorted by annotator, by the last key, .., and by row."""
    order = np.empty(labels.n_labels, dtype=np.int64)
    order[labels.row] = np.arange(labels.n_labels)
    if not some.all():
        order = order[some[order]]
    annotator = labels.annotator[order]
    # The stable sort of small integers is many times as fast.
    small = np.uint16 if labels.n_annotators <= 1 << 16 else np.int64
    order = order[np.argsort(annotator.astype(small), kind="stable")]
    n_labels = np.bincount(annotator, minlength=labels.n_annotators)
    names = np.flatnonzero(n_labels)
    end = np.cumsum(n_labels[names])
    begin = end - n_labels[names]
    for key in keys:
        arrays = {"begin": begin, "end": end, "key": key, "order": order}
        session.run_over_annotators("over_time.sort_within", len(names), **arrays)
    return SortedLabels(order, names, begin, end)


def is_number(values: pa.Array) -> bool:
    """Return whether a column holds numbers."""
    return bool(pa.types.is_floating(values.type) or pa.types.is_integer(values.type))


def to_floats(values: pa.Array) -> tuple[Floats, NDArray[np.bool_]]:
    """Return times as numbers, NaN where they are missing, and which are not."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    numbers = pc.fill_null(values.cast(pa.float64(), safe=False), np.nan).to_numpy()
    return numbers, np.isfinite(numbers)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Labels sorted by annotator and, within one, in order of time; and sequences of them."""

    # S and I of each label, as in `annotruth.models.latent_classes.LabelEvidence`
    serious: Floats
    irregular: Floats
    # the labels of sequence i are ``begin[i]:end[i]``: those of an annotator, or a part of them
    begin: Codes
    end: Codes

    @classmethod
    def of(cls, evidence: LabelEvidence, order: Codes, begin: Codes, end: Codes) -> Sequences:
        """Return sequences of labels, whose places in the layout are ``order``."""
        return cls(evidence.if_serious[order], evidence.if_irregular[order], begin, end)

    @property
    def n(self) -> int:
        """The number of sequences."""
        return len(self.begin)

    @property
    def lengths(self) -> Codes:
        """The number of labels of each sequence."""
        return self.end - self.begin

    def take(self, chosen: NDArray[np.integer[Any]] | NDArray[np.bool_]) -> Sequences:
        """Return some of the sequences, of the same labels."""
        return Sequences(self.serious, self.irregular, self.begin[chosen], self.end[chosen])

    def positions(self) -> Codes:
        """Return the position of each label in its sequence, from 0, sequence after sequence."""
        if not self.n:
            return np.empty(0, dtype=np.int64)
        ends = np.cumsum(self.lengths)
        positions: Codes = np.arange(ends[-1]) - np.repeat(ends - self.lengths, self.lengths)
        return positions

    def places(self) -> Codes:
        """Return the place of each label of the sequences, sequence after sequence."""
        return np.repeat(self.begin, self.lengths) + self.positions()


class Windows(NamedTuple):
    """Windows of the labels of sequences, which they divide evenly."""

    # the windows of sequence i are ``begin[i]:end[i]``
    begin: Codes
    end: Codes
    place: Codes  # the place of the first label of each window
    n_labels: Codes  # the number of labels of each window

    @classmethod
    def of(cls, sequences: Sequences) -> Windows:
        """Return the windows of sequences."""
        lengths = sequences.lengths
        n_windows = np.clip(lengths // _LABELS_PER_WINDOW, 1, _MAX_WINDOWS)
        end = np.cumsum(n_windows)
        begin = end - n_windows
        number = np.arange(end[-1]) - np.repeat(begin, n_windows)
        # Window w of m begins at the first position i of n with i m / n >= w.
        first, last = (
            -(-w * np.repeat(lengths, n_windows) // np.repeat(n_windows, n_windows))
            for w in (number, number + 1)
        )
        return cls(begin, end, np.repeat(sequences.begin, n_windows) + first, last - first)

    def take(self, chosen: NDArray[np.integer[Any]]) -> Windows:
        """Return the windows of some of the sequences, numbered as before."""
        return self._replace(begin=self.begin[chosen], end=self.end[chosen])

    def numbers(self) -> Codes:
        """Return the numbers of the windows of the sequences."""
        n_windows = self.end - self.begin
        numbers: Codes = np.arange(n_windows.sum()) + np.repeat(
            self.end - np.cumsum(n_windows), n_windows
        )
        return numbers


class Sample(NamedTuple):
    """Labels in order of time, of some annotators."""

    place: Codes  # the place of each label among the sorted labels
    sequence: Codes  # the number of its annotator, from 0
    position: Codes  # its position among the annotator's labels, from 0
    # S and I, as in `annotruth.models.latent_classes.LabelEvidence`
    serious: Floats
    irregular: Floats
    # the annotator's reliability at the label without its own evidence: of a constant annotator,
    # and by the model of changes
    constant: Floats
    changing: Floats

    @property
    def difference(self) -> Floats:
        """S - I of each label."""
        return self.serious - self.irregular

    def log_gains(self) -> Floats:
        """Return how much more probable labels are by the model of changes, as logs."""
        changing, constant = (
            np.log(self.irregular + reliability * self.difference)
            for reliability in (self.changing, self.constant)
        )
        gains: Floats = changing - constant
        return gains

    def p_serious(self) -> Floats:
        """Return the probability that each label is serious, by the model of changes."""
        serious = self.changing * self.serious
        p: Floats = serious / (serious + (1.0 - self.changing) * self.irregular)
        return p


def sample_annotators(labels: Labels) -> NDArray[np.bool_]:
    """Return which annotators are in the sample: all, or of many labels every second, third, ..."""
    step = min(-(-labels.n_labels // MAX_LABELS), max(labels.n_annotators // _MIN_ANNOTATORS, 1))
    sampled = np.zeros(labels.n_annotators, dtype=np.bool_)
    sampled[::step] = True
    return sampled
