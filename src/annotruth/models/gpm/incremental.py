r"""GPM's labels elsewhere, known by sums: what an update of a few items needs of all the others.

As an annotator's reliability moves away from :math:`\epsilon_0`, so does what their n labels
elsewhere add to the sum of serious labels, the items' distributions there following too
(`annotruth.kernels.gpm_response`). To first order it is

.. math:: \sum \mu(\epsilon) \approx \sum \mu + b (\epsilon - \epsilon_0), \quad
          b = \sum \frac{d \mu}{d \epsilon}.

Put into the M-step over these and m labels here that is

.. math:: \epsilon = \frac{(\sum \mu - b \epsilon_0) + \sum_m \mu}{n - b + m}:

they count as n - b labels, those that hold as much information as they do. So the step runs
unchanged, on constant sums. Left out is what one annotator's move does to another by way of
items elsewhere.

The fit before is taken to be at rest: :math:`\sum \mu` over all labels of an annotator to be
:math:`\epsilon_0` times their number. It is not quite that, for EM was stopped before it ended.
But a full fit would stop as far from its end, and where it is left is what an update is after.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine
from annotruth.engines.background import BackgroundSession
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.labels import Labels
from annotruth.labels.append import Part
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.gpm.steps import Parameters, Steps, Sums
from annotruth.models.result import Fit

# A line is no guide far from where it was drawn: labels elsewhere count for this share of their
# number at least, and keep reliabilities this share of what they were away from 0 and 1.
_LEAST = 0.02
_NEAREST = 0.1
_TINY = 1e-12
_SHARE = 0.01  # of the observed shares in the distributions that EM begins with


@dataclass(frozen=True, eq=False)
class GPMKnown:
    """What is known of all annotators.

    How many labels they gave, their parameters, and by how much their sum of serious labels
    follows their reliability.
    """

    n_labels: NDArray[np.int64]
    at: Parameters
    slope: Floats

    @property
    def reliability(self) -> Floats:
        """Each annotator's eps."""
        return self.at.eps

    def with_new_annotators(self, more: int, n_categories: int) -> Self:
        """Make room for annotators of whom nothing is known, who start as in a fit."""
        pi = self.at.pi
        if len(pi):
            pi = np.concatenate([pi, np.full((more, n_categories), 1.0 / n_categories)])
        at = Parameters(np.append(self.at.eps, np.full(more, 0.5)), pi)
        return type(self)(np.pad(self.n_labels, (0, more)), at, np.pad(self.slope, (0, more)))

    def of(self, annotator: Codes) -> Self:
        """Take some annotators."""
        at = Parameters(*(_rows(column, annotator) for column in self.at))
        return type(self)(self.n_labels[annotator], at, self.slope[annotator])

    def replaced(self, annotator: Codes, new: Self) -> Self:
        """Put what is now known of some annotators in the place of what was."""
        n_labels, slope = self.n_labels.copy(), self.slope.copy()
        n_labels[annotator], slope[annotator] = new.n_labels, new.slope
        at = (_with(old, annotator, rows) for old, rows in zip(self.at, new.at, strict=True))
        return type(self)(n_labels, Parameters(*at), slope)


class Elsewhere(NamedTuple):
    """What annotators' labels elsewhere count for, near the reliabilities they had."""

    n_labels: Floats
    serious: Floats  # fewer than none, where a line through few leads there
    irregular: Floats  # by label; empty when behavior is uniform
    low: Floats
    high: Floats

    @classmethod
    def of(cls, known: GPMKnown, n_here: NDArray[np.int64], here: Sums) -> Elsewhere:
        """Count what is known less the ``n_here`` labels with the sums ``here``."""
        n_labels, (eps, pi) = known.n_labels - n_here, known.at
        worth = np.maximum(n_labels - (known.slope - here.slope), _LEAST * n_labels)
        serious = known.n_labels * eps - here.serious - (n_labels - worth) * eps
        irregular = here.irregular
        if len(pi):
            of_all = (known.n_labels * (1.0 - eps))[:, np.newaxis] * pi
            irregular = np.maximum(of_all - here.irregular, 0.0)
        some = n_labels > 0
        low = np.where(some, _NEAREST * eps, 0.0)
        high = np.where(some, 1.0 - _NEAREST * (1.0 - eps), 1.0)
        return cls(worth, serious, irregular, low, high)

    def in_step(
        self, labels_here: NDArray[np.int64], sums: tuple[Floats, ...], eps: Floats, *_: object
    ) -> tuple[Floats, ...]:
        """Add them to the sums of a step; the likelihood is that of their counts."""
        serious, irregular, (log_likelihood, q) = sums
        n_labels = self.n_labels + labels_here
        serious = np.clip(serious + self.serious, self.low * n_labels, self.high * n_labels)
        log_likelihood += inner(self.serious, np.log(np.maximum(eps, _TINY)))
        others = self.n_labels - self.serious
        log_likelihood += inner(others, np.log(np.maximum(1.0 - eps, _TINY)))
        return serious, irregular + self.irregular, np.array([log_likelihood, q])


