"""The EM loop of the iterative models."""

from __future__ import annotations

import math
import platform
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError, ConvergenceWarning, InputError, counted, setting

P = TypeVar("P")
"""The parameters that a model's steps update."""

ROUNDING = 1e-13
"""Relative changes of the objective below this are rounding."""

_LIBRARIES = ("annotruth", "numpy", "pyarrow")


class Monitor(NamedTuple):
    """What a step reports to the loop."""

    log_likelihood: float
    """Observed-data log-likelihood of the parameters the step began with."""
    objective: float
    """What steps raise, such as Q after the step."""
    compared: float | None = None
    """What the stopping rule compares between steps, if it is not the objective."""


class Progress(NamedTuple):
    """What a progress callback receives after every iteration."""

    n_iter: int
    max_iter: int
    log_likelihood: float
    change: float
    stage: str = ""
    """The purpose of the fit, if it is one of several."""


ProgressCallback = Callable[[Progress], None]


class ProgressReporter:
    """A progress callback that is also called at the start of each stage, such as reading.

    Plain functions are called after iterations only. This class keeps where the fit is; subclasses show it.
    """

    stage: str = ""
    latest: Progress | None = None  # of the iterations of this stage

    def start(self, stage: str, *, done: int = 0, total: int = 0) -> None:
        """Show that a stage starts; of ``total`` such stages, if that is known, ``done`` are over."""
        self.stage, self.latest = stage, None

    def __call__(self, progress: Progress) -> None:
        """Show the progress of an iteration."""
        self.latest = progress


def start_stage(
    progress: ProgressCallback | None, stage: str, *, done: int = 0, total: int = 0
) -> None:
    """Report the start of a stage to callbacks that take stages."""
    if isinstance(progress, ProgressReporter):
        progress.start(stage, done=done, total=total)


class Acceleration(Protocol[P]):
    """How the loop begins steps at extrapolated parameters."""

    def propose(self, current: P) -> P:
        """Return the point to step from."""

    def accept(self, new: P, monitor: Mapping[str, float]) -> tuple[P, bool]:
        """Return where to continue after a step, and whether its objective counts."""

    def finish(self, current: P) -> P:
        """Return the final parameters."""


class Steps(Protocol[P]):
    """What a model supplies to the loop: its equations over a session."""

    objective_name: str
    """The name of what the stopping rule compares, in messages."""

    def start(self) -> P:
        """Return the parameters that a fit starts with."""

    def step(self, parameters: P) -> tuple[P, Monitor]:
        """Pass over the labels once and return the updated parameters."""

    def finalize(self, parameters: P) -> float:
        """Compute the item-side results of the final parameters; return their log-likelihood."""

    def acceleration(self) -> Acceleration[P]:
        """Return how to extrapolate the steps."""


@dataclass(frozen=True, eq=False)
class History:
    """The history of the iterations and why they ended."""

    # before every step, and once more at the end: ``n_iter + 1`` entries
    log_likelihood: NDArray[np.float64]
    # after every step: ``n_iter`` entries. A step that was rolled back, or whose extrapolation
    # awaits confirmation, repeats the entry before it.
    objective: NDArray[np.float64]
    converged: bool  # whether the stopping rule was met, and why the loop ended
    stop_reason: str

    @property
    def n_iter(self) -> int:
        """The number of steps."""
        return len(self.objective)

    @property
    def final_log_likelihood(self) -> float | None:
        """Log-likelihood of all observations at the end; None for a model that has none."""
        return float(self.log_likelihood[-1]) if len(self.log_likelihood) else None

    def lines(self, n: int, unit: str) -> list[str]:
        """Return the lines of a summary on convergence and likelihood; n is the number of units."""
        lines = []
        if self.n_iter:
            # Of a fit that converged, only what a model adds to the stopping rule is worth a line.
            reason = self.stop_reason.partition("; ")[2] if self.converged else self.stop_reason
            outcome = "converged" if self.converged else "NOT converged"
            iterations = counted(self.n_iter, "iteration")
            lines.append(f"{outcome} after {iterations}" + (f" ({reason})" if reason else ""))
        if (total := self.final_log_likelihood) is not None:
            lines.append(f"log-likelihood {total:,.2f}, {total / n:.4f} per {unit}")
        return lines

    def entries(self) -> dict[str, Any]:
        """Return the history, how it ended and the versions of libraries, as JSON types."""
        return {
            "n_iter": self.n_iter,
            "converged": self.converged,
            "stop_reason": self.stop_reason,
            "log_likelihood": self.final_log_likelihood,
            "history": {
                "log_likelihood": self.log_likelihood.tolist(),
                "objective": self.objective.tolist(),
            },
            "versions": {name: version(name) for name in _LIBRARIES}
            | {"python": platform.python_version()},
        }


