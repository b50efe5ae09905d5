"""GPM's equations over a session."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats, inner, slices
from annotruth.labels import Labels, LabelSummary
from annotruth.models.behaviors import enough_labels
from annotruth.models.distribution import likelihood_interval, xlogy
from annotruth.models.em import Monitor
from annotruth.models.result import Fit
from annotruth.models.squarem import Squarem, probabilities, shares
from annotruth.models.warm_start import off_bounds, resumed_shares, with_new_rows

_INPUTS = (Input("eps", annotator_axis=0), Input("pi", annotator_axis=0), Input("chance"))


class GPMParameters(NamedTuple):
    """Annotators' parameters: reliability eps[s], and behavior pi[s, n] if learned.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.gpm.steps import GPMParameters
    >>> GPMParameters(eps=np.array([0.9, 0.2]), pi=np.empty((0, 0))).eps
    array([0.9, 0.2])
    """

    eps: Floats
    pi: Floats  # annotators x categories; empty when behavior is uniform


class GPMSteps:
    """GPM's EM over a session; theta stays in the session.

    Parameters
    ----------
    labels, session
        The labels, or their summary, and the session they are open in.
    learned
        Whether irregular behaviors are estimated.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.gpm.steps import GPMSteps
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 1)])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     steps = GPMSteps(labels, session, learned=False)
    ...     parameters, monitor = steps.step(steps.start())
    >>> parameters.eps.round(3).tolist()
    [0.583, 0.583]
    """

    objective_name = "Q"

    def __init__(self, labels: LabelSummary, session: Session, *, learned: bool) -> None:
        n_annotators, n_categories = labels.n_annotators, labels.n_categories
        self._labels = labels
        self._session = session
        self.n_labels = labels.n_labels
        self._n_labels = session.to_engine(labels.labels_per_annotator.astype(float))
        self._chance = 1.0 / n_categories
        self._pi_shape = (n_annotators, n_categories) if learned else (0, 0)
        self._learns = enough_labels(self._n_labels, n_categories)[:, np.newaxis]

        by_annotator = ((n_annotators,), 0)
        self._start = Pass("gpm.start", ("theta",))
        self._step = Pass(
            "gpm.step",
            state=("theta",),
            inputs=_INPUTS,
            sums=(
                Sum("serious", *by_annotator),
                Sum("irregular", self._pi_shape, 0 if learned else None),
                Sum("totals", (2,)),
            ),
            scratch=2 * n_annotators,
        )
        self._posterior = Pass(
            "gpm.posterior", ("theta", "p_serious"), _INPUTS, (Sum("log_likelihood", (1,)),)
        )
        self._profile = Pass(
            "gpm.log_likelihood_by_annotator",
            state=("theta",),
            inputs=_INPUTS,
            sums=(Sum("log_likelihood", *by_annotator), Sum("slope", *by_annotator)),
        )

    def start(self) -> GPMParameters:
        """Return eps = 0.5 and pi = 1/N; theta starts at the observed shares, as in the paper."""
        self._session.allocate("theta", per="cells")
        self._session.run_pass(self._start)
        pi = np.full(self._pi_shape, self._chance)
        return GPMParameters(np.full_like(self._n_labels, 0.5), self._session.to_engine(pi))

    def resume(self, previous: Fit) -> GPMParameters:
        """Return the parameters of a previous fit; theta continues from its distributions."""
        start = self.to_host(self.start())
        assert isinstance(self._labels, Labels)
        assert previous.reliability is not None
        observed = self._session.collect("theta")
        theta = resumed_shares(self._labels, previous, observed)
        self._session.put("theta", theta, per="cells")
        eps = with_new_rows(off_bounds(previous.reliability), start.eps)
        old_pi = previous.parameters.get("pi")
        pi = start.pi if old_pi is None else with_new_rows(old_pi, start.pi)
        return GPMParameters(self._session.to_engine(eps), self._session.to_engine(pi))

    def to_host(self, parameters: GPMParameters) -> GPMParameters:
        """Return the parameters in memory."""
        return GPMParameters(*map(self._session.to_host, parameters))

    def step(self, old: GPMParameters) -> tuple[GPMParameters, Monitor]:
        """Pass over the labels once, then update eps and pi."""
        sums = self._session.run_pass(self._step, **old._asdict(), chance=self._chance)
        serious, (log_likelihood, q_items) = sums["serious"], sums["totals"]
        eps = serious / self._n_labels
        n_irregular = self._n_labels.sum() - serious.sum()
        pi, q_pi = self._update_pi(old.pi, sums["irregular"], n_irregular)
        # The entropy form of sum mu log eps + (1 - mu) log(1 - eps) at eps = mean of mu.
        q_eps = sum(
            inner(self._n_labels[some], _x_log_x(eps[some]) + _x_log_x(1.0 - eps[some]))
            for some in slices(len(eps))
        )
        q = q_items + q_eps + q_pi
        return GPMParameters(eps, pi), Monitor(float(log_likelihood), float(q))

    def acceleration(self) -> Squarem[GPMParameters]:
        """Extrapolate eps, pi and theta; Q itself need not rise."""
        return Squarem(
            GPMParameters,
            *(probabilities, shares(axis=1)),
            session=self._session,
            items={"theta": "shares"},
            rising="log_likelihood",
        )

    def _update_pi(
        self, old: Floats, irregular: Floats, n_irregular: float
    ) -> tuple[Floats, float]:
        """Return the updated behaviors and their part of Q."""
        if not len(old):
            return old, n_irregular * np.log(self._chance)
        total = irregular.sum(axis=1, keepdims=True)
        pi = np.where(self._learns & (total > 0), irregular / np.where(total > 0, total, 1.0), old)
        # A mass so small that its share underflows adds nothing to Q.
        return pi, xlogy(irregular, np.maximum(pi, np.finfo(float).tiny)).sum()

    def finalize(self, parameters: GPMParameters) -> float:
        """Compute p_serious of every label; return the log-likelihood."""
        self._session.allocate("p_serious", per="labels")
        sums = self._session.run_pass(self._posterior, **parameters._asdict(), chance=self._chance)
        return float(sums["log_likelihood"][0])

    def interval(self, parameters: GPMParameters) -> tuple[Floats, Floats]:
        """Return the 95% profile likelihood interval of every reliability, theta held fixed."""

        def profile(eps: Floats) -> tuple[Floats, Floats]:
            sums = self._session.run_pass(
                self._profile, eps=eps, pi=parameters.pi, chance=self._chance
            )
            to_host = self._session.to_host
            return to_host(sums["log_likelihood"]), to_host(sums["slope"])

        return likelihood_interval([profile], self._session.to_host(parameters.eps))


def _x_log_x(x: Floats) -> Floats:
    """Return x log x, 0 at 0; five times as fast as SciPy's, which matters for many annotators."""
    product: Floats = x * np.log(np.maximum(x, np.finfo(float).tiny))
    return product
