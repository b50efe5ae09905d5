"""EM with groups: RobustGPM's steps, with a latent state for every item and group.

Annotators are compared with the labels of their own group, and with those of other groups as far as
groups agree. Everything about annotators is as in RobustGPM.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from annotruth.analyses.groups.coupling import (
    Coupling,
    GroupItems,
    Messages,
    class_kernels,
    opinion_kernels,
)
from annotruth.engines import Pass
from annotruth.kernels.arrays import Floats
from annotruth.models.em import Monitor
from annotruth.models.latent_classes import POSTERIOR_INPUTS, ExpectedCounts
from annotruth.models.robust_gpm.class_steps import ClassParameters, ClassSteps
from annotruth.models.robust_gpm.opinions import (
    OpinionParameters,
    OpinionSteps,
    extrapolate_probability,
)
from annotruth.models.robust_gpm.strategies import ResponseStrategies
from annotruth.models.squarem import Rule, Squarem, shares
from annotruth.observations import Labels

# Pseudo-counts: of pairs of an item and a group per kernel, and of items that groups agree about or not.
_PAIRS, _ITEMS = 1.0, 1.0

P = TypeVar("P", bound=OpinionParameters | ClassParameters)
S = TypeVar("S", bound=OpinionSteps | ClassSteps)


class GroupParameters(NamedTuple, Generic[P]):
    """The parameters of a model with groups: those of RobustGPM, and the coupling of groups."""

    crowd: P
    coupling: Coupling


class GroupSteps(ABC, Generic[P, S]):
    """EM over a session of `GroupItems.labels`, by RobustGPM's steps over that session.

    ``labels`` are those of the items, for known truths: a known truth is that of the item, and says about
    groups what the coupling says. ``known_truth`` is its likelihood, categories x states.
    """

    def __init__(self, steps: S, pairs: GroupItems, labels: Labels, known_truth: Floats) -> None:
        self.steps = steps
        self.pairs = pairs
        self.session = steps.session
        self.objective_name = steps.objective_name
        self._n_states = steps.items.n_classes
        is_known = labels.known >= 0
        self._log_known = np.zeros((labels.n_items, self._n_states))
        self._log_known[is_known] = np.log(np.maximum(known_truth[labels.known[is_known]], 1e-300))
        self._labels_of_pairs = Pass("robust_gpm.posterior", ("posterior",), POSTERIOR_INPUTS)
        self.session.allocate("posterior", per="items", shape=(self._n_states,))

    @abstractmethod
    def confusion(self, crowd: P) -> Floats:
        """Return P(label | state) of each annotator, annotators x categories x states."""

    @abstractmethod
    def kernels(self, prior: Floats) -> Floats:
        """Return the kernels between states."""

    @abstractmethod
    def _objective(self, crowd: P, log_likelihood: float) -> float:
        """Return the objective per label of RobustGPM's parameters."""

    def with_coupling(self, crowd: P) -> GroupParameters[P]:
        """Return parameters to start from, with a coupling that groups may agree by or not."""
        n_kernels = len(self.kernels(crowd.prior))
        return GroupParameters(crowd, Coupling.uniform(self.pairs.n_groups, n_kernels))

    def start(self) -> GroupParameters[P]:
        """Return the parameters that a fit starts with."""
        raise NotImplementedError

    def step(self, old: GroupParameters[P]) -> tuple[GroupParameters[P], Monitor]:
        """Pass over the labels and update all parameters."""
        messages, counts, log_likelihood = self.e_step(old)
        objective = self._objective(old.crowd, log_likelihood) + (
            _log_prior(old.coupling) / self.pairs.labels.n_labels
        )
        crowd: Any = self.steps.m_step(old.crowd, counts)  # type: ignore[arg-type]  # of one kind
        new = GroupParameters(crowd, self.new_coupling(old, messages))
        return new, Monitor(log_likelihood, objective)

    def new_coupling(self, old: GroupParameters[P], messages: Messages) -> Coupling:
        """Return the coupling after one EM step."""
        kernels = self.kernels(old.crowd.prior)
        used = messages.kernel_counts(kernels, old.coupling.kernel_weights) + _PAIRS
        # An item that one group labelled says nothing about agreement.
        differing = messages.p_differing()[self.pairs.n_groups_of_item > 1]
        agreed_share = (len(differing) - differing.sum() + _ITEMS) / (len(differing) + 2.0 * _ITEMS)
        return Coupling(used / used.sum(axis=1, keepdims=True), float(agreed_share))

    def e_step(self, parameters: GroupParameters[P]) -> tuple[Messages, ExpectedCounts, float]:
        """Return the messages, the sums of the posteriors of states, and the log-likelihood."""
        confusion = self.confusion(parameters.crowd)
        messages = self.messages(parameters, self.pair_likelihood(confusion))
        others = messages.from_others()
        sums = self.session.run_pass(
            Pass("robust_gpm.step", (), POSTERIOR_INPUTS, self.steps.count_sums),
            prior=np.ones(self._n_states),
            known_truth=others,
            confusion=confusion,
        )
        # The messages lack the factors of the pairs' likelihoods, which the pass has.
        with_factors = float(sums["log_likelihood"][0])
        without = np.log((others * messages.likelihood).sum(axis=1)).sum()
        log_likelihood = messages.log_evidence.sum() + with_factors - without
        counts = ExpectedCounts(sums["counts"], messages.item_posterior().sum(axis=0))
        return messages, counts, float(log_likelihood)

    def pair_likelihood(self, confusion: Floats) -> Floats:
        """Return the likelihood of each pair's labels by state, up to a factor per pair."""
        self.session.run_pass(
            self._labels_of_pairs,
            prior=np.ones(self._n_states),
            known_truth=np.ones((len(self.pairs.item), self._n_states)),
            confusion=confusion,
        )
        return self.session.collect("posterior")

    def messages(self, parameters: GroupParameters[P], pair_likelihood: Floats) -> Messages:
        """Return the messages, given the likelihood of each pair's labels."""
        prior = parameters.crowd.prior
        return Messages.of(
            self.pairs,
            parameters.coupling,
            self.kernels(prior),
            pair_likelihood,
            np.log(prior) + self._log_known,
        )

    def leave_one_out(
        self, parameters: GroupParameters[P], confusion: Floats, strategies: ResponseStrategies
    ) -> Floats:
        """Return each annotator's leave-one-out log-likelihood in every strategy."""
        others = self.messages(parameters, self.pair_likelihood(confusion)).from_others()
        return self.steps.left_out(
            strategies,
            prior=np.ones(self._n_states),
            confusion=confusion,
            known_truth=others,
        )

    def finalize(self, parameters: GroupParameters[P]) -> float:
        """Return the log-likelihood, states summed out."""
        return self.e_step(parameters)[2]


