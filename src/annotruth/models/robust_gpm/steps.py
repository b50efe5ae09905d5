"""The rounds of RobustGPM over a session: items of one of K kinds, annotators of one of G ways."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, Singles
from annotruth.labels import LabelSummary
from annotruth.models.em import Monitor
from annotruth.models.robust_gpm.strategies import (
    Strategies,
    mixed_over,
    normalised,
    recorded,
    repeated_labels,
    strategies_of,
    weighed_by,
)
from annotruth.models.squarem import Squarem, probabilities, shares
from annotruth.models.warm_start import with_new_rows

MEANS = 16
"""How many means the shapes of opinion have."""

SHIFTS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
"""How far the logit of a serious opinion's mean may be moved."""

EACH_CLASS = 0.5
"""Items of each class, and labels of each in each, seen before the first."""

LEAST_RATE = 1e-12
"""The kernels count on no rate being lower."""

_CONCENTRATIONS = (5.0, 15.0)
N_SHAPES = MEANS * len(_CONCENTRATIONS)
"""How many shapes of opinion there are."""

_SHIFT_DEVIATION = 0.5
_EACH_SHAPE = 0.2  # items of each shape seen before the first
_ALWAYS, _NOT_ALWAYS = 2.0, 1.0  # annotators of either sort seen before the first
_PRESUMED = 50.0  # labels on and next to the class seen before the first


class Parameters(NamedTuple):
    """What is shared: each annotator's weights of ways, the items' kinds, and their shapes."""

    weights: Floats | Singles  # annotators x ways
    prior: Floats  # one number a kind of item
    always: float  # the share of annotators who are always serious
    serious: Floats  # shifts x categories x kinds of items


class Counts(NamedTuple):
    """Sums of the items' posteriors."""

    counts: Floats  # over each annotator's labels: annotators x categories x kinds of items
    kinds: Floats


class Rows(NamedTuple):
    """What the second round shares: annotators' own rates, annotators x labels x classes."""

    prior: Floats
    rates: Floats


class Swept(NamedTuple):
    """What a sweep of the labels tells of the parameters."""

    here: Counts
    log_likelihood: float
    divergence: float  # of the weights of ways from their prior, over all annotators


