r"""GPM, the paper's model, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.models.base import Capabilities, IterativeEstimator
from annotruth.models.base_fit import BaseFit
from annotruth.models.behaviors import (
    BehaviorOption,
    behavior_distribution,
    behavior_names,
    check_behavior_option,
    learned_behaviors,
)
from annotruth.models.distribution import Distribution
from annotruth.models.em import History, ProgressCallback
from annotruth.models.gpm.steps import GPMParameters, GPMSteps
from annotruth.models.item_results import ItemResults, make_fit

# Per label, of a fit that starts from a previous one.
_RESUMED_TOL = 1e-6


@dataclass(kw_only=True)
class GPM(IterativeEstimator[GPMSteps]):
    r"""A Generic Probabilistic Model to Recover Annotator's Behavior and Ground Truth Labeling.

    Annotator s answers item e seriously with probability :math:`\epsilon_s`, drawing from the
    item's distribution of serious opinion :math:`\theta_e`; otherwise from an irregular
    behavior :math:`\pi_s`:

    .. math:: p(r_{e,s} = n) = \epsilon_s \theta_{e,n} + (1 - \epsilon_s) \pi_{s,n}.

    Maximum likelihood by EM (Li, Ling, Wang, Li and Le Callet, 2020):

    .. math::
        \text{E:}\quad \mu_{e,s} &= \frac{\epsilon_s \theta_{e,r}}
            {\epsilon_s \theta_{e,r} + (1 - \epsilon_s) \pi_{s,r}} \\
        \text{M:}\quad \epsilon_s &= \frac{1}{|l_s|} \sum_{e \in l_s} \mu_{e,s}, \quad
        \theta_{e,n} = \frac{\sum_{s \in l_{e,n}} \mu_{e,s}}{\sum_{s \in l_e} \mu_{e,s}}, \quad
        \pi_{s,n} = \frac{\sum_{e \in l_{s,n}} (1 - \mu_{e,s})}{\sum_{e \in l_s} (1 - \mu_{e,s})}.

    It starts at :math:`\epsilon = 0.5`, the observed shares and :math:`\pi = 1/N`, and stops when
    Q changes by less than ``tol`` from one step to the next. (The paper prints the E-step's
    numerator without :math:`\epsilon_s`; its likelihood and its authors' code have it.)

    An item's label is the category of highest probability; an exact tie goes to the category
    that comes first on the scale. A known truth fixes the item's distribution. An annotator is a
    spammer when :math:`\epsilon_s < 0.5`. The interval of a reliability holds the values whose
    log-likelihood is within 1.92 of the best, the items' distributions taken as they are.
    `predict_proba` predicts labels by the model's own equation, :math:`p(r_{e,s} = n)` above.

    With few labels per item, theta fits its own noise and reliabilities run to 1. This is a
    property of the paper's estimator, and its intervals do not account for it.

    Parameters
    ----------
    behavior
        "uniform", the paper's choice: irregular labels are random. "learned" estimates
        :math:`\pi_s` too. It would degenerate for annotators with few labels, whose few labels
        would then be their whole behavior, so it is learned from 5 labels per category on and
        stays uniform below; an annotator without a single irregular label keeps the behavior of
        the step before.
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels. The paper does not.
    engine
        Where the passes over the labels run.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 2)]
    >>> at.GPM().fit(labels).result_.n_spammers
    0
    """

    name: ClassVar[str] = "gpm"
    capabilities: ClassVar[Capabilities] = Capabilities(out_of_core=True, distributed=True)

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