class OpinionGroupSteps(GroupSteps[OpinionParameters, OpinionSteps]):
    """Steps where opinions differ: states are shapes of opinion."""

    def confusion(self, crowd: OpinionParameters) -> Floats:
        """Return P(label | shape) of each annotator: the geometric mean over strategies."""
        return self.steps.confusion(crowd)

    def kernels(self, prior: Floats) -> Floats:
        """Return the kernels between shapes."""
        return opinion_kernels(prior, self.steps.items)

    def start(self) -> GroupParameters[OpinionParameters]:
        """Return the prior of the strategies, and all shapes alike."""
        return self.with_coupling(self.steps.start())

    def _objective(self, crowd: OpinionParameters, log_likelihood: float) -> float:
        bound = self.steps.lower_bound(crowd, log_likelihood, self.steps.divergence(crowd))
        return bound / self.pairs.labels.n_labels

    def acceleration(self) -> Squarem[GroupParameters[OpinionParameters]]:
        """Return how to extrapolate the steps."""
        crowd = _fields(OpinionParameters, shares(axis=1), shares(axis=0), extrapolate_probability)
        coupling = _fields(Coupling, shares(axis=1), extrapolate_probability)
        return Squarem(GroupParameters[OpinionParameters], crowd, coupling)


class ClassGroupSteps(GroupSteps[ClassParameters, ClassSteps]):
    """Steps where a group has one right label for an item: states are classes with subtypes."""

    def confusion(self, crowd: ClassParameters) -> Floats:
        """Return the annotators' confusion matrices."""
        return crowd.confusion

    def kernels(self, prior: Floats) -> Floats:
        """Return the kernels between states."""
        return class_kernels(prior, self.steps.items.class_of)

    def _objective(self, crowd: ClassParameters, log_likelihood: float) -> float:
        return log_likelihood / self.pairs.labels.n_labels

    def acceleration(self) -> Squarem[GroupParameters[ClassParameters]]:
        """Raise: few steps are needed, and none is extrapolated."""
        raise NotImplementedError


def _log_prior(coupling: Coupling) -> float:
    """Return the log-prior of the coupling, up to a constant."""
    share = coupling.agreed_share
    of_share = _ITEMS * (np.log(share) + np.log1p(-share))
    return float(_PAIRS * np.log(coupling.kernel_weights).sum() + of_share)


def _fields(make: Any, *rules: Rule) -> Rule:
    """Return the rule that extrapolates each field of parameters by a rule of its own."""

    def rule(x0: Any, x1: Any, x2: Any, limit: float) -> Any:
        path = zip(rules, x0, x1, x2, strict=True)
        return make(*(each(first, second, third, limit) for each, first, second, third in path))

    return rule
