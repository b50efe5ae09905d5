"""RobustGPM's labels elsewhere, known by what they say of annotators' ways.

What an annotator's labels say of their ways is a sum over the labels, in the rounds' steps and
again at the end, when others' labels judge. So what the items at hand said is taken away, EM runs
on these alone, and what they say now is added. The weights of ways that the fit before had take
the place of the prior: nothing of a fit that stopped before its end moves but by new labels, as a
full fit would stop as far from its end. Where items have one truth, annotators' own rows are shares
of counts, and treated alike.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine, Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.labels.append import Part
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotator_confusion import OwnRows, presumed
from annotruth.models.robust_gpm.results import Reached, kinds_of, read_items, support_of
from annotruth.models.robust_gpm.single_precision import opinions_of
from annotruth.models.robust_gpm.steps import (
    Aside,
    Classes,
    Counts,
    Opinions,
    Parameters,
    Rows,
    Steps,
)
from annotruth.models.robust_gpm.strategies import normalised, recorded, repeated_labels

_TINY = 1e-30  # a way of no weight has a logarithm, so that new labels can speak for it


class People(NamedTuple):
    """What is known of annotators, a row each."""

    n_labels: NDArray[np.int64]
    reliability: Floats
    log_weights: Floats  # of ways, in the rounds
    annotator_prior: Floats  # of earlier work: labels that were serious, and that were not
    support: Floats  # of ways
    repeated: Codes
    rates: Floats  # own rows: labels x classes, or 0 x 0 where opinions differ
    counts: Floats  # of which they are shares, beside what is presumed

    def of(self, annotator: Codes) -> People:
        """Take some of them."""
        columns: list[NDArray[Any]] = [column[annotator] for column in self]
        return People(*columns)

    def and_(self, more: People) -> People:
        """Put others behind them."""
        return People(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))

    def replaced(self, annotator: Codes, new: People) -> People:
        """Put what is now known of some in the place of what was."""
        columns: list[NDArray[Any]] = [column.copy() for column in self]
        for column, rows in zip(columns, new, strict=True):
            column[annotator] = rows
        return People(*columns)


class Shared(NamedTuple):
    """What all annotators share, which a few labels do not move."""

    at: Parameters  # with nobody's weights
    own_prior: Floats | None  # of classes, where items have one truth
    classes: Floats  # how many items there are of each
    eps: Floats  # of ways
    log_prior: Floats  # of ways, before anything is known of an annotator
    shifts: Floats  # of the crowd's serious labels
    said: Floats  # how often each category was chosen

    def prior_of(self, people: People) -> Floats:
        """Return the log-prior of annotators' ways."""
        return self.log_prior + recorded(people.annotator_prior, self.eps)


@dataclass(frozen=True, eq=False)
class RobustKnown:
    """What is known of all annotators, and what they share."""

    people: People
    shared: Shared

    @property
    def n_labels(self) -> NDArray[np.int64]:
        """How many labels each gave."""
        return self.people.n_labels

    @property
    def reliability(self) -> Floats:
        """The reliability of each."""
        return self.people.reliability

    @property
    def end(self) -> Reached:
        """Where things stand."""
        return _end(self.people, self.shared)

    def with_new_annotators(self, more: int, n_categories: int) -> Self:
        """Make room for annotators of whom nothing is known but what all are before a label."""
        people, shared = self.people, self.shared
        prior = np.tile(shared.log_prior, (more, 1))
        newcomers = People(
            n_labels=np.zeros(more, dtype=np.int64),
            reliability=np.exp(prior) @ shared.eps,
            log_weights=prior,
            annotator_prior=np.zeros((more, 2)),
            support=np.zeros_like(prior),
            repeated=np.zeros(more, dtype=people.repeated.dtype),
            rates=np.full((more, *people.rates.shape[1:]), 1.0 / n_categories),
            counts=np.zeros((more, *people.counts.shape[1:])),
        )
        return type(self)(people.and_(newcomers), shared)

    def of(self, annotator: Codes) -> Self:
        """Take some annotators."""
        return type(self)(self.people.of(annotator), self.shared)

    def replaced(self, annotator: Codes, new: Self) -> Self:
        """Put what is now known of some annotators in the place of what was."""
        return type(self)(self.people.replaced(annotator, new.people), new.shared)


def resumed(
    end: Reached, labels: Labels, session: Session, tol: float, aside: Aside | None = None
) -> Steps:
    """Take up the rounds where they ended, on the same labels or, with ``aside``, on some."""
    if end.rows is not None:
        steps: Steps = Classes(labels, session, aside)
    else:
        steps = opinions_of(labels, session, tol, aside)
    steps.repeated = end.repeated
    return steps