class Steps:
    """Variational EM over a session: items of one of K kinds, annotators of one of G ways."""

    each_kind: float
    objective_name = "the bound per label"

    def __init__(self, labels: LabelSummary, session: Session, gate: Floats) -> None:
        people, categories, kinds = labels.n_annotators, labels.n_categories, gate.shape[1]
        self.labels = labels
        self.session = session
        self.gate = gate
        self.counts_shape = (people, categories, kinds)
        self._count = Pass(
            "robust_gpm.step",
            inputs=(Input("prior"), Input("gate"), Input("rates", annotator_axis=0)),
            sums=(
                Sum("counts", self.counts_shape, annotator_axis=0),
                Sum("kinds", (kinds,)),
                Sum("log_likelihood", (1,)),
            ),
        )

    @cached_property
    def repeated(self) -> Codes:
        """The label each annotator would repeat."""
        return repeated_labels(self.labels.labels_per_category)

    def ways(self, serious: Floats) -> Strategies:
        """Tabulate the ways of answering."""
        raise NotImplementedError

    def start(self) -> Parameters:
        """Say where to begin."""
        raise NotImplementedError

    def update_serious(
        self, old: Floats, ways: Strategies, weights: Floats | Singles, counts: Floats
    ) -> Floats:
        """Shapes stay as they are unless they are learned."""
        return old

    def log_prior_of_serious(self, serious: Floats) -> float:
        """Return the log-prior of learned shapes."""
        return 0.0

    def step(self, old: Parameters) -> tuple[Parameters, Monitor]:
        """Pass the labels once, then update ways, shares and shapes in turn."""
        ways = self.ways(old.serious)
        swept = self.swept(old, ways)
        monitor = Monitor(swept.log_likelihood, self.bound(old, swept) / self.labels.n_labels)
        return self.updated(old, ways, swept.here), monitor

    def counted(self, rows: Rows) -> tuple[Counts, float]:
        """Pass the labels once: the counts by these rates, and the log-likelihood."""
        sums = self.session.run_pass(
            self._count, prior=rows.prior, gate=self.gate, rates=rows.rates
        )
        return Counts(sums["counts"], sums["kinds"]), float(sums["log_likelihood"][0])

    def swept(self, at: Parameters, ways: Strategies) -> Swept:
        """Pass the labels once."""
        here, total = self.counted(Rows(at.prior, self.rates(at, ways)))
        log_ratio = np.log(np.maximum(at.weights, 1e-300)) - self.log_prior(at.always, ways)
        return Swept(here, total, float((at.weights * log_ratio).sum()))

    def updated(self, old: Parameters, ways: Strategies, here: Counts) -> Parameters:
        """Update ways, the share of the always serious, shapes and prior, in this order."""
        weights = self.weights(here.counts, ways, self.log_prior(old.always, ways))
        steady = weights[:, ways.eps == ways.eps.max()].sum(dtype=np.float64)
        always = (steady + _ALWAYS) / (len(weights) + _ALWAYS + _NOT_ALWAYS)
        serious = self.update_serious(old.serious, ways, weights, here.counts)
        prior = here.kinds + self.each_kind
        return Parameters(weights, prior / prior.sum(), float(always), serious)

    def weights(self, counts: Floats, ways: Strategies, log_prior: Floats) -> Floats | Singles:
        """Weigh each annotator's ways by the counts."""
        found = weighed_by(counts, ways.log_plain, ways.log_repeating, self.repeated)
        return normalised(found + log_prior)

    def log_prior(self, always: float, ways: Strategies) -> Floats:
        """Return the log-prior of ways: one row for all, or one each where records differ."""
        prior = ways.log_prior(always)[np.newaxis]
        if self.labels.annotator_prior is None:
            return prior
        return prior + recorded(self.labels.annotator_prior, ways.eps)

    def usual(self, weights: Floats | Singles, ways: Strategies) -> Floats:
        """Return how likely labels are by the annotators' ways."""
        return mixed_over(weights, ways.plain, ways.repeating, self.repeated)

    def rates(self, at: Parameters, ways: Strategies) -> Floats:
        """Return what labels say of kinds: the geometric mean over the annotator's ways."""
        mixed = mixed_over(at.weights, ways.log_plain, ways.log_repeating, self.repeated)
        rates: Floats = np.exp(mixed)
        return rates

    def bound(self, at: Parameters, swept: Swept) -> float:
        """Compute the lower bound of the log-posterior."""
        of_prior = self.each_kind * np.log(at.prior).sum()
        of_always = _ALWAYS * np.log(at.always) + _NOT_ALWAYS * np.log1p(-at.always)
        return float(
            swept.log_likelihood
            - swept.divergence
            + of_prior
            + of_always
            + self.log_prior_of_serious(at.serious)
        )

    def resume(self, previous: Parameters) -> Parameters:
        """Return parameters of a previous fit; new annotators have the prior's weights."""
        start = self.start()
        return previous._replace(weights=with_new_rows(previous.weights, start.weights))

    def finalize(self, at: Parameters) -> float:
        """Return the log-likelihood with the annotators' mean log-rates, items summed out."""
        return self.swept(at, self.ways(at.serious)).log_likelihood

    def support(self, at: Parameters, ways: Strategies) -> Floats:
        """Sum each annotator's log-likelihood in every way, from the others' labels."""
        return self.support_by(at.prior, self.rates(at, ways), ways)

    def support_by(self, prior: Floats, rates: Floats, ways: Strategies) -> Floats:
        """Sum the same where items are judged by these rates."""
        one = Pass(
            "robust_gpm.leave_one_out",
            inputs=(
                *(Input("prior"), Input("gate"), Input("rates", annotator_axis=0)),
                *(Input("plain"), Input("repeating"), Input("repeated", annotator_axis=0)),
            ),
            sums=(Sum("log_likelihood", (len(rates), len(ways.eps)), annotator_axis=0),),
        )
        plain, repeating = (
            np.ascontiguousarray(table.transpose(1, 2, 0)) for table in (ways.plain, ways.repeating)
        )
        sums = self.session.run_pass(
            one,
            prior=prior,
            gate=self.gate,
            rates=rates,
            plain=plain,
            repeating=repeating,
            repeated=self.repeated,
        )
        return sums["log_likelihood"]

    def acceleration(self) -> Squarem[Parameters]:
        """Leap with everything; shapes that are not learned stand still."""
        return Squarem(Parameters, shares(axis=1), shares(axis=0), _probability, shares(axis=1))

    def opinions(self, at: Parameters, ways: Strategies) -> Floats:
        """Give the serious distribution of each kind of item, kinds x categories."""
        raise NotImplementedError


