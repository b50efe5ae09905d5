r"""GPM's labels elsewhere, known by sums: what an update of a few items needs of all the others.

As an annotator's reliability moves, so does what their labels elsewhere add to the sum of serious
labels. To first order, with a and b taken at the reliability :math:`\epsilon_0` before,

.. math:: \sum \mu(\epsilon) \approx a + b \epsilon, \quad b = \sum \frac{d \mu}{d \epsilon}, \quad
          a = \sum \mu(\epsilon_0) - b \epsilon_0,

where the items' distributions elsewhere follow too (`annotruth.kernels.gpm_response`). Put into
the M-step over n labels elsewhere and m here, :math:`\epsilon = (a + b \epsilon + \sum_m \mu) /
(n + m)`, this is

.. math:: \epsilon = \frac{a + \sum_m \mu}{n - b + m}:

they count as n - b labels, those that hold as much information as they do, of which a were seen to
be serious. So the step runs unchanged, on constant sums. Left out is what one annotator's move
does to another by way of items elsewhere; learned behaviors elsewhere count as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from annotruth.arrays import Codes, Floats, inner
from annotruth.engines import Engine
from annotruth.engines.background import Background
from annotruth.labels import Labels
from annotruth.labels.growth import Part
from annotruth.models.distribution import Distribution
from annotruth.models.em import Trace
from annotruth.models.gpm_steps import Parameters, Steps, Sums
from annotruth.models.result import Fit

# A line is no guide far from where it was drawn: labels elsewhere count for this share of their
# number at least, and keep reliabilities this share of what they were away from 0 and 1.
_LEAST = 0.02
_NEAREST = 0.1
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class GPMKnown:
    """What is known of all annotators: parameters, how many labels they gave, and their sums."""

    n_labels: NDArray[np.int64]
    at: Parameters
    sums: Sums

    @property
    def reliability(self) -> Floats:
        """Each annotator's eps."""
        return self.at.eps

    def with_newcomers(self, n_annotators: int, n_categories: int) -> Self:
        """Make room for annotators of whom nothing is known, who start as in a fit."""
        more = n_annotators - len(self.n_labels)
        pi = self.at.pi
        if len(pi):
            pi = np.concatenate([pi, np.full((more, n_categories), 1.0 / n_categories)])
        at = Parameters(np.append(self.at.eps, np.full(more, 0.5)), pi)
        sums = Sums(*(_padded(column, more) for column in self.sums))
        return type(self)(np.pad(self.n_labels, (0, more)), at, sums)

    def of(self, annotator: Codes) -> Self:
        """Take some annotators."""
        return type(self)(
            self.n_labels[annotator],
            Parameters(*(_rows(column, annotator) for column in self.at)),
            Sums(*(_rows(column, annotator) for column in self.sums)),
        )

    def replaced(self, annotator: Codes, new: Self) -> Self:
        """Put what is now known of some annotators in the place of what was."""
        n_labels = self.n_labels.copy()
        n_labels[annotator] = new.n_labels
        at = (_with(old, annotator, row) for old, row in zip(self.at, new.at, strict=True))
        sums = (_with(old, annotator, row) for old, row in zip(self.sums, new.sums, strict=True))
        return type(self)(n_labels, Parameters(*at), Sums(*sums))


class Elsewhere(NamedTuple):
    """What annotators' labels elsewhere count for, near the reliabilities ``eps``."""

    n_labels: Floats
    serious: Floats  # fewer than none, where a line through few leads there
    irregular: Floats  # by label; empty when behavior is uniform
    low: Floats
    high: Floats

    @classmethod
    def of(cls, n_labels: NDArray[np.int64], sums: Sums, eps: Floats) -> Elsewhere:
        """Count them by the information they hold."""
        worth = np.maximum(n_labels - sums.slope, _LEAST * n_labels)
        serious = sums.serious - (n_labels - worth) * eps
        some = n_labels > 0
        low = np.where(some, _NEAREST * eps, 0.0)
        high = np.where(some, 1.0 - _NEAREST * (1.0 - eps), 1.0)
        return cls(worth, serious, sums.irregular, low, high)

    def in_step(
        self, labels_here: NDArray[np.int64], sums: tuple[Floats, ...], eps: Floats, *_: object
    ) -> tuple[Floats, ...]:
        """Add them to the sums of a step; the likelihood is that of their counts."""
        serious, irregular, (log_likelihood, q) = sums
        n_labels = self.n_labels + labels_here
        serious = np.clip(serious + self.serious, self.low * n_labels, self.high * n_labels)
        log_likelihood += inner(self.serious, np.log(np.maximum(eps, _TINY)))
        log_likelihood += inner(self.n_labels - self.serious, np.log(np.maximum(1.0 - eps, _TINY)))
        return serious, irregular + self.irregular, np.array([log_likelihood, q])


