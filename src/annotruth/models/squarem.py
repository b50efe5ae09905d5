r"""Fewer passes over the labels: leaps along the way that EM's steps go.

EM goes uphill in steps that become ever smaller. From two of them, :math:`x_0 \to x_1 \to x_2`,
squared extrapolation (Varadhan and Roland, "Simple and globally convergent methods for
accelerating the convergence of any EM algorithm", 2008) tells where they lead:

.. math:: x_0 + 2 a r + a^2 v, \qquad r = x_1 - x_0, \quad v = (x_2 - x_1) - r, \quad
    a = |r| / |v|.

With :math:`a = 1` that is :math:`x_2`. If each step is :math:`\lambda` times the one before, it is
where all of them end. The next step begins there, and its pass over the labels tells the
objective there: a leap costs no pass, unless the objective has fallen. Then the leap is taken
back and EM goes on from :math:`x_2`. So what has been kept never falls.

What is done otherwise than in the paper, each because it was measured to save passes or to end on
the hill that plain EM climbs:

- Each annotator and each item, or each row of shares that sum to 1, has a reach a of its own: some
  have arrived while others are on their way. In the paper there is one a for all.
- The first steps of EM are the longest and decide on the hill: they are left alone.
- a is at most 3 at first, then up to twice what it was after each leap that rose, and at most
  100; after one that is taken back it may be a quarter.
- A leap overshoots here and there, and the step after it mends that. One that has fallen by no
  more than ten times what the last step rose is in doubt until that step: it is taken back if
  the objective is then still lower than before the leap.
- Optima lie at bounds (a reliability of 1, a share of 0) from which EM cannot come back. A leap
  leaves 30% of what lay between the last step and the bound; shares are then normalised.

Nor need a step itself have a proof that it rises. A model may end it boldly, say with Newton's
step on the log-likelihood, if it can also tell an end that has a proof: as the next pass tells
whether it has risen, a bold end that fell gives way to the ``safeguarded`` one.

What annotators share is leapt with here. What belongs to items never leaves the session: the
kernels of `annotruth.kernels.squarem` do there, item by item, what the rules do here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar, cast

import numpy as np

from annotruth.engines import Pass, Session
from annotruth.kernels.arrays import Floats
from annotruth.kernels.squarem import NEAREST, NEAREST_TO_ZERO
from annotruth.models.em import ROUNDING

Point = TypeVar("Point")

Rule = Callable[[Any, Any, Any, float], Any]
"""From x0, x1, x2 and the longest reach to where a leap ends."""

ItemRule = Literal["shares", "numbers", "variances"]
"""Shares of cells that sum to 1 by item; any numbers of items; numbers that are not negative."""

BURN_IN = 3
"""Steps before the first that is used for a leap: they decide on the hill."""

_AT_FIRST, _LONGER, _SHORTER = 3.0, 2.0, 0.25
_LEAST, _MOST = 1.5, 100.0
_FORGIVEN = 10.0  # times what the last step rose: a fall that a step may make good


def probabilities(x0: Floats, x1: Floats, x2: Floats, longest: float) -> Floats:
    """Leap with each number between 0 and 1 by itself."""
    return _inside(numbers(x0, x1, x2, longest), x2)


def shares(axis: int) -> Rule:
    """Leap with shares that sum to 1 along an axis."""

    def rule(x0: Floats, x1: Floats, x2: Floats, longest: float) -> Floats:
        inside = _inside(_ahead(x0, x1, x2, longest, axis), x2)
        inside /= inside.sum(axis=axis, keepdims=True)
        return inside

    return rule


def numbers(x0: Floats, x1: Floats, x2: Floats, longest: float) -> Floats:
    """Leap with each number by itself, wherever it leads."""
    return _ahead(x0, x1, x2, longest, None)


def numbers_above(least: float) -> Rule:
    """Leap with each number by itself, and stay above a bound."""

    def rule(x0: Floats, x1: Floats, x2: Floats, longest: float) -> Floats:
        ahead: Floats = np.maximum(
            numbers(x0, x1, x2, longest), least + NEAREST_TO_ZERO * (x2 - least)
        )
        return ahead

    return rule


def newest(x0: Any, x1: Any, x2: Any, longest: float) -> Any:
    """Stay where the last step ended."""
    return x2


class Squarem(Generic[Point]):
    """The leaps of one fit, for `annotruth.models.em.run_em`.

    Parameters
    ----------
    make
        Makes a point of its fields: the class of the model's parameters.
    rules
        How to leap with each field of the parameters, in their order.
    session, items
        Where item-side arrays lie, and how to leap with those that belong to the point: whose
        next value depends on the last. What a step computes anew does not.
    rising
        What of a step's `annotruth.models.em.Monitor` rises at every step of EM.
    safeguarded
        Where steps end boldly, without proof that it rises there: from such an end to one that
        has a proof.
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
        self._cautious = safeguarded
        self._n_steps = 0
        self._path: list[Point] = []
        self._home: Point | None = None
        self._began: Literal["here", "at a proven end", "with a leap", "in doubt"] = "here"
        self._longest = _AT_FIRST
        self._height = -np.inf
        self._gain = np.inf

    def propose(self, here: Point) -> Point:
        """Say where the next step begins: here, or after two steps where they lead."""
        leap = len(self._path) == 2 and self._began != "in doubt"
        if leap or (self._cautious is not None and self._began != "in doubt"):
            self._home = here
            for array in self._items:
                array.keep("home")
        if leap:
            for array in self._items:
                array.leap(self._longest)
            self._began = "with a leap"
            self._path = [self._ahead(*self._path, here)]
            return self._path[0]
        if self._n_steps >= BURN_IN:
            for array in self._items:
                array.keep("between" if self._path else "before")
            self._path.append(here)
        return here

    def accept(self, new: Point, monitor: Mapping[str, float]) -> tuple[Point, bool]:
        """Take a step's end, or go back to where it came from if that led downhill."""
        height = monitor[self._rising]
        began, self._began = self._began, "here"
        self._n_steps += 1
        # Written so that what is not a number has fallen.
        if not height >= self._height - ROUNDING * abs(self._height):
            if began == "with a leap" and height >= self._height - _FORGIVEN * self._gain:
                self._began = "in doubt"
                return new, False
            if began in ("with a leap", "in doubt"):
                self._longest = max(_SHORTER * self._longest, _LEAST)
                return self._back(), False
            if began == "here" and self._cautious is not None:
                self._began = "at a proven end"
                return self._cautious(self._back()), False
        if began == "with a leap":
            self._longest = min(_LONGER * self._longest, _MOST)
        self._gain = height - self._height
        self._height = height
        return new, True

    def settle(self, here: Point) -> Point:
        """Say where to stay when the loop has ended: where there is a proof."""
        if self._began == "in doubt":
            here = self._back()
        return here if self._cautious is None else self._cautious(here)

    def _back(self) -> Point:
        for array in self._items:
            array.go_home()
        self._path = []
        assert self._home is not None
        return self._home

    def _ahead(self, *path: Point) -> Point:
        return self._make(
            *(
                rule(*values, self._longest)
                for rule, *values in zip(self._rules, *cast(Any, path), strict=True)
            )
        )


