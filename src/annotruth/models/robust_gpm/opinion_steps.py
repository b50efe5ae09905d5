"""RobustGPM's variational EM where opinions differ: shapes of opinion, and response strategies.

The equations are in the docstring of `annotruth.models.robust_gpm.model.RobustGPM`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, Singles, aligned_empty
from annotruth.kernels.shared import LOG_ZERO, pad
from annotruth.models.em import Monitor
from annotruth.models.latent_classes import POSTERIOR_INPUTS, ExpectedCounts
from annotruth.models.robust_gpm.opinions import (
    N_BROAD,
    N_MEANS,
    STRATEGY_INPUTS,
    OpinionShapes,
    leave_one_out,
)
from annotruth.models.robust_gpm.strategies import (
    find_repeated_labels,
    normalise_log_weights,
)
from annotruth.models.squarem import Squarem, probabilities, shares
from annotruth.models.warm_start import with_new_rows

_LOG_POSTERIOR_INPUTS = (Input("log_prior"), Input("log_likelihood", annotator_axis=0))

_ALWAYS_START = 0.65  # the share of annotators who are always serious, before the first step

# Pseudo-counts of annotators who are always serious, and of others.
_ALWAYS_PSEUDO_COUNT, _NOT_ALWAYS_PSEUDO_COUNT = 2.0, 1.0


class OpinionParameters(NamedTuple):
    """The parameters where opinions differ.

    Attributes
    ----------
    strategy_weights
        q[s, g]: the posterior of each annotator's response strategies.
    class_prior
        p[k]: the share of items in each latent class.
    always_share
        The share of annotators who are always serious.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.opinion_steps import OpinionSteps
    >>> from annotruth.models.robust_gpm.opinions import OpinionShapes
    >>> labels = at.simulate.crowd(n_items=20, n_annotators=6, seed=0).labels
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     start = OpinionSteps(OpinionShapes(labels), session).start()
    >>> start.class_prior.shape
    (32,)
    """

    strategy_weights: Floats | Singles
    class_prior: Floats
    always_share: float


class EStepResult(NamedTuple):
    """What an E-step returns: expected counts, and the terms of the evidence lower bound.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.robust_gpm.opinion_steps import EStepResult
    >>> from annotruth.models.latent_classes import ExpectedCounts
    >>> counts = ExpectedCounts(np.ones((3, 2, 2)), np.array([4.0, 6.0]))
    >>> EStepResult(counts, log_likelihood=-12.5, divergence=1.5).log_likelihood
    -12.5
    """

    counts: ExpectedCounts
    log_likelihood: float
    divergence: float  # of the strategies' weights from their prior, over all annotators


class OpinionSteps:
    """Variational EM over a session: shapes of opinion of items, response strategies of annotators.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.opinion_steps import OpinionSteps
    >>> from annotruth.models.robust_gpm.opinions import OpinionShapes
    >>> labels = at.simulate.crowd(n_items=20, n_annotators=6, seed=0).labels
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     steps = OpinionSteps(OpinionShapes(labels), session)
    ...     first, before = steps.step(steps.start())
    ...     second, after = steps.step(first)
    >>> after.objective > before.objective
    True
    """

    objective_name = "the bound per label"

    def __init__(self, items: OpinionShapes, session: Session) -> None:
        labels = items.labels
        self.items = items
        self.labels = labels
        self.session = session
        self.repeated_label: Codes = find_repeated_labels(
            labels.labels_per_category, break_ties=True, weight=labels.annotator_weight
        )
        self._repeated_label = session.to_engine(self.repeated_label)
        self.counts_shape = (labels.n_annotators, labels.n_categories, items.n_classes)
        self._n_labels = labels.counted_labels()
        self._n_annotators = labels.weighted(np.ones(labels.n_annotators)).sum()
        self.count_sums = (
            Sum("labels", self.counts_shape, annotator_axis=0),
            Sum("classes", (items.n_classes,)),
            Sum("log_likelihood", (1,)),
        )
        self._count = Pass("robust_gpm.step", inputs=POSTERIOR_INPUTS, sums=self.count_sums)

    def start(self) -> OpinionParameters:
        """Return the prior of the strategies, and all classes alike."""
        n_annotators, _, n_classes = self.counts_shape
        prior = normalise_log_weights(self._log_prior(_ALWAYS_START))
        weights = np.broadcast_to(self._to_engine(prior), (n_annotators, prior.shape[1]))
        return OpinionParameters(weights, np.full(n_classes, 1.0 / n_classes), _ALWAYS_START)

    def start_beside(self, people: OpinionParameters) -> OpinionParameters:
        """Return the parameters of a fit of some annotators; the others have the weights of a start."""
        start = self.session.to_host(self.start().strategy_weights)
        weights = with_new_rows(people.strategy_weights, start)
        return people._replace(strategy_weights=self.session.to_engine(weights))

    def step(self, old: OpinionParameters) -> tuple[OpinionParameters, Monitor]:
        """Pass over the labels once and update all parameters."""
        result = self.e_step(old)
        bound = self.lower_bound(old, result.log_likelihood, result.divergence)
        monitor = Monitor(result.log_likelihood, bound / self._n_labels)
        return self.m_step(old, result.counts), monitor

    def e_step(self, parameters: OpinionParameters) -> EStepResult:
        """Compute the items' posteriors and return their sums."""
        sums = self.session.run_pass(
            self._count,
            prior=parameters.class_prior,
            known_truth=self.items.known_truth,
            likelihood=self.likelihood(parameters),
        )
        return EStepResult(
            ExpectedCounts(sums["labels"], sums["classes"]),
            float(sums["log_likelihood"][0]),
            self.divergence(parameters),
        )

    def divergence(self, parameters: OpinionParameters) -> float:
        """Return the divergence of the strategies' weights from their prior, over all annotators."""
        weights = parameters.strategy_weights
        log_prior = self._to_engine(self._log_prior(parameters.always_share))
        log_ratio = np.log(np.maximum(weights, 1e-300)) - log_prior
        return float(self.labels.weighted(weights * log_ratio).sum())

    def m_step(self, old: OpinionParameters, counts: ExpectedCounts) -> OpinionParameters:
        """Update the strategies' weights, the share of the always serious, and the classes."""
        weights = self._strategy_weights(counts.labels, self._log_prior(old.always_share))
        n_always = self._count_always_serious(weights)
        n_annotators = self._n_annotators + _ALWAYS_PSEUDO_COUNT + _NOT_ALWAYS_PSEUDO_COUNT
        always_share = (n_always + _ALWAYS_PSEUDO_COUNT) / n_annotators
        class_prior = self.items.shares.estimate(counts.classes, old.class_prior)
        return OpinionParameters(weights, class_prior, float(always_share))

    def _count_always_serious(self, weights: Floats | Singles) -> float:
        """Return the expected number of annotators who are always serious."""
        is_always = np.asarray(self.items.strategies.always_serious, like=weights)
        always = self.labels.weighted(weights[:, is_always])
        # Added up in memory: the order of the sum must not depend on the engine's hardware.
        return float(self.session.to_host(always).sum(dtype=np.float64))

    def likelihood(self, parameters: OpinionParameters) -> Floats:
        """Return the likelihood of labels given classes: the geometric mean over strategies."""
        table = self.items.strategies.log_probability
        mean = table.average(parameters.strategy_weights, self._repeated_label)
        likelihood: Floats = np.exp(self.labels.weighted(mean))
        return likelihood

    def finalize(self, parameters: OpinionParameters) -> float:
        """Return the log-likelihood: latent classes summed out, strategies averaged."""
        return self.e_step(parameters).log_likelihood

    def acceleration(self) -> Squarem[OpinionParameters]:
        """Return how to extrapolate the steps."""
        return Squarem(OpinionParameters, shares(axis=1), shares(axis=0), extrapolate_probability)

    def leave_one_out(self, parameters: OpinionParameters) -> Floats:
        """Return each annotator's leave-one-out log-likelihood in every strategy."""
        return leave_one_out(
            self.session,
            self.items,
            self.items.strategies,
            self._repeated_label,
            prior=parameters.class_prior,
            likelihood=self.likelihood(parameters),
        )

    def _strategy_weights(self, counts: Floats, log_prior: Floats) -> Floats | Singles:
        """Return the posterior of each annotator's strategies, given the expected counts."""
        total = self.items.strategies.log_probability.total(counts, self._repeated_label)
        return normalise_log_weights(total + self._to_engine(log_prior))

    def _to_engine(self, prior: Floats) -> Floats:
        """Return one row for all annotators, or one each, where the engine computes."""
        rows: Floats = prior if len(prior) == 1 else self.session.to_engine(prior)
        return np.asarray(rows, like=self._repeated_label)

    def _log_prior(self, always_share: float) -> Floats:
        """Return the log-prior of strategies: one row per annotator, or one for all of them."""
        strategies = self.items.strategies
        return strategies.annotator_log_prior(
            strategies.log_prior(always_share), self.labels.annotator_prior
        )

    def lower_bound(
        self, parameters: OpinionParameters, log_likelihood: float, divergence: float
    ) -> float:
        """Return the lower bound of the log-posterior."""
        always = parameters.always_share
        of_classes = self.items.shares.log_prior(parameters.class_prior)
        of_always = _ALWAYS_PSEUDO_COUNT * np.log(always)
        of_always += _NOT_ALWAYS_PSEUDO_COUNT * np.log1p(-always)
        return float(log_likelihood - divergence + of_classes + of_always)


