"""Base classes of the models that are fitted by EM."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from annotruth.engines import Engine, Session, get_engine
from annotruth.models.base import Estimator
from annotruth.models.em import History, ProgressCallback, ResumableSteps, Steps, run_em
from annotruth.models.result import Fit
from annotruth.observations import Labels, LabelSummary

P = TypeVar("P")
S = TypeVar("S", bound=ResumableSteps[Any])


@dataclass(kw_only=True)
class EMEstimator(Estimator):
    """Base of models that are fitted by EM, in one run or in several.

    Parameters
    ----------
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels.
    engine
        Where the passes over the labels run.
    """

    tol: float = 1e-4
    max_iter: int = 1000
    acceleration: bool = True
    engine: str | Engine = "memory"

    def _check(self, labels: LabelSummary) -> None:
        """Refuse options and labels that the model cannot be fitted with."""

    def _run_em(
        self, steps: Steps[P], start: P, progress: ProgressCallback | None = None
    ) -> tuple[P, History]:
        return run_em(
            steps,
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            accelerate=self.acceleration,
            progress=progress,
        )


@dataclass(kw_only=True)
class IterativeEstimator(EMEstimator, Generic[S]):
    """Base of models that are fitted by one run of EM: a subclass supplies steps and makes the fit.

    Its options are those of `EMEstimator`.
    """

    def _fit(self, labels: Labels, progress: ProgressCallback | None, previous: Fit | None) -> Fit:
        self._check(labels)
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = self._steps(labels, session)
            if previous is None:
                parameters, history = self._run_em(steps, steps.start(), progress)
            else:
                parameters, history = self._resume_em(steps, steps.resume(previous), progress)
            return self._make_fit(labels, session, steps, parameters, history)

    def _resume_em(
        self, steps: Steps[P], start: P, progress: ProgressCallback | None
    ) -> tuple[P, History]:
        """Run EM from the parameters of a previous fit, by default with the same stopping rule."""
        return self._run_em(steps, start, progress)

    @abstractmethod
    def _steps(self, labels: Labels, session: Session) -> S:
        """Return the model's equations over a session."""

    @abstractmethod
    def _make_fit(
        self, labels: Labels, session: Session, steps: S, parameters: Any, history: History
    ) -> Fit:
        """Return the fit with the final parameters, which `Steps.finalize` has been called with."""
