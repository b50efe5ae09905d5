"""GPM, as in its paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.models.base_fit import BaseFit
from annotruth.models.behaviors import (
    BehaviorOption,
    behavior_distribution,
    behavior_names,
    check_behavior_option,
    learned_behaviors,
)
from annotruth.models.capabilities import Capabilities
from annotruth.models.distribution import Distribution
from annotruth.models.em import History, ProgressCallback
from annotruth.models.em_estimator import IterativeEstimator
from annotruth.models.fits.item_results import ItemResults
from annotruth.models.fits.make_fit import make_fit
from annotruth.models.gpm.steps import GPMParameters, GPMSteps

# Per label, of a fit that starts from a previous one.
_RESUMED_TOL = 1e-6


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

    An item's label is the category of highest probability; an exact tie goes to the category that
    comes first on the scale. A known truth fixes the item's distribution. An annotator is a
    spammer if :math:`\epsilon_s < 0.5`. The interval of a reliability contains the values whose
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
    tol, max_iter
        The stopping rule and the maximum number of iterations; reaching it warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels. The paper does not.
    engine
        Where the passes over the labels run.

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

    acceleration: bool = False
    behavior: BehaviorOption = "uniform"

    def _check(self, labels: LabelSummary) -> None:
        check_behavior_option(self.behavior)

    def _steps(self, labels: Labels, session: Session) -> GPMSteps:
        return GPMSteps(labels, session, learned=self._learned)

    def _resume_em(
        self, steps: Any, start: Any, progress: ProgressCallback | None
    ) -> tuple[Any, History]:
        # The paper's tolerance is absolute: with many labels it would take thousands of steps.
        tol = max(self.tol, _RESUMED_TOL * steps.n_labels)
        return replace(self, tol=tol, acceleration=True)._run_em(steps, start, progress)

    @property
    def _learned(self) -> bool:
        return self.behavior == "learned"

    def _make_fit(
        self,
        labels: Labels,
        session: Session,
        steps: GPMSteps,
        parameters: GPMParameters,
        history: History,
    ) -> BaseFit:
        low, high = steps.interval(parameters)
        parameters = steps.to_host(parameters)
        return make_fit(
            labels,
            session,
            ("theta", "p_serious"),
            _item_results,
            model=self.name,
            settings=self.settings(),
            history=history,
            reliability=parameters.eps,
            low=low,
            high=high,
            behavior=behavior_names(labels.scale.names, *parameters),
            parameters={"pi": parameters.pi} if self._learned else {},
            readout="opinion",
        )

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
    return ItemResults(Distribution.of_cells(labels, arrays["theta"]), arrays["p_serious"])
