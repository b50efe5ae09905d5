"""The levels of PairGPM's latent states, as kernels and their NumPy twins read them."""

from __future__ import annotations

from typing import NamedTuple

from annotruth.kernels.arrays import Codes, Floats

SHARPNESS_SD = 0.6
"""The standard deviation of the log of the sharpness in the crowd; its mean is 0."""

N_FIRST = 32
"""The number of comparisons after which very unlikely states are left out, if as many follow."""

DROPPED = 1e-9
"""A state whose posterior is below this after some comparisons is left out for the rest.

The probability that such a state becomes likely by the rest is not larger than this either: given
the comparisons so far, the expectation of a posterior probability is what it is now.
"""

MAX_LOG_ODDS = 60.0
"""The largest log odds that probabilities are computed with."""

LIKELY = 1e-7
"""The least posterior probability of a state that counts for derivatives and for the information."""


class StateLevels(NamedTuple):
    """The levels of annotators' latent states and their prior probabilities.

    ``eps``, ``flip`` and ``chance`` have one column per behavior at a reliability. ``chance`` has one
    row per outcome and kind of comparison, ``3 * outcome + kind``: kind 0 if the annotator's favoured
    item is not shown, 1 if it is shown and won, 2 if it is shown and did not win.

    Examples
    --------
    >>> StateLevels._fields[:3]
    ('beta', 'nu', 'eps')
    """

    beta: Floats
    nu: Floats
    eps: Floats
    flip: Floats
    chance: Floats
    log_group: Floats
    log_beta: Floats
    log_nu: Floats
    log_behavior: Floats


class PairModel(NamedTuple):
    """The parameters that all passes of PairGPM read.

    Examples
    --------
    >>> PairModel._fields
    ('theta', 'offsets', 'levels')
    """

    theta: Floats  # groups x items
    offsets: Floats  # gamma, then the coefficients of covariates
    levels: StateLevels


class ActiveLevels(NamedTuple):
    """The levels of one annotator that are still considered.

    Examples
    --------
    >>> ActiveLevels._fields
    ('group', 'beta', 'nu', 'behavior')
    """

    group: Codes
    beta: Codes
    nu: Codes
    behavior: Codes