class SinglePrecisionOpinionSteps(OpinionSteps):
    """`OpinionSteps` with tables, counts and strategies' weights in single precision.

    The log-likelihood and the parameters that all annotators share are in double precision. The
    steps agree with those in double precision to six digits. Work on annotators is divided in a way
    that depends on their number only, so results are the same on any number of threads.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.opinion_steps import SinglePrecisionOpinionSteps
    >>> from annotruth.models.robust_gpm.opinions import OpinionShapes
    >>> labels = at.simulate.crowd(n_items=20, n_annotators=6, seed=0).labels
    >>> with closing(get_engine("memory").open(labels)) as session:
    ...     steps = SinglePrecisionOpinionSteps(OpinionShapes(labels), session)
    ...     parameters, monitor = steps.step(steps.start())
    >>> str(parameters.strategy_weights.dtype)
    'float32'
    """

    def __init__(self, items: OpinionShapes, session: Session) -> None:
        super().__init__(items, session)
        strategies = items.strategies
        table = strategies.log_probability
        self._count_singles = Pass(
            "robust_gpm_single.step",
            inputs=_LOG_POSTERIOR_INPUTS,
            sums=(
                Sum("labels", self.counts_shape, annotator_axis=0, single_precision=True),
                Sum("classes", (items.n_classes,)),
                Sum("log_likelihood", (1,)),
            ),
        )
        self._log_other, self._log_repeated = _singles(table.other), _singles(table.repeated)
        # Relative to the first always-serious strategy all others are near 0, which loses fewer
        # digits; the difference cancels when weights are normalised.
        relative = table.other - table.other[strategies.reliability.argmax()]
        self._relative = pad(relative.reshape(len(relative), -1).T)
        self._repeated_excess = pad((table.repeated - table.other).transpose(1, 2, 0))
        self._log_likelihood = session.to_engine(aligned_empty(self.counts_shape, np.float32))
        self._divergence = np.empty_like(self._repeated_label, dtype=np.float64)

    def e_step(self, parameters: OpinionParameters) -> EStepResult:
        """Compute the items' posteriors and return their sums."""
        self._average_strategies(parameters)
        sums = self.session.run_pass(
            self._count_singles,
            log_prior=self._log_class_prior(parameters.class_prior),
            log_likelihood=self._log_likelihood,
        )
        counts = ExpectedCounts(sums["labels"], sums["classes"])
        divergence = float(self.session.to_host(self._divergence).sum())
        return EStepResult(counts, float(sums["log_likelihood"][0]), divergence)

    def leave_one_out(self, parameters: OpinionParameters) -> Floats:
        """Return the leave-one-out log-likelihood, annotators x strategies."""
        self._average_strategies(parameters)
        one = Pass(
            "robust_gpm_single.leave_one_out",
            inputs=(*_LOG_POSTERIOR_INPUTS, *STRATEGY_INPUTS),
            sums=(Sum("log_likelihood", parameters.strategy_weights.shape, annotator_axis=0),),
        )
        other, repeated = (
            pad(table.transpose(1, 2, 0)) for table in self.items.strategies.probability
        )
        sums = self.session.run_pass(
            one,
            log_prior=self._log_class_prior(parameters.class_prior),
            log_likelihood=self._log_likelihood,
            other=other,
            repeated=repeated,
            repeated_label=self._repeated_label,
        )
        return sums["log_likelihood"]

    def _average_strategies(self, parameters: OpinionParameters) -> None:
        """Compute the labels' log-likelihood, and the weights' divergence from their prior."""
        weights = parameters.strategy_weights.astype(np.float32, order="C", copy=False)
        log_prior = pad(self._log_prior(parameters.always_share), LOG_ZERO)
        self.session.run_over_annotators(
            "robust_gpm_single.mix",
            len(weights),
            weights,
            log_prior,
            self._log_other,
            self._log_repeated,
            self._repeated_label,
            self._log_likelihood,
            self._divergence,
        )

    def _strategy_weights(self, counts: Floats, log_prior: Floats) -> Singles:
        """Return the posterior of each annotator's strategies, given the expected counts."""
        singles = counts.astype(np.float32, order="C", copy=False)
        shape = (len(singles), self.items.strategies.n_strategies)
        weights = np.empty_like(singles, shape=shape)
        self.session.run_over_annotators(
            "robust_gpm_single.strategy_weights",
            len(singles),
            singles.reshape(len(singles), -1),
            self._relative,
            singles,
            pad(log_prior, LOG_ZERO),
            self._repeated_excess,
            self._repeated_label,
            weights,
        )
        return weights

    def _log_class_prior(self, class_prior: Floats) -> Singles:
        """Return the classes' log-prior given each known truth, and in the last row given none."""
        log_prior = np.log(class_prior)
        return _singles(np.vstack([log_prior + np.log(self.items.known_truth), log_prior]))


def opinion_steps(items: OpinionShapes, session: Session, tol: float) -> OpinionSteps:
    """Return the steps in the precision that the engine chooses."""
    # The kernels in single precision are for the broad shapes alone, and labels that all count alike.
    only_broad = items.n_classes == N_MEANS * N_BROAD
    count_alike = items.labels.annotator_weight is None
    single = session.single_precision(tol) and only_broad and count_alike
    return (SinglePrecisionOpinionSteps if single else OpinionSteps)(items, session)


def extrapolate_probability(x0: float, x1: float, x2: float, limit: float) -> float:
    """Extrapolate a probability."""
    return float(probabilities(np.array(x0), np.array(x1), np.array(x2), limit))


def _singles(values: Floats) -> Singles:
    """Return values in single precision, aligned with cache lines."""
    out = aligned_empty(values.shape, np.float32)
    out[:] = values
    return out
