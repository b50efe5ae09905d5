"""GPM's steps over a session."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Pass, Session
from annotruth.kernels.arrays import Floats, inner, slices
from annotruth.labels import LabelSummary
from annotruth.models.behaviors import enough_labels
from annotruth.models.em import Monitor
from annotruth.models.entropy import xlogy
from annotruth.models.intervals import likelihood_interval
from annotruth.models.squarem import Squarem, probabilities, shares

_SHARED_BY = (0, 0, None)  # eps and pi are by annotator, chance is not


class Parameters(NamedTuple):
    """What the annotators share: reliability eps[s], and behavior pi[s, n] if learned."""

    eps: Floats
    pi: Floats  # annotators x categories; empty when behavior is uniform


class Sums(NamedTuple):
    """Sums over each annotator's labels."""

    serious: Floats
    """Of mu, how likely a label was serious."""
    slope: Floats
    """Of the slope of mu in eps, the items' distributions following."""
    irregular: Floats
    """Of 1 - mu, by label; empty when behavior is uniform."""


class Steps:
    """GPM's equations over a session; theta stays in the session.

    ``n_labels`` says how many labels of each annotator the session's sums are of, where these are
    more than the labels at hand.
    """

    def __init__(
        self,
        labels: LabelSummary,
        session: Session,
        *,
        learned: bool,
        n_labels: Floats | None = None,
    ) -> None:
        people, categories = labels.n_annotators, labels.n_categories
        self._session = session
        self._n_labels = labels.labels_per_annotator.astype(float) if n_labels is None else n_labels
        self._chance = 1.0 / categories
        self._pi_shape = (people, categories) if learned else (0, 0)
        self._learns = enough_labels(self._n_labels, categories)[:, np.newaxis]

        self._start = Pass("gpm.start", ("theta",))
        self._step = Pass(
            "gpm.step",
            ("theta",),
            ((people,), self._pi_shape, (2,)),
            shared_by=_SHARED_BY,
            sums_by=(0, 0 if learned else None, None),
            scratch=2 * people,
        )
        self._posterior = Pass(
            "gpm.posterior", ("theta", "p_serious"), ((1,),), shared_by=_SHARED_BY
        )
        self._support = Pass(
            "gpm.support",
            ("theta",),
            ((people,), (people,)),
            shared_by=_SHARED_BY,
            sums_by=(0, 0),
        )
        self._response = Pass(
            "gpm_response.response", ("theta",), ((people,), (people,), self._pi_shape)
        )

    def start(self) -> Parameters:
        """Begin at the paper's values: eps = 0.5, observed shares, pi = 1/N."""
        self._session.allocate("theta", per="cells")
        self._session.run_pass(self._start)
        return Parameters(np.full(len(self._n_labels), 0.5), np.full(self._pi_shape, self._chance))

    def resume(self, theta: Floats) -> None:
        """Begin at distributions found before, one number a cell."""
        self._session.put("theta", theta, per="cells")

    def step(self, old: Parameters) -> tuple[Parameters, Monitor]:
        """Pass the labels once, then update what annotators share."""
        serious, irregular, (log_likelihood, q_items) = self._session.run_pass(
            self._step, *old, self._chance
        )
        eps = serious / self._n_labels
        pi, q_pi = self._update_pi(old.pi, irregular, self._n_labels.sum() - serious.sum())
        # The entropy form of sum mu log eps + (1 - mu) log(1 - eps) at eps = mean of mu.
        q_eps = sum(
            inner(self._n_labels[at], _x_log_x(eps[at]) + _x_log_x(1.0 - eps[at]))
            for at in slices(len(eps))
        )
        q = q_items + q_eps + q_pi
        return Parameters(eps, pi), Monitor(float(log_likelihood), float(q))

    def acceleration(self) -> Squarem[Parameters]:
        """Leap with all that a step depends on; Q itself need not rise."""
        return Squarem(
            Parameters,
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

    def read_out(self, parameters: Parameters) -> float:
        """Compute how likely each label was serious, and the log-likelihood."""
        self._session.allocate("p_serious", per="labels")
        ((log_likelihood,),) = self._session.run_pass(self._posterior, *parameters, self._chance)
        return float(log_likelihood)

    def response(self, parameters: Parameters) -> Sums:
        """Add up what annotators share, and how it follows their reliabilities."""
        return Sums(*self._session.run_pass(self._response, *parameters, self._chance))

    def interval(self, parameters: Parameters) -> tuple[Floats, Floats]:
        """Find the reliabilities that the labels support."""

        def support(eps: Floats) -> tuple[Floats, Floats]:
            value, slope = self._session.run_pass(self._support, eps, parameters.pi, self._chance)
            return value, slope

        return likelihood_interval([support], parameters.eps)


def _x_log_x(x: Floats) -> Floats:
    """Return x log x, 0 at 0; five times as fast as SciPy's, which a crowd of many feels."""
    product: Floats = x * np.log(np.maximum(x, np.finfo(float).tiny))
    return product
