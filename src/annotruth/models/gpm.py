"""GPM, as in its paper, and behaviors whose distribution is learned, as other models have them, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, inner, slices
from annotruth.models.base import IterativeEstimator
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.distribution import Distribution, likelihood_interval, xlogy
from annotruth.models.em import Monitor
from annotruth.models.fits.make_fit import BuildItemResults, ItemResults
from annotruth.models.registry import Capabilities
from annotruth.models.result import Fit
from annotruth.models.squarem import Squarem, probabilities, shares
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.validate import check_choice

BehaviorOption = Literal["uniform", "learned"]
"""Whether labels that are not serious are uniform, or have a distribution learned per annotator."""

# A distribution has N - 1 free parameters: with fewer labels per category it stays uniform.
_LABELS_PER_CATEGORY = 5


def enough_labels(
    n_labels: NDArray[np.integer[Any]] | Floats, n_categories: int
) -> NDArray[np.bool_]:
    """Return, per annotator, whether there are enough labels to learn a distribution from."""
    return n_labels >= _LABELS_PER_CATEGORY * n_categories


def learned_behaviors(fit: Fit, behavior: str) -> Floats:
    """Return the learned distributions of a fit, annotators x categories; empty if uniform."""
    if behavior == "uniform":
        return np.empty((0, 0))
    return fit.parameter("pi", fit.data.n_annotators, fit.data.n_categories)


def behavior_distribution(pi: Floats, annotator: Codes, n_categories: int) -> Floats | float:
    """Return the distribution of irregular labels, one row per given annotator; a number if uniform."""
    return pi[annotator] if len(pi) else 1.0 / n_categories


def behavior_names(categories: Sequence[str], eps: Floats, pi: Floats) -> list[str]:
    """Return the name of each annotator's behavior: serious, or what the irregular labels are.

    ``pi`` is annotators x categories. It is empty if behavior is uniform: all irregular labels are
    then alike. A learned distribution is "repeated" if the probability of one label is more than
    halfway between chance and certainty.
    """
    if not len(pi):
        return ["serious" if e >= SPAMMER_BELOW else "irregular" for e in eps]
    clear = (1.0 + 1.0 / len(categories)) / 2.0
    top, share = pi.argmax(axis=1), pi.max(axis=1)
    names = np.where(share > clear, [f"repeated {categories[n]}" for n in top], "random")
    return ["serious" if e >= SPAMMER_BELOW else name for e, name in zip(eps, names, strict=True)]


_INPUTS = (Input("eps", annotator_axis=0), Input("pi", annotator_axis=0), Input("chance"))


class GPMParameters(NamedTuple):
    """Annotators' parameters: reliability eps[s], and behavior pi[s, n] if learned."""

    eps: Floats
    pi: Floats  # annotators x categories; empty when behavior is uniform


class GPMSteps:
    """GPM's EM over a session; theta stays in the session. Behaviors are estimated if ``learned``."""

    objective_name = "Q"

    def __init__(self, labels: LabelSummary, session: Session, *, learned: bool) -> None:
        n_annotators, n_categories = labels.n_annotators, labels.n_categories
        self.labels = labels
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
        q = q_items
        for some in slices(len(eps)):
            # The entropy form of sum mu log eps + (1 - mu) log(1 - eps) at eps = mean of mu.
            entropy = _x_log_x(eps[some]) + _x_log_x(1.0 - eps[some])
            q += inner(self._n_labels[some], entropy)
        return GPMParameters(eps, pi), Monitor(float(log_likelihood), float(q + q_pi))

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


