r"""Averages of Davidson's model over a normal difference, for the kernels of PairGPM.

.. math:: P(\text{left}), P(\text{right}), P(\text{tie}) \propto e^{d/2}, e^{-d/2}, \nu, \qquad d \sim N(m, s^2).

Gauss-Hermite rules with few nodes fail for a large s, where the outcome is nearly a step function of d;
equidistant nodes do not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled

MAX_LOG_ODDS = 60.0
"""Differences are cut off there."""

_NODES = (5, 9, 23)
_EQUIDISTANT = 89
_RANGE = 4.4  # standard deviations


class Quadrature(NamedTuple):
    """Rules one after the other: that of a standard deviation s is the first with ``s <= limit``."""

    node: Floats
    weight: Floats
    ptr: Codes
    limit: Floats


def make_quadrature() -> Quadrature:
    """Return the rules: the mean alone, Gauss-Hermite with 5, 9 and 23 nodes, equidistant nodes."""
    rules = [(np.zeros(1), np.ones(1))]
    rules += [np.polynomial.hermite_e.hermegauss(n) for n in _NODES]
    equidistant = np.linspace(-_RANGE, _RANGE, _EQUIDISTANT)
    rules.append((equidistant, np.exp(-(equidistant**2) / 2.0)))
    sizes = [len(node) for node, _ in rules]
    return Quadrature(
        np.concatenate([node for node, _ in rules]),
        np.concatenate([weight / weight.sum() for _, weight in rules]),
        np.append(0, np.cumsum(sizes)).astype(np.int64),
        np.array([0.07, 0.5, 1.5, 5.0, np.inf]),
    )


class Averages(NamedTuple):
    """Of left and right: the mean probability, its slope by d, and the mean of its product with a tie's."""

    left: float
    right: float
    left_slope: float
    right_slope: float
    left_tie: float
    right_tie: float


@compiled
def rule_of(sd: float, rules: Quadrature) -> int:
    """Return the number of the rule for a standard deviation."""
    rule = 0
    while sd > rules.limit[rule]:
        rule += 1
    return rule


@compiled
def averages(mean: float, sd: float, nu: float, rules: Quadrature) -> Averages:
    """Return averages over a normal d with this mean and standard deviation."""
    rule = rule_of(sd, rules)
    left = right = left_slope = right_slope = left_tie = right_tie = 0.0
    for i in range(rules.ptr[rule], rules.ptr[rule + 1]):
        d = min(max(mean + sd * rules.node[i], -MAX_LOG_ODDS), MAX_LOG_ODDS)
        odds = math.exp(0.5 * d)
        inverse = 1.0 / odds
        scale = 1.0 / (odds + inverse + nu)
        a, b, tie = odds * scale, inverse * scale, nu * scale
        m, w = 0.5 * (a - b), rules.weight[i]
        left += w * a
        right += w * b
        left_slope += w * a * (0.5 - m)
        right_slope -= w * b * (0.5 + m)
        left_tie += w * a * tie
        right_tie += w * b * tie
    return Averages(left, right, left_slope, right_slope, left_tie, right_tie)
