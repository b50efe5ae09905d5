"""Dawid and Skene's labels elsewhere, known by their counts: what an update of a few items needs.

Confusion matrices are shares of counts, so the counts of the items at hand are taken away, and EM
runs on these with the counts elsewhere added in every step. What the fit before had is taken to be
at rest: counts are the old rates times how much of each class the annotator saw. They are not
quite that, for EM was stopped before it ended; but a full fit would stop as far from its end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine
from annotruth.engines.background import BackgroundSession
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.labels.append import Part
from annotruth.models.dawid_skene.steps import Counts, Parameters, Steps, right
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.entropy import xlogy

# Of chance in the rates that EM begins with: it never leaves a 0, whatever the new labels say.
_SHARE = 0.01
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class DawidSkeneKnown:
    """What is known of all annotators: rates and counts, and how many labels were right."""

    n_labels: NDArray[np.int64]
    at: Parameters
    counts: Counts
    right: Floats

    @property
    def reliability(self) -> Floats:
        """The share of each annotator's labels that name the item's class."""
        share: Floats = self.right / np.maximum(self.n_labels, 1)
        return np.minimum(share, 1.0)  # sums may round above 1

    def with_new_annotators(self, more: int, n_categories: int) -> Self:
        """Make room for annotators of whom nothing is known, who start as in a fit."""
        room = ((0, 0), (0, more), (0, 0))
        return type(self)(
            np.pad(self.n_labels, (0, more)),
            self.at._replace(rates=np.pad(self.at.rates, room, constant_values=1.0 / n_categories)),
            self.counts._replace(rates=np.pad(self.counts.rates, room)),
            np.pad(self.right, (0, more)),
        )

    def of(self, annotator: Codes) -> Self:
        """Take some annotators."""
        return type(self)(
            self.n_labels[annotator],
            self.at._replace(rates=self.at.rates.take(annotator, axis=1)),
            self.counts._replace(rates=self.counts.rates.take(annotator, axis=1)),
            self.right[annotator],
        )

    def replaced(self, annotator: Codes, new: Self) -> Self:
        """Put what is now known of some annotators in the place of what was."""
        n_labels, right = self.n_labels.copy(), self.right.copy()
        n_labels[annotator], right[annotator] = new.n_labels, new.right
        rates, counts = self.at.rates.copy(), self.counts.rates.copy()
        rates[:, annotator], counts[:, annotator] = new.at.rates, new.counts.rates
        at = Parameters(new.at.prior, rates)
        return type(self)(n_labels, at, Counts(counts, new.counts.classes), right)


class Elsewhere(NamedTuple):
    """The counts of all items but those at hand."""

    counts: Counts

    @classmethod
    def of(cls, known: DawidSkeneKnown, here: Counts) -> Elsewhere:
        """Take the counts of the items at hand away from all."""
        rates, classes = (
            np.maximum(all_ - some, 0.0) for all_, some in zip(known.counts, here, strict=True)
        )
        return cls(Counts(rates, classes))

    def in_step(self, sums: tuple[Floats, ...], prior: Floats, rates: Floats) -> tuple[Floats, ...]:
        """Add them to the sums of a step, and their likelihood."""
        counts, classes, log_likelihood = sums
        log_likelihood = (
            log_likelihood
            + xlogy(self.counts.rates, np.maximum(rates, _TINY)).sum()
            + xlogy(self.counts.classes, np.maximum(prior, _TINY)).sum()
        )
        return counts + self.counts.rates, classes + self.counts.classes, log_likelihood


def known_of(labels: Labels, at: Parameters, engine: Engine) -> DawidSkeneKnown:
    """Count how much of each class the annotators saw: one pass over all labels."""
    with closing(engine.open(labels)) as session:
        steps = Steps(labels, session)
        steps.ready()
        counted = steps.counted(at)
    counts = Counts(at.rates * counted.rates.sum(axis=0), at.prior * labels.n_items)
    return DawidSkeneKnown(labels.labels_per_annotator, at, counts, right(counted))


def settled(
    was: DawidSkeneKnown,
    begin: DawidSkeneKnown,
    before: Part,
    after: Part,
    engine: Engine,
    run_em: Callable[[Steps, Parameters], tuple[Parameters, History]],
) -> tuple[DawidSkeneKnown, Distribution, History]:
    """Run EM on the items of ``after``, the labels of all others known by their counts.

    ``before`` has the labels that some of these items had. ``was`` is known of the annotators of
    both parts. EM starts at the parameters of ``begin``.
    """
    with closing(engine.open(before.labels)) as session:
        steps = Steps(before.labels, session)
        steps.ready()
        counted = steps.counted(was.at)
    elsewhere = Elsewhere.of(was, counted)
    with closing(engine.open(after.labels)) as session:
        others = BackgroundSession(session, {"dawid_skene.step": elsewhere.in_step})
        steps = Steps(after.labels, others)
        steps.ready()
        prior, rates = begin.at
        start = Parameters(prior, (1.0 - _SHARE) * rates + _SHARE / len(prior))
        at, history = run_em(steps, start)
        here = Steps(after.labels, session).counted(at)
        found = Distribution.of_dense(session.gather("posterior"))
    now = DawidSkeneKnown(
        was.n_labels - before.labels.labels_per_annotator + after.labels.labels_per_annotator,
        at,
        Counts(elsewhere.counts.rates + here.rates, elsewhere.counts.classes + here.classes),
        was.right - right(counted) + right(here),
    )
    return now, found, history