def known_of(fit: Fit, pi: Floats, engine: Engine) -> GPMKnown:
    """Find how the annotators' sums follow their reliabilities: one pass over all labels."""
    labels = fit.data
    assert fit.distribution is not None
    assert fit.reliability is not None
    with closing(engine.open(labels)) as session:
        steps = Steps(labels, session, learned=len(pi) > 0)
        steps.resume(fit.distribution.of_each_cell(labels))
        at = Parameters(fit.reliability, pi)
        return GPMKnown(labels.labels_per_annotator, at, steps.response(at).slope)


def settled(
    was: GPMKnown,
    begin: GPMKnown,
    before: Part,
    after: Part,
    theta: Distribution,
    engine: Engine,
    run_em: Callable[[Steps, Parameters], tuple[Parameters, History]],
) -> tuple[GPMKnown, Distribution, History]:
    """Run EM on the items of ``after``, the labels of all others known by their sums.

    ``before`` has the labels that some of these items had, and ``theta`` the distributions of
    its items. ``was`` is known of the annotators of both parts. EM starts at the parameters of
    ``begin``.
    """
    learned = len(was.at.pi) > 0
    with closing(engine.open(before.labels)) as session:
        steps = Steps(before.labels, session, learned=learned)
        steps.resume(theta.of_each_cell(before.labels))
        counted = steps.response(was.at)
    n_before, n_after = before.labels.labels_per_annotator, after.labels.labels_per_annotator
    elsewhere = Elsewhere.of(was, n_before, counted)
    with closing(engine.open(after.labels)) as session:
        others = BackgroundSession(session, {"gpm.step": partial(elsewhere.in_step, n_after)})
        counts = elsewhere.n_labels + n_after
        steps = Steps(after.labels, others, learned=learned, n_labels=counts)
        steps.start()
        steps.resume(_begun(after.labels, theta, session.gather("theta")))
        at, history = run_em(steps, off_the_ends(begin.at, 1e-3))
        slope = was.slope - counted.slope + steps.response(at).slope
        found = Distribution.of_cells(after.labels, session.gather("theta"))
    return GPMKnown(was.n_labels - n_before + n_after, at, slope), found, history


def _begun(labels: Labels, theta: Distribution, shares: Floats) -> Floats:
    """Begin near the distributions of the items that have one, else at the observed shares.

    Not at the distributions: a category that nobody had chosen would keep its 0.
    """
    old = (np.arange(labels.n_items) < len(theta)) & (labels.known < 0)
    share = np.where(old, _SHARE, 1.0)[labels.item_of_cell()]
    return share * shares + (1.0 - share) * theta.of_each_cell(labels)


def off_the_ends(at: Parameters, distance: float) -> Parameters:
    """Move reliabilities off 0 and 1, which EM never leaves, whatever the new labels say."""
    return at._replace(eps=np.clip(at.eps, distance, 1.0 - distance))


def _rows(column: Floats, annotator: Codes) -> Floats:
    return column[annotator] if len(column) else column


def _with(column: Floats, annotator: Codes, rows: Floats) -> Floats:
    if not len(column):
        return column
    column = column.copy()
    column[annotator] = rows
    return column