def known_of(fit: Fit, engine: Engine, tol: float) -> RobustKnown:
    """Find what is known; where items have one truth, by one pass over all labels."""
    labels, end = fit.data, Reached.of(fit)
    at, rows = end.at, end.rows
    with closing(engine.open(labels)) as session:
        steps = resumed(end, labels, session, tol)
        ways = steps.ways(at.serious)
        weights = normalised(end.support + steps.log_prior(at.always, ways))
        if rows is None:
            rates = counts = np.empty((labels.n_annotators, 0, 0))
            classes = np.empty(0)
        else:
            rates = rows.rates
            before = presumed(steps.usual(at.weights, ways))
            seen = (steps.counted(rows)[0].counts + before.counts).sum(axis=1, keepdims=True)
            counts = np.maximum(rates * seen - before.counts, 0.0)
            n_items = labels.n_items + before.kinds.sum()
            classes = np.maximum(rows.prior * n_items - before.kinds, 0.0)
        shifts = steps.shift_shares(weights, ways) if isinstance(steps, Opinions) else np.ones(1)
    people = People(
        n_labels=labels.labels_per_annotator,
        reliability=weights @ ways.eps,
        log_weights=np.log(np.maximum(at.weights, _TINY)),
        annotator_prior=np.zeros((labels.n_annotators, 2))
        if labels.annotator_prior is None
        else labels.annotator_prior,
        support=end.support,
        repeated=end.repeated,
        rates=rates,
        counts=counts,
    )
    said = labels.labels_per_category.sum(axis=0) / labels.n_labels
    return RobustKnown(
        people,
        Shared(
            at._replace(weights=np.empty((0, 0))),
            None if rows is None else rows.prior,
            classes,
            ways.eps,
            ways.log_prior(at.always),
            shifts,
            said,
        ),
    )


def settled(
    was: RobustKnown,
    begin: RobustKnown,
    before: Part,
    after: Part,
    engine: Engine,
    tol: float,
    run_em: Callable[..., tuple[Any, History]],
) -> tuple[RobustKnown, Distribution, History]:
    """Run EM on the items of ``after``, all other labels known by what they say.

    ``before`` has the labels that some of these items had. ``was`` is known of the annotators of
    both parts. EM starts at the weights of ``begin``.
    """
    people, shared = was.people, was.shared
    n_before, log_prior = before.labels.labels_per_annotator, shared.prior_of(people)
    elsewhere = _without(people, shared, before.labels, engine, tol)
    # Whoever has labels elsewhere is taken to repeat the label that these were judged by.
    alone = people.n_labels == n_before
    repeated = repeated_labels(after.labels.labels_per_category, shared.said)
    elsewhere = elsewhere._replace(repeated=np.where(alone, repeated, people.repeated))
    with closing(engine.open(after.labels)) as session:
        aside = Aside(elsewhere.log_weights, shared.shifts)
        steps = resumed(_end(elsewhere, shared), after.labels, session, tol, aside)
        at, history = run_em(steps, start=begin.end.at)
        rows, counts = None, elsewhere.counts
        if isinstance(steps, Classes):
            rows, history = run_em(OwnRows(steps, at, Counts(counts, shared.classes)))
            counts = counts + steps.counted(rows)[0].counts
        ways = steps.ways(at.serious)
        support = elsewhere.support + support_of(steps, at, rows)
        weights = normalised(support + log_prior)
        end = Reached(at, rows, support, elsewhere.repeated)
        read_items(steps, end, kinds_of(steps, end, weights), weights)
        theta = session.gather("theta")
        log_weights = elsewhere.log_weights + steps.evidence(at, ways)
    now = People(
        n_labels=people.n_labels - n_before + after.labels.labels_per_annotator,
        reliability=weights @ ways.eps,
        log_weights=log_weights - log_weights.max(axis=1, keepdims=True),
        annotator_prior=people.annotator_prior,
        support=support,
        repeated=elsewhere.repeated,
        rates=people.rates if rows is None else rows.rates,
        counts=counts,
    )
    found = Distribution.of_dense(theta / theta.sum(axis=1, keepdims=True))
    return RobustKnown(now, shared), found, history


def _end(people: People, shared: Shared) -> Reached:
    """Say where the rounds ended, for some annotators or all."""
    at = shared.at._replace(weights=normalised(people.log_weights))
    rows = None if shared.own_prior is None else Rows(shared.own_prior, people.rates)
    return Reached(at, rows, people.support, people.repeated)


def _without(was: People, shared: Shared, labels: Labels, engine: Engine, tol: float) -> People:
    """Take away what some labels said of their annotators."""
    end = _end(was, shared)
    with closing(engine.open(labels)) as session:
        steps = resumed(end, labels, session, tol, Aside(was.log_weights, shared.shifts))
        said = steps.evidence(end.at, steps.ways(end.at.serious))
        support = support_of(steps, end.at, end.rows)
        counts = was.counts
        if end.rows is not None:
            counts = np.maximum(counts - steps.counted(end.rows)[0].counts, 0.0)
    return was._replace(
        log_weights=was.log_weights - said, support=was.support - support, counts=counts
    )
