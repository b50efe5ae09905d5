"""The passes that the models of this package share."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic

import numpy as np

from annotruth.engines import Pass, Session, Sum
from annotruth.kernels.arrays import Floats
from annotruth.labels import LabelSummary
from annotruth.models.base_fit import BaseFit
from annotruth.models.confusion.equations import ClassEquations, EStepTables, P
from annotruth.models.em import Monitor
from annotruth.models.latent_classes import POSTERIOR_INPUTS, ExpectedCounts
from annotruth.models.squarem import Squarem

STEPS_PER_START = 20
"""Steps from each of several random starts, before the best of them is continued."""

_POSTERIOR = Pass("robust_gpm.posterior", ("posterior",), POSTERIOR_INPUTS)


class LatentClassSteps(Generic[P]):
    """EM of a model with latent classes over a session; posteriors leave it only at the end.

    Parameters
    ----------
    equations
        The model's equations.
    session
        The session that the labels are open in.
    n_init, seed
        The number of random starts, and their seed. Of several, the one with the highest objective
        after `STEPS_PER_START` steps is kept.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.confusion.one_coin import OneCoinEquations
    >>> from annotruth.models.confusion.steps import LatentClassSteps
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 1)])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     start = LatentClassSteps(OneCoinEquations(labels), session).start()
    >>> start.prior.tolist()  # the observed shares, averaged over items
    [0.75, 0.25]
    """

    def __init__(
        self, equations: ClassEquations[P], session: Session, *, n_init: int = 1, seed: int = 0
    ) -> None:
        labels = equations.labels
        self.equations = equations
        self.objective_name = equations.objective_name
        self.final_counts: ExpectedCounts | None = None
        self._session = session
        self._n_init, self._seed = n_init, seed
        self._n_labels = labels.n_labels
        self._step = Pass(
            "robust_gpm.step",
            inputs=POSTERIOR_INPUTS,
            sums=(*_counts(labels, equations.n_classes), Sum("log_likelihood", (1,))),
        )

    def start(self) -> P:
        """Return the first parameters; with several random starts, the best after a few steps."""
        if self._n_init == 1:
            return self._start(0)
        # One at a time: the parameters of all starts may not fit into memory.
        best, highest = None, -np.inf
        for number in range(self._n_init):
            parameters = self._start(number)
            # The objective of the last step is the only one that is needed.
            for _ in range(STEPS_PER_START - 1):
                counts, _ = self.e_step(parameters)
                parameters = self.equations.m_step(counts, parameters)
            parameters, monitor = self.step(parameters)
            if best is None or monitor.objective > highest:
                best, highest = parameters, monitor.objective
        assert best is not None
        return best

    def _start(self, number: int) -> P:
        """Return the parameters of one start."""
        return self.equations.start(self._votes, np.random.default_rng([self._seed, number]))

    @cached_property
    def _votes(self) -> ExpectedCounts:
        return count_votes(self.equations.labels, self._session)

    def resume(self, previous: BaseFit) -> P:
        """Return the parameters of a previous fit; new annotators start as in a first fit."""
        return self.equations.resume(self.equations.parameters_of(previous), self._start(0))

    def step(self, old: P) -> tuple[P, Monitor]:
        """Pass over the labels once, then update the parameters."""
        log_prior = self.equations.log_prior(old)
        counts, log_likelihood = self.e_step(old)
        objective = log_likelihood + log_prior
        new = self.equations.m_step(counts, old)
        return new, Monitor(log_likelihood, objective / self._n_labels)

    def e_step(self, parameters: P) -> tuple[ExpectedCounts, float]:
        """Pass over the labels once; return the posteriors' sums and the log-likelihood."""
        tables = self.equations.tables(parameters)
        sums = self._session.run_pass(self._step, **_inputs(self.equations, tables))
        return ExpectedCounts(sums["labels"], sums["classes"]), float(sums["log_likelihood"][0])

    def finalize(self, parameters: P) -> float:
        """Compute the posterior of every item; return the log-likelihood."""
        self.final_counts, log_likelihood = self.e_step(parameters)
        write_posteriors(self.equations, self.equations.tables(parameters), self._session)
        return log_likelihood

    def acceleration(self) -> Squarem[P]:
        """Return how to extrapolate the steps."""
        return self.equations.acceleration()


def count_votes(labels: LabelSummary, session: Session) -> ExpectedCounts:
    """Return the counts with observed shares as posteriors; the classes are the categories."""
    sums = session.run_pass(Pass("robust_gpm.start", sums=_counts(labels, labels.n_categories)))
    return ExpectedCounts(**sums)


def write_posteriors(equations: ClassEquations[Any], tables: EStepTables, session: Session) -> None:
    """Write the items' posteriors to the session's array "posterior", items x classes."""
    session.allocate("posterior", per="items", shape=(equations.n_classes,))
    session.run_pass(_POSTERIOR, **_inputs(equations, tables))


def _inputs(equations: ClassEquations[Any], tables: EStepTables) -> dict[str, Floats]:
    return {**tables._asdict(), "known_truth": equations.known_truth}


def _counts(labels: LabelSummary, n_classes: int) -> tuple[Sum, Sum]:
    shape = (labels.n_annotators, labels.n_categories, n_classes)
    return Sum("labels", shape, annotator_axis=0), Sum("classes", (n_classes,))