@dataclass(kw_only=True)
class GPM(IterativeEstimator[GPMSteps]):
    r"""GPM: a generic probabilistic model of annotators' behavior and of opinions on items.

    Li, Ling, Wang, Li and Le Callet, "A Generic Probabilistic Model to Recover Annotator's Behavior
    and Ground Truth Labeling" (2020). Annotator s labels item e seriously with probability
    :math:`\epsilon_s`, drawing from the item's distribution of serious opinion :math:`\theta_e`;
    otherwise from an irregular behavior :math:`\pi_s`:

    .. math:: p(r_{e,s} = n) = \epsilon_s \theta_{e,n} + (1 - \epsilon_s) \pi_{s,n}.

    Maximum likelihood by EM:

    .. math::
        \text{E:}\quad \mu_{e,s} &= \frac{\epsilon_s \theta_{e,r}}
            {\epsilon_s \theta_{e,r} + (1 - \epsilon_s) \pi_{s,r}} \\
        \text{M:}\quad \epsilon_s &= \frac{1}{|l_s|} \sum_{e \in l_s} \mu_{e,s}, \quad
        \theta_{e,n} = \frac{\sum_{s \in l_{e,n}} \mu_{e,s}}{\sum_{s \in l_e} \mu_{e,s}}, \quad
        \pi_{s,n} = \frac{\sum_{e \in l_{s,n}} (1 - \mu_{e,s})}{\sum_{e \in l_s} (1 - \mu_{e,s})}.

    The start is :math:`\epsilon = 0.5`, the observed shares for :math:`\theta`, and
    :math:`\pi = 1/N`. The loop stops when Q changes by less than ``tol`` from one step to the next.
    (The paper prints the E-step's numerator without :math:`\epsilon_s`; its likelihood and its
    authors' code have it.)

    An annotator is a spammer if :math:`\epsilon_s < 0.5`. The interval of a reliability contains the values whose
    log-likelihood is within 1.92 of the maximum, given the items' distributions. `predict_proba`
    returns :math:`p(r_{e,s} = n)` of the equation above.

    With few labels per item, theta overfits and reliabilities approach 1. This is a property of the
    paper's estimator, and its intervals do not account for it.

    Parameters
    ----------
    behavior
        "uniform", as in the paper: irregular labels are random. "learned" estimates :math:`\pi_s`,
        too, for annotators with at least 5 labels per category; with fewer labels it would be
        degenerate and stays uniform. An annotator without irregular labels keeps the behavior of
        the last step.
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`. The paper has no acceleration.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, item % 3) for item in range(9) for name in ("ann", "bob", "cem")]
    >>> labels += [(item, "eve", 2 * item // 3 % 3) for item in range(9)]
    >>> fit = at.GPM().fit(labels).result_
    >>> fit.reliability.round(2).tolist()
    [1.0, 1.0, 1.0, 0.0]
    >>> fit.n_spammers
    1
    """

    name: ClassVar[str] = "gpm"
    capabilities: ClassVar[Capabilities] = Capabilities(out_of_core=True, distributed=True)
    parameter_axes: ClassVar[Mapping[str, str] | None] = {"pi": "annotator category"}

    item_arrays: ClassVar[tuple[str, ...]] = ("theta", "p_serious")

    acceleration: bool = False
    behavior: BehaviorOption = "uniform"

    def _check(self, labels: LabelSummary) -> None:
        check_choice("behavior", self.behavior, get_args(BehaviorOption))

    def _steps(self, labels: Labels, session: Session) -> GPMSteps:
        return GPMSteps(labels, session, learned=self.behavior == "learned")

    def _estimates(self, steps: GPMSteps, parameters: GPMParameters) -> dict[str, Any]:
        low, high = steps.interval(parameters)
        parameters = steps.to_host(parameters)
        return {
            "reliability": parameters.eps,
            "low": low,
            "high": high,
            "behavior": behavior_names(steps.labels.scale.names, *parameters),
            "parameters": {"pi": parameters.pi} if self.behavior == "learned" else {},
            "readout": "opinion",
        }

    def _item_results(self, steps: GPMSteps) -> BuildItemResults:
        return _item_results

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit = self.result_
        assert fit.distribution is not None
        assert fit.reliability is not None
        theta = fit.distribution.rows(item, fit.data.n_categories)
        eps = fit.reliability[annotator][:, np.newaxis]
        pi = learned_behaviors(fit, self.behavior)
        return eps * theta + (1.0 - eps) * behavior_distribution(
            pi, annotator, fit.data.n_categories
        )


def _item_results(labels: Labels, arrays: Mapping[str, NDArray[Any]]) -> ItemResults:
    theta = Distribution.of_cells(labels, arrays["theta"])
    return {"distribution": theta, "p_serious": arrays["p_serious"]}