def known_of(fit: Fit, engine: Engine, *, learned: bool) -> GPMKnown:
    """Add up the annotators' sums: one pass over all labels."""
    labels = fit.data
    assert fit.distribution is not None
    assert fit.reliability is not None
    with closing(engine.open(labels)) as session:
        steps = Steps(labels, session, learned=learned)
        steps.resume(fit.distribution.of_each_cell(labels))
        at = Parameters(fit.reliability, steps.behaviors(_irregular(fit, learned=learned)))
        return GPMKnown(labels.labels_per_annotator, at, steps.response(at))


def settled(
    known: GPMKnown,
    begin: GPMKnown,
    before: Part,
    after: Part,
    theta: Distribution,
    engine: Engine,
    climb: Callable[[Steps, Parameters], tuple[Parameters, Trace]],
) -> tuple[GPMKnown, Distribution, Trace]:
    """Run EM on the items of ``after``, the labels of all others known by their sums.

    ``before`` has the labels that some of these items had, and ``theta`` the distributions of
    its items; both parts have the same annotators. EM starts at the parameters of ``begin``.
    """
    people, learned = after.annotator, len(known.at.pi) > 0
    was = known.of(people)
    n_labels, sums = was.n_labels, was.sums
    if before.labels.n_labels:
        with closing(engine.open(before.labels)) as session:
            steps = Steps(before.labels, session, learned=learned)
            steps.resume(theta.of_each_cell(before.labels))
            counted = steps.response(was.at)
        n_labels = n_labels - before.labels.labels_per_annotator
        sums = Sums(*(all_ - here for all_, here in zip(sums, counted, strict=True)))
    elsewhere = Elsewhere.of(n_labels, sums, was.at.eps)
    labels_here = after.labels.labels_per_annotator
    with closing(engine.open(after.labels)) as session:
        others = Background(session, {"gpm.step": partial(elsewhere.in_step, labels_here)})
        counts = elsewhere.n_labels + labels_here
        steps = Steps(after.labels, others, learned=learned, n_labels=counts)
        steps.start()  # anew, because a category that nobody had chosen would keep its 0
        at, trace = climb(steps, off_the_ends(begin.of(people).at, 1e-3))
        serious = sums.serious + sums.slope * (at.eps - was.at.eps)
        moved = sums._replace(serious=np.clip(serious, 0.0, n_labels))
        sums = Sums(*(here + there for here, there in zip(steps.response(at), moved, strict=True)))
        found = Distribution.of_cells(after.labels, session.gather("theta"))
    return known.replaced(people, GPMKnown(n_labels + labels_here, at, sums)), found, trace


def off_the_ends(at: Parameters, distance: float) -> Parameters:
    """Move reliabilities off 0 and 1, which EM never leaves, whatever the new labels say."""
    return at._replace(eps=np.clip(at.eps, distance, 1.0 - distance))


def _irregular(fit: Fit, *, learned: bool) -> Floats:
    """Add up 1 - mu by annotator and label."""
    labels: Labels = fit.data
    shape = (labels.n_annotators, labels.n_categories)
    if not learned:
        return np.empty((0, 0))
    assert fit.p_serious is not None
    pair = labels.annotator.astype(np.int64) * labels.n_categories + labels.category_of_label()
    irregular = np.bincount(pair, 1.0 - fit.p_serious, minlength=math.prod(shape))
    return irregular.reshape(shape).astype(np.float64)


def _padded(column: Floats, more: int) -> Floats:
    if column.ndim > 1 and not len(column):
        return column  # no behaviors
    return np.pad(column, [(0, more)] + [(0, 0)] * (column.ndim - 1))


def _rows(column: Floats, annotator: Codes) -> Floats:
    return column[annotator] if len(column) else column


def _with(column: Floats, annotator: Codes, rows: Floats) -> Floats:
    if not len(column):
        return column
    column = column.copy()
    column[annotator] = rows
    return column
