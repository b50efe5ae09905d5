"""The arrays of PairGPM's kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats

_NODES = (5, 9, 15, 23)
_EQUIDISTANT = 89
_RANGE = 4.4  # standard deviations


class Quadrature(NamedTuple):
    """Rules one after the other: that of a standard deviation s is the first with ``s <= limit``."""

    node: Floats
    weight: Floats
    ptr: Codes
    limit: Floats


def make_quadrature() -> Quadrature:
    """Return the rules: the mean alone, Gauss-Hermite with 5, 9, 15 and 23 nodes, equidistant nodes."""
    rules = [(np.zeros(1), np.ones(1))]
    rules += [np.polynomial.hermite_e.hermegauss(n) for n in _NODES]
    equidistant = np.linspace(-_RANGE, _RANGE, _EQUIDISTANT)
    rules.append((equidistant, np.exp(-(equidistant**2) / 2.0)))
    sizes = [len(node) for node, _ in rules]
    return Quadrature(
        np.concatenate([node for node, _ in rules]),
        np.concatenate([weight / weight.sum() for _, weight in rules]),
        np.append(0, np.cumsum(sizes)).astype(np.int64),
        np.array([0.07, 0.5, 1.5, 3.0, 5.0, np.inf]),
    )


class Sites(NamedTuple):
    """The Gaussian site :math:`e^{z D - K D^2 / 2}` of each vote."""

    precision: Floats
    """K"""
    shift: Floats
    """z"""


class VoteDifferences(NamedTuple):
    """The mean and variance of each vote's difference."""

    mean: Floats
    variance: Floats


class Outcomes(NamedTuple):
    """Votes sorted by annotator, with what does not depend on the scores."""

    ptr: Codes
    outcome: NDArray[np.int8]
    weight: Floats
    tie_odds: Floats  # of the pair, relative to the annotator's
    has_ties: bool
    has_sides: bool
    slip: float
    rules: Quadrature


class HabitPrior(NamedTuple):
    """The normal priors of side biases and of log tie rates: means and standard deviations."""

    side: float
    side_sd: float
    tie: float
    tie_sd: float


class Habits(NamedTuple):
    """What ``fit_habits`` changes: annotators x levels of sharpness."""

    side: Floats
    tie: Floats  # the log tie rate
    value: Floats  # log of the marginal likelihood (Laplace), up to constants that levels share
    side_variance: Floats


class VoterHabits(NamedTuple):
    """What annotators are taken for: sharpness, side bias, log tie rate, and the weight of their votes."""

    sharpness: Floats
    side: Floats
    tie: Floats
    weight: Floats


class Predictions(NamedTuple):
    """Of each vote: its log-probability, and the slope and information by the pair's log tie rate.

    The latter two are multiplied by the weights of the vote and of its annotator.
    """

    log_p: Floats
    tie_slope: Floats
    tie_information: Floats


class ContextLayout(NamedTuple):
    """Votes by context. Item a of context c is ``items[item_ptr[c] + a]``.

    Without contexts, ``item_ptr`` has one entry, and ``left`` and ``right`` are codes of items.
    """

    context: Codes
    left: Codes  # places of both items in the context
    right: Codes
    item_ptr: Codes
    items: Codes
    vote_ptr: Codes
    votes: Codes  # those of context c are votes[vote_ptr[c]:vote_ptr[c + 1]]
    square_ptr: Codes  # of a matrix per context
    covariates: Floats  # of each vote, in order of votes


class ContextPosterior(NamedTuple):
    """The posterior of contexts: B one after the other, and per item the mean of u and S F."""

    variance: Floats  # the prior's: t, 0 where an item has no effect of its own
    design: Floats  # B
    mean: Floats  # of u where theta and the coefficients are 0
    covariate: Floats  # items of contexts x covariates: by what a coefficient lowers u


class Equations(NamedTuple):
    """The equations of theta and the coefficients, and once they are solved the posterior of these."""

    information: Floats
    right_side: Floats
    covariance: Floats
    solution: Floats
