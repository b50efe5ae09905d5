r"""GPM, the paper's model, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine, Session, get_engine
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.append import Part
from annotruth.models.base import Estimator
from annotruth.models.base_fit import BaseFit
from annotruth.models.behaviors import (
    Behavior,
    behavior_names,
    behaviors_of,
    check_behavior,
    pi_of,
)
from annotruth.models.distribution import Distribution
from annotruth.models.em import History, ProgressCallback, no_iterations, run_em
from annotruth.models.gpm.incremental import GPMKnown, known_of, off_the_ends, settled
from annotruth.models.gpm.steps import Parameters, Steps
from annotruth.models.item_results import OfItems, fitted
from annotruth.models.result import Fit

# An update goes on until Q changes by less than this a label: what is slower to settle is for
# passes over all labels.
_SETTLED = 2e-8


@dataclass(kw_only=True)
class GPM(Estimator):
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
    numerator without :math:`\epsilon_s`; its likelihood and its authors' program have it.)

    An item's label is the category of highest probability; an exact tie goes to the category
    that comes first on the scale. A known truth fixes the item's distribution. An annotator is a
    spammer when :math:`\epsilon_s < 0.5`. The interval of a reliability holds the values whose
    log-likelihood is within 1.92 of the best, the items' distributions taken as they are.
    `predict_proba` predicts labels by the model's own equation, :math:`p(r_{e,s} = n)` above.

    With few labels an item, theta fits its own noise and reliabilities run to 1: that is this
    estimator, and its intervals do not see it.

    Parameters
    ----------
    behavior
        "uniform", the paper's choice: irregular labels are random. "learned" estimates
        :math:`\pi_s` too. It would degenerate for people with few labels, whose own few answers
        are then their whole behavior, so it is learned from 5 labels a category on and stays
        uniform below; one without a single irregular label keeps the behavior it had.
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to leap ahead along EM's steps (`annotruth.models.squarem`) for fewer passes
        over the labels. The paper does not.
    engine
        Where the passes over the labels run.
    """

    name: ClassVar[str] = "gpm"
    fits_on_disk: ClassVar[bool] = True
    fits_on_spark: ClassVar[bool] = True
    updates_from: ClassVar[int] = 100_000

    behavior: Behavior = "uniform"
    tol: float = 1e-4
    max_iter: int = 1000
    acceleration: bool = False
    engine: str | Engine = "memory"

    def _fit(self, labels: LabelSummary, progress: ProgressCallback | None) -> BaseFit:
        check_behavior(self.behavior)
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = Steps(labels, session, learned=self._learned)
            return self._read(labels, session, steps, *self._run_em(steps, steps.start(), progress))

    @property
    def _learned(self) -> bool:
        return self.behavior == "learned"

    def _run_em(
        self, steps: Steps, start: Parameters, progress: ProgressCallback | None = None
    ) -> tuple[Parameters, History]:
        return run_em(
            steps.step,
            start,
            log_likelihood=steps.read_out,
            tol=self.tol,
            max_iter=self.max_iter,
            watched="Q",
            progress=progress,
            acceleration=steps.acceleration() if self.acceleration else None,
        )

    def _read(
        self,
        labels: LabelSummary,
        session: Session,
        steps: Steps,
        found: Parameters,
        history: History,
    ) -> BaseFit:
        low, high = steps.interval(found)
        return fitted(
            labels,
            session,
            ("theta", "p_serious"),
            _items_of,
            model=self.name,
            settings=self.settings(),
            history=history,
            reliability=found.eps,
            low=low,
            high=high,
            behavior=behavior_names(labels.scale.names, *found),
            parameters={"pi": found.pi} if self._learned else {},
        )

    def _known(self, fit: Fit) -> GPMKnown:
        return known_of(fit, pi_of(fit, self.behavior), get_engine(self.engine))

    def _settled(
        self, was: GPMKnown, begin: GPMKnown, before: Part, after: Part, theta: Distribution
    ) -> tuple[GPMKnown, Distribution, History]:
        # Leaps end where plain steps do.
        fast = replace(self, acceleration=True, tol=max(self.tol, _SETTLED * after.labels.n_labels))
        return settled(was, begin, before, after, theta, get_engine(self.engine), fast._run_em)

    def _whole(self, known: GPMKnown, labels: Labels, theta: Distribution) -> BaseFit:
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = self._resumed(labels, session, theta)
            history = no_iterations(steps.read_out(known.at))
            return self._read(labels, session, steps, known.at, history)

    def _touched(
        self,
        known: GPMKnown,
        labels: Labels,
        theta: Distribution,
        progress: ProgressCallback | None,
    ) -> BaseFit:
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = self._resumed(labels, session, theta)
            end = self._run_em(steps, off_the_ends(known.at, 1e-9), progress)
            return self._read(labels, session, steps, *end)

    def _resumed(self, labels: Labels, session: Session, theta: Distribution) -> Steps:
        steps = Steps(labels, session, learned=self._learned)
        steps.resume(theta.of_each_cell(labels))
        return steps

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit = self.result_
        assert fit.distribution is not None
        assert fit.reliability is not None
        theta = fit.distribution.rows(item, fit.data.n_categories)
        eps = fit.reliability[annotator][:, np.newaxis]
        pi = pi_of(fit, self.behavior)
        return eps * theta + (1.0 - eps) * behaviors_of(pi, annotator, fit.data.n_categories)


def _items_of(labels: Labels, arrays: Mapping[str, NDArray[Any]]) -> OfItems:
    return OfItems(Distribution.of_cells(labels, arrays["theta"]), arrays["p_serious"])