@dataclass(frozen=True)
class EMLoop:
    """The options of the loop: when it stops, and whether it accelerates."""

    tol: float
    max_iter: int
    acceleration: bool = False

    def scaled(self, scale: float = 1.0, *, plain: bool = False) -> EMLoop:
        """Return the loop with another tolerance, without acceleration if it is to be plain."""
        acceleration = self.acceleration and not plain
        return replace(self, tol=scale * self.tol, acceleration=acceleration)


def run_em(
    steps: Steps[P],
    start: P,
    loop: EMLoop,
    *,
    progress: ProgressCallback | None = None,
    warn: bool = True,
) -> tuple[P, History]:
    """Repeat ``steps.step`` until the objective changes by less than ``tol``, then finalize.

    If a `Monitor` names another number to compare, the change is that of this number.

    Reaching ``max_iter`` is not convergence and warns, unless the parameters are not the result (``warn``).

    With ``acceleration``, some steps begin at extrapolated parameters (`Acceleration`).
    The objective must then change by less than ``tol`` over three steps in a row, so that one
    small step among larger ones does not stop the loop. Steps that were rolled back, or that
    await confirmation, do not count.
    """
    tol, max_iter, name = loop.tol, loop.max_iter, steps.objective_name
    check_loop_options(tol=tol, max_iter=max_iter)
    acceleration = steps.acceleration() if loop.acceleration else None
    span = 1 if acceleration is None else 3
    parameters, change, converged = start, math.inf, False
    monitors: list[Monitor] = []
    recent: list[float] = []
    while not converged and len(monitors) < max_iter:
        accepted = True
        if acceleration is None:
            parameters, monitor = steps.step(parameters)
        else:
            parameters, monitor = steps.step(acceleration.propose(parameters))
            parameters, accepted = acceleration.accept(parameters, monitor._asdict())
        if not accepted and monitors:
            monitor = monitors[-1]
        if not np.isfinite(monitor.objective):
            raise AnnotruthError(
                f"the fit failed at iteration {len(monitors) + 1}: {name} is not finite; "
                + (
                    "choose another model"
                    if acceleration is None
                    else f"try {setting('acceleration', False)}"
                )
            )
        if accepted:
            value = monitor.objective if monitor.compared is None else monitor.compared
            recent = [*recent[-span:], value]
            if len(recent) > span:
                change = max(recent) - min(recent)
                # A change below the rounding of the objective itself cannot be measured.
                converged = change < max(tol, ROUNDING * abs(value))
        monitors.append(monitor)
        if progress is not None:
            progress(Progress(len(monitors), max_iter, monitor.log_likelihood, change))

    reason = f"change of {name} below {tol:g}"
    if not converged:
        reason = f"reached max_iter ({max_iter:,}) before convergence"
        last = f"the last change of {name} was {change:.3g} (tol {tol:g}); "
        hint = f"raise max_iter or tol, such as {setting('max_iter', 10 * max_iter)}"
        if warn:
            text = f"{reason}: {last if np.isfinite(change) else ''}{hint}"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
    if acceleration is not None:
        parameters = acceleration.finish(parameters)
    before, objective, _ = zip(*monitors, strict=True)
    return parameters, History(
        log_likelihood=np.append(before, steps.finalize(parameters)),
        objective=np.array(objective),
        converged=converged,
        stop_reason=reason,
    )


def direct_history() -> History:
    """Return the history of a model that is computed directly, without iterations."""
    return History(np.empty(0), np.empty(0), converged=True, stop_reason="computed directly")


def check_loop_options(*, tol: float, max_iter: int) -> None:
    """Raise if the tolerance is negative or not finite, or there are no iterations."""
    if not 0 <= tol < np.inf:
        raise InputError(f"tol must be 0 or more, and finite, not {tol}")
    if max_iter < 1:
        raise InputError(f"max_iter must be 1 or more, not {max_iter}")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Restrict matrix products to one thread.

    Their rounding depends on the number of threads, and idle BLAS threads take cores from the passes.
    """
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limits
