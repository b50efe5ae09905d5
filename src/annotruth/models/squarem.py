r"""Acceleration of EM by squared extrapolation (SQUAREM), for fewer passes over the labels.

From two EM steps, :math:`x_0 \to x_1 \to x_2`, squared extrapolation
(Varadhan and Roland, "Simple and globally convergent methods for accelerating the convergence of any
EM algorithm", 2008) estimates their limit:

.. math:: x_0 + 2 a r + a^2 v, \qquad r = x_1 - x_0, \quad v = (x_2 - x_1) - r, \quad
    a = |r| / |v|.

With step length :math:`a = 1` that is :math:`x_2`. If each step is :math:`\lambda` times the one
before, it is the exact limit of the sequence. The next EM step begins there, and its pass over the labels
yields the objective there, so an extrapolation costs no extra pass. If the objective has fallen, the
extrapolation is rolled back and EM continues from :math:`x_2`. So the accepted objective never falls.

Differences from the paper, each measured to save passes or to end in the basin of plain EM:

- Each annotator and each item, or each row of shares that sum to 1, has its own step length a, because
  some have converged while others have not. The paper has one a for all.
- The first steps of EM are the longest and decide on the basin: a burn-in without extrapolation.
- a is at most 3 at first, at most doubled after each accepted extrapolation, and at most 100; after
  one that is rolled back the limit is divided by 4.
- An extrapolation overshoots in places, which the next step corrects. One whose objective has
  fallen by no more than ten times the last step's rise awaits confirmation: it is rolled back if the
  objective is still lower one step later.
- Optima lie at bounds (a reliability of 1, a share of 0) that EM cannot leave. An extrapolation
  keeps 30% of the distance between the last step and the bound; shares are then normalised.

A model may also end a step with an update that is not proven to raise the objective, such as a Newton
step on the log-likelihood, if it can supply a safeguarded alternative that is: the next pass shows
whether the objective has risen, and if not, the safeguarded update replaces it.

Parameters that annotators share are extrapolated here. Item-side arrays never leave the session: the
kernels of `annotruth.kernels.squarem` apply the same rules there, item by item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar, cast

import numpy as np

from annotruth.engines import Input, Pass, Session
from annotruth.kernels.arrays import Floats
from annotruth.kernels.shared import MARGIN, VARIANCE_MARGIN
from annotruth.models.em import ROUNDING

Point = TypeVar("Point")

Rule = Callable[[Any, Any, Any, float], Any]
"""From x0, x1, x2 and the longest step length to the extrapolated value."""

ItemRule = Literal["shares", "numbers", "variances"]
"""Shares of cells that sum to 1 per item; any number per item; a non-negative number per item."""

BURN_IN = 3
"""Steps before the first one that is used for an extrapolation."""

_FIRST_LIMIT, _GROWTH, _SHRINKAGE = 3.0, 2.0, 0.25
_MIN_LIMIT, _MAX_LIMIT = 1.5, 100.0
_TOLERATED_FALL = 10.0  # times the last rise: a fall that the next step may correct


def probabilities(x0: Floats, x1: Floats, x2: Floats, limit: float) -> Floats:
    """Extrapolate every number between 0 and 1 by itself."""
    return _inside(numbers(x0, x1, x2, limit), x2)


def shares(axis: int) -> Rule:
    """Return the rule for shares that sum to 1 along an axis."""

    def rule(x0: Floats, x1: Floats, x2: Floats, limit: float) -> Floats:
        inside = _inside(_extrapolate(x0, x1, x2, limit, axis), x2)
        inside /= inside.sum(axis=axis, keepdims=True)
        return inside

    return rule


def numbers(x0: Floats, x1: Floats, x2: Floats, limit: float) -> Floats:
    """Extrapolate every number by itself, without bounds."""
    return _extrapolate(x0, x1, x2, limit, None)


def numbers_above(least: float | Floats, axis: int | None = None) -> Rule:
    """Return the rule for numbers that stay above a bound, with one step length along an axis."""

    def rule(x0: Floats, x1: Floats, x2: Floats, limit: float) -> Floats:
        bounded: Floats = np.maximum(
            _extrapolate(x0, x1, x2, limit, axis), least + VARIANCE_MARGIN * (x2 - least)
        )
        return bounded

    return rule


def newest(x0: Any, x1: Any, x2: Any, limit: float) -> Any:
    """Keep the last value: no extrapolation."""
    return x2


class Squarem(Generic[Point]):
    """The extrapolations of one fit, used by `annotruth.models.em.run_em`.

    ``make``: Makes parameters of their fields: the class of the model's parameters.
    ``rules``: How to extrapolate each field of the parameters, in their order.
    ``session``, ``items``: Where item-side arrays are, and how to extrapolate those whose next
      value depends on the last. Arrays that every step computes anew need no rule.
    ``rising``: Which field of a step's `annotruth.models.em.Monitor` rises with every EM step.
    ``safeguarded``: For steps that end with an unproven update: maps such parameters to those of
      the proven update.
    """

    def __init__(
        self,
        make: Callable[..., Point],
        *rules: Rule,
        session: Session | None = None,
        items: Mapping[str, ItemRule] | None = None,
        rising: Literal["objective", "log_likelihood"] = "objective",
        safeguarded: Callable[[Point], Point] | None = None,
    ) -> None:
        self._make = make
        self._rules = rules
        self._items = [_ItemArray(session, *item) for item in (items or {}).items() if session]
        self._rising = rising
        self._safeguarded = safeguarded
        self._n_steps = 0
        self._path: list[Point] = []
        self._checkpoint: Point | None = None
        self._last: Literal["plain", "safeguarded", "extrapolated", "unconfirmed"] = "plain"
        self._limit = _FIRST_LIMIT
        self._objective = -np.inf
        self._rise = np.inf

    def propose(self, current: Point) -> Point:
        """Return the point to step from: the current one, or after two steps an extrapolation."""
        extrapolate = len(self._path) == 2 and self._last != "unconfirmed"
        if extrapolate or (self._safeguarded is not None and self._last != "unconfirmed"):
            self._checkpoint = current
            for array in self._items:
                array.save("checkpoint")
        if extrapolate:
            for array in self._items:
                array.extrapolate(self._limit)
            self._last = "extrapolated"
            self._path = [self._extrapolated(*self._path, current)]
            return self._path[0]
        if self._n_steps >= BURN_IN:
            for array in self._items:
                array.save("second" if self._path else "first")
            self._path.append(current)
        return current

    def accept(self, new: Point, monitor: Mapping[str, float]) -> tuple[Point, bool]:
        """Return the step's end and True, or the point rolled back to and False.

        False is also returned, with the step's end, while an extrapolation awaits confirmation.
        """
        objective = monitor[self._rising]
        last, self._last = self._last, "plain"
        self._n_steps += 1
        # Written so that NaN counts as a fall.
        if not objective >= self._objective - ROUNDING * abs(self._objective):
            tolerated = self._objective - _TOLERATED_FALL * self._rise
            if last == "extrapolated" and objective >= tolerated:
                self._last = "unconfirmed"
                return new, False
            if last in ("extrapolated", "unconfirmed"):
                self._limit = max(_SHRINKAGE * self._limit, _MIN_LIMIT)
                return self._roll_back(), False
            if last == "plain" and self._safeguarded is not None:
                self._last = "safeguarded"
                return self._safeguarded(self._roll_back()), False
        if last == "extrapolated":
            self._limit = min(_GROWTH * self._limit, _MAX_LIMIT)
        self._rise = objective - self._objective
        self._objective = objective
        return new, True

    def finish(self, current: Point) -> Point:
        """Return the final parameters: confirmed, and safeguarded where steps are not proven."""
        if self._last == "unconfirmed":
            current = self._roll_back()
        return current if self._safeguarded is None else self._safeguarded(current)

    def _roll_back(self) -> Point:
        for array in self._items:
            array.roll_back()
        self._path = []
        assert self._checkpoint is not None
        return self._checkpoint

    def _extrapolated(self, *path: Point) -> Point:
        return self._make(
            *(
                rule(*values, self._limit)
                for rule, *values in zip(self._rules, *cast(Any, path), strict=True)
            )
        )


class _ItemArray:
    """An item-side array of a session, the two points before it, and its checkpoint."""

    def __init__(self, session: Session, name: str, rule: ItemRule) -> None:
        per: Literal["cells", "items"] = "cells" if rule == "shares" else "items"
        self._session = session
        self._bound = {} if rule == "shares" else {"non_negative": rule == "variances"}
        saved = {which: f"{name} {which}" for which in ("first", "second", "checkpoint")}
        for other in saved.values():
            session.allocate(other, per=per)
        keep = f"squarem.copy_{per}"
        names = ("x", "copy")
        self._save = {
            which: Pass(keep, (name, other), arguments=names) for which, other in saved.items()
        }
        self._roll_back = Pass(keep, (saved["checkpoint"], name), arguments=names)
        self._extrapolate = Pass(
            f"squarem.extrapolate_{per}",
            (name, saved["first"], saved["second"]),
            inputs=(Input("limit"), *map(Input, self._bound)),
            arguments=("x", "x0", "x1"),
        )

    def save(self, which: Literal["first", "second", "checkpoint"]) -> None:
        self._session.run_pass(self._save[which])

    def extrapolate(self, limit: float) -> None:
        self._session.run_pass(self._extrapolate, limit=limit, **self._bound)

    def roll_back(self) -> None:
        self._session.run_pass(self._roll_back)


def _extrapolate(x0: Floats, x1: Floats, x2: Floats, limit: float, axis: int | None) -> Floats:
    """Extrapolate with one step length along an axis; None: one for every number."""
    r = x1 - x0
    v = (x2 - x1) - r
    r2, v2 = r * r, v * v
    if axis is not None:
        r2, v2 = r2.sum(axis=axis, keepdims=True), v2.sum(axis=axis, keepdims=True)
    ratio = np.where(v2 > 0, np.sqrt(r2 / np.where(v2 > 0, v2, 1.0)), np.inf)
    a = np.minimum(np.maximum(ratio, 1.0), limit)
    extrapolated: Floats = np.where(a <= 1.0, x2, x0 + 2.0 * a * r + a * a * v)
    return extrapolated


def _inside(extrapolated: Floats, last: Floats) -> Floats:
    """Keep probabilities off the bounds 0 and 1."""
    inside: Floats = np.clip(extrapolated, MARGIN * last, 1.0 - MARGIN * (1.0 - last))
    return inside
