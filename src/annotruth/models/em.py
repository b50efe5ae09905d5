"""The one loop of every iterative model: start, step, monitor, stop, and why it stopped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError, ConvergenceWarning, InputError

if TYPE_CHECKING:
    from annotruth.models.squarem import Squarem

Parameters = TypeVar("Parameters")

ROUNDING = 1e-13
"""Changes of the objective that are smaller than this share of it are rounding."""


class Monitor(NamedTuple):
    """What a step reports of itself."""

    log_likelihood: float
    """Observed-data log-likelihood of the parameters the step began with."""
    objective: float
    """What the stopping rule watches, such as EM's Q after the step."""


class Progress(NamedTuple):
    """What a caller hears after every iteration."""

    n_iter: int
    max_iter: int
    log_likelihood: float
    change: float
    stage: str = ""
    """What the fit is for, where there are several."""


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, eq=False)
class History:
    """How the loop went and why it ended.

    Attributes
    ----------
    log_likelihood
        Before every step, and once more at the end: ``n_iter + 1`` entries.
    objective
        After every step: ``n_iter`` entries. A step that was taken back or is in doubt, because
        a leap of `annotruth.models.squarem` led downhill, repeats the entry before it.
    converged, stop_reason
        Whether the stopping rule was met, and in words why the loop ended.
    """

    log_likelihood: NDArray[np.float64]
    objective: NDArray[np.float64]
    converged: bool
    stop_reason: str

    @property
    def n_iter(self) -> int:
        """How many steps were taken."""
        return len(self.objective)


def run_em(
    step: Callable[[Parameters], tuple[Parameters, Monitor]],
    start: Parameters,
    *,
    log_likelihood: Callable[[Parameters], float],
    tol: float,
    max_iter: int,
    watched: str,
    progress: ProgressCallback | None = None,
    acceleration: Squarem[Parameters] | None = None,
) -> tuple[Parameters, History]:
    """Repeat ``step`` until the objective changes by less than ``tol``.

    ``log_likelihood`` is asked once, of the final parameters. ``watched`` names the objective
    in messages. Reaching ``max_iter`` warns: the cap is not convergence.

    With ``acceleration``, some steps begin at a leap ahead. Three steps in a row, one or two of
    them after a leap, must then change the objective by less than ``tol`` together, so that one
    small step among larger ones does not stop the loop. Steps that were taken back, or are in
    doubt, do not count.
    """
    check_loop_options(tol=tol, max_iter=max_iter)
    parameters = start
    history: list[Monitor] = []
    span = 1 if acceleration is None else 3
    recent: list[float] = []
    change = np.inf
    converged = False
    while not converged and len(history) < max_iter:
        kept = True
        if acceleration is None:
            parameters, monitor = step(parameters)
        else:
            parameters, monitor = step(acceleration.propose(parameters))
            parameters, kept = acceleration.accept(parameters, monitor._asdict())
        if not kept:
            monitor = history[-1]
        if not np.isfinite(monitor.objective):
            raise AnnotruthError(
                f"the fit broke down at iteration {len(history) + 1}: {watched} is not finite"
            )
        if kept:
            recent = [*recent[-span:], monitor.objective]
        if kept and len(recent) > span:
            change = max(recent) - min(recent)
            # Below the rounding of the objective itself nothing more can be told.
            converged = change < max(tol, ROUNDING * abs(monitor.objective))
        history.append(monitor)
        if progress is not None:
            progress(Progress(len(history), max_iter, monitor.log_likelihood, change))

    if converged:
        reason = f"change of {watched} below {tol:g}"
    else:
        reason = f"cap of {max_iter:,} iterations reached"
        warnings.warn(
            f"{reason} with a last change of {watched} of {change:.3g} (tol {tol:g}): "
            "the answer may still move; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    if acceleration is not None:
        parameters = acceleration.settle(parameters)
    before, objective = (np.array(column) for column in zip(*history, strict=True))
    return parameters, History(
        log_likelihood=np.append(before, log_likelihood(parameters)),
        objective=objective,
        converged=converged,
        stop_reason=reason,
    )


def no_iterations(log_likelihood: float) -> History:
    """Tell of a fit that took no step of its own."""
    return History(np.array([log_likelihood]), np.empty(0), True, "")


def check_loop_options(*, tol: float, max_iter: int) -> None:
    """Refuse a tolerance or a cap that no loop can keep."""
    if not tol >= 0:
        raise InputError(f"tol must be 0 or more, not {tol}")
    if max_iter < 1:
        raise InputError(f"max_iter must be 1 or more, not {max_iter}")