class Opinions(Steps):
    """Kinds of items are shapes of opinion, discretised Betas."""

    each_kind = _EACH_SHAPE

    def __init__(self, labels: LabelSummary, session: Session) -> None:
        serious = _shapes(labels.n_categories)
        weight = np.exp(-0.5 * (SHIFTS / _SHIFT_DEVIATION) ** 2)
        self._shapes = serious
        self._ways = strategies_of(serious, weight / weight.sum(), ordinal=True)
        # A known truth speaks as one serious label more.
        super().__init__(labels, session, serious[len(SHIFTS) // 2])

    def ways(self, serious: Floats) -> Strategies:
        """Return the one table: shapes are fixed."""
        return self._ways

    def start(self) -> Parameters:
        """Begin with everybody in every way as the prior has it, and all shapes alike."""
        people, _, kinds = self.counts_shape
        always = 0.65
        first = normalised(self.log_prior(always, self._ways))
        weights = np.broadcast_to(first, (people, first.shape[1]))
        return Parameters(weights, np.full(kinds, 1.0 / kinds), always, self._shapes)

    def shift_shares(self, weights: Floats | Singles, ways: Strategies) -> Floats:
        """Return how much of the crowd's serious labels every shift has."""
        weight = self.labels.labels_per_annotator @ (weights * ways.eps)
        by_shift = np.bincount(ways.shift, weight)
        shares: Floats = by_shift / by_shift.sum()
        return shares

    def opinions(self, at: Parameters, ways: Strategies) -> Floats:
        """Average the shapes as the crowd shifts them: the crowd's taste is its own."""
        mean: Floats = np.tensordot(self.shift_shares(at.weights, ways), self._shapes, axes=1).T
        return mean

    def shifts_of_score(self, prior: Floats) -> Floats:
        """Return by how much every shift moves the score of a serious label, over all items."""
        scores = self.labels.scale.values @ self._shapes @ prior
        moves: Floats = scores - scores[len(SHIFTS) // 2]
        return moves


class Classes(Steps):
    """Kinds of items are classes, and serious people have one confusion matrix."""

    each_kind = EACH_CLASS

    def __init__(self, labels: LabelSummary, session: Session) -> None:
        super().__init__(labels, session, np.eye(labels.n_categories))
        self._ordinal = labels.scale.is_ordinal

    def ways(self, serious: Floats) -> Strategies:
        """Tabulate the ways anew: the crowd's matrix moves."""
        return strategies_of(serious, np.ones(1), ordinal=self._ordinal)

    def start(self) -> Parameters:
        """Begin with the observed shares as posteriors."""
        _, _, classes = self.counts_shape
        shapes = (Sum("counts", self.counts_shape, annotator_axis=0), Sum("kinds", (classes,)))
        counts, kinds = self.session.run_pass(Pass("robust_gpm.start", sums=shapes)).values()
        serious = _columns(counts.sum(axis=0) + EACH_CLASS)[np.newaxis]
        blank = Parameters(np.empty((0, 0)), np.empty(0), 0.3, serious)
        return self.updated(blank, self.ways(serious), Counts(counts, kinds))

    def update_serious(
        self, old: Floats, ways: Strategies, weights: Floats | Singles, counts: Floats
    ) -> Floats:
        """Count serious labels alone: one EM step on the crowd's matrix."""
        plain, repeating = ways.serious, ways.serious_repeating
        share = mixed_over(weights, plain, repeating, self.repeated)
        mass = (share * counts).sum(axis=0)
        if self._ordinal:
            # Inverted labels are serious ones from the other end, and count there.
            flipped = ways.inverted[:, np.newaxis, np.newaxis] * old[0, ::-1]
            plain, repeating = flipped / ways.plain, flipped / ways.repeating
            share = mixed_over(weights, plain, repeating, self.repeated)
            mass += (share * counts).sum(axis=0)[::-1]
        return _columns(mass + EACH_CLASS)[np.newaxis]

    def log_prior_of_serious(self, serious: Floats) -> float:
        """Return the log-prior of the crowd's matrix."""
        return float(EACH_CLASS * np.log(serious).sum())

    def opinions(self, at: Parameters, ways: Strategies) -> Floats:
        """Make a class certain of itself."""
        return np.eye(self.labels.n_categories)

    def neighbours(self, at: Parameters) -> float:
        """Compare serious labels next to the class with those on it; 0 on nominal scales."""
        if not self._ordinal:
            return 0.0
        joint = self.labels.n_labels * at.serious[0] * at.prior
        next_to = np.trace(joint, 1) + np.trace(joint, -1)
        return float((next_to + _PRESUMED) / (np.trace(joint) + _PRESUMED))


def _probability(x0: float, x1: float, x2: float, longest: float) -> float:
    return float(probabilities(np.array(x0), np.array(x1), np.array(x2), longest))


def _shapes(n_categories: int) -> Floats:
    """Discretise Betas: shifts x categories x shapes; a shift moves the logit of the mean."""
    mean = (np.arange(MEANS) + 0.5) / MEANS
    logit = np.log(mean / (1.0 - mean))
    moved = 1.0 / (1.0 + np.exp(-(logit + SHIFTS[:, np.newaxis])))  # shifts x means
    size = np.array(_CONCENTRATIONS)[:, np.newaxis]
    alpha = (size * moved[:, np.newaxis]).reshape(len(SHIFTS), -1, 1)
    beta = (size * (1.0 - moved[:, np.newaxis])).reshape(len(SHIFTS), -1, 1)
    edges = np.arange(n_categories + 1) / n_categories
    mass = np.maximum(np.diff(betainc(alpha, beta, edges), axis=2), LEAST_RATE)
    return _columns(mass.transpose(0, 2, 1), axis=1)


def _columns(mass: Floats, axis: int = 0) -> Floats:
    shares: Floats = mass / mass.sum(axis=axis, keepdims=True)
    return shares