class _ItemArray:
    """An item-side array of a session, the two points before it, and the one to go back to."""

    def __init__(self, session: Session, name: str, rule: ItemRule) -> None:
        per: Literal["cells", "items"] = "cells" if rule == "shares" else "items"
        self._session = session
        self._bounded = () if rule == "shares" else (rule == "variances",)
        kept = {which: f"{name} {which}" for which in ("before", "between", "home")}
        for other in kept.values():
            session.allocate(other, per=per)
        keep = f"squarem.keep_{per}"
        self._keep = {which: Pass(keep, (name, other)) for which, other in kept.items()}
        self._go_home = Pass(keep, (kept["home"], name))
        self._leap = Pass(f"squarem.leap_{per}", (name, kept["before"], kept["between"]))

    def keep(self, which: Literal["before", "between", "home"]) -> None:
        self._session.run_pass(self._keep[which])

    def leap(self, longest: float) -> None:
        self._session.run_pass(self._leap, longest, *self._bounded)

    def go_home(self) -> None:
        self._session.run_pass(self._go_home)


def _ahead(x0: Floats, x1: Floats, x2: Floats, longest: float, axis: int | None) -> Floats:
    """Leap, with one reach for all that stands along an axis; None: each has its own."""
    r = x1 - x0
    v = (x2 - x1) - r
    r2, v2 = r * r, v * v
    if axis is not None:
        r2, v2 = r2.sum(axis=axis, keepdims=True), v2.sum(axis=axis, keepdims=True)
    far = np.sqrt(np.divide(r2, v2, out=np.full_like(r2, np.inf), where=v2 > 0))
    a = np.minimum(np.maximum(far, 1.0), longest)
    ahead: Floats = np.where(a <= 1.0, x2, x0 + 2.0 * a * r + a * a * v)
    return ahead


def _inside(ahead: Floats, last: Floats) -> Floats:
    """Keep what was between 0 and 1 there, and not too near."""
    inside: Floats = np.clip(ahead, NEAREST * last, 1.0 - NEAREST * (1.0 - last))
    return inside
