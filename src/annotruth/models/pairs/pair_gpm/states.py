r"""What annotators can be, and the weak priors of it, each stated once.

A serious annotator's votes follow the scores with a sharpness b of their own; those of an inverted one with
a negative b; those of a random one not at all. Side bias and tie rate are habits that an annotator has
whatever the class. Classes that always choose one outcome, or one item, have none.
"""

from __future__ import annotations

import numpy as np

SERIOUS, RANDOM, INVERTED, FAVOURS = "serious", "random", "inverted", "favours one item"
SIDES = ("always left", "always right")
ALWAYS_TIE = "always tie"

CLASSES = (SERIOUS, RANDOM, *SIDES, ALWAYS_TIE, INVERTED, FAVOURS)
"""The classes of annotators."""

CLASS_PRIOR = np.array([17.0, 0.8, 0.6, 0.6, 0.6, 0.4, 0.4])
"""Pseudo-counts of annotators in each class."""

SHARPNESS = np.exp(np.linspace(np.log(0.3), np.log(3.0), 9))
"""Levels of sharpness of serious annotators."""

INVERTED_SHARPNESS = np.array([-0.5, -1.0, -2.0])

LEVELS = np.concatenate([SHARPNESS, INVERTED_SHARPNESS, [0.0]])
"""All levels: serious, inverted, and random votes with habits."""

SHARPNESS_SD = 0.35
"""The spread of log sharpness; it counts as `SHARPNESS_ANNOTATORS` annotators."""

SHARPNESS_ANNOTATORS = 6.0
SHARPNESS_SD_RANGE = (0.15, 0.6)
INVERTED_SD = 0.5  # of the log of the sharpness of inverted annotators
SIDE_SD, TIE_SD = 0.3, 0.5  # of annotators' side biases and log tie rates
HABIT_ANNOTATORS = 3.0  # what these count as
PAIR_TIE_VARIANCE, PAIR_TIE_PAIRS = 0.05, 5.0  # of pairs' log tie rates, and what it counts as
SLIP = 0.015  # the share of votes that are any outcome
ALWAYS = 0.95  # how often those who always choose one outcome do so
FAVOURED = 0.97  # how often the favoured item is chosen
COEFFICIENT_PRECISION = 0.25  # of coefficients of standardised covariates
MAX_SPREAD = 6.0
"""Of scores over contexts: beyond, votes are determined by the context."""

MARGINAL = 2.0 * (16.0 * np.sqrt(3.0) / (15.0 * np.pi)) ** 2
r"""Log odds in a new context are those within a context divided by :math:`\sqrt{1 + 0.692 \tau^2}`."""

MAX_GROUPS = 32
