"""The finding of a comparison: the simplest model that predicts as well as the best one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from annotruth.errors import counted
from annotruth.selection.heldout import HeldOut

SIMPLEST_FIRST = (
    *("majority", "mean", "median"),
    *("one-coin", "bwa", "gpm", "glad", "mace", "subject-bias", "ordinal-mixture"),
    *("ordinal-binary", "dawid-skene", "ibcc", "ebcc", "robust-gpm"),
)
"""Models by how much they estimate per annotator: nothing, one or a few numbers, a table or more.

Models that are not listed come last.
"""

_MANY = 100


class Finding(NamedTuple):
    """The result of a comparison."""

    model: str  # the simplest model within one standard error of the best one
    sentence: str  # the finding, one sentence without a full stop


def find_simplest(scores: Mapping[str, HeldOut]) -> Finding:
    """Return the simplest model that predicts held-out labels as well as the best one.

    That is, within one standard error of the difference on the same labels. ``scores`` has the
    best model first.
    """
    best, *others = scores.values()
    if not others:
        return Finding(best.model, f"{best.model} is the only model that could be compared")
    differences = {other.model: best.ahead_of(other) for other in others}
    # An unknown error is no reason to prefer a model that is less simple.
    close = [name for name, (behind, error) in differences.items() if not behind > error]
    simplest = min([best.model, *close], key=_rank)
    if any(math.isnan(error) for _, error in differences.values()):
        sentence = (
            f"{simplest} is the simplest model, and there are too few items or annotators to tell "
            "whether another one predicts held-out labels better"
        )
    elif simplest != best.model:
        sentence = (
            f"{simplest} predicts held-out labels as well as the best model ({best.model}): the "
            "difference is within one standard error"
        )
    elif close:
        sentence = (
            f"{best.model} predicts held-out labels best, and "
            f"{counted(len(close), 'less simple model is', 'less simple models are')} within one "
            "standard error"
        )
    else:
        behind, error = differences[others[0].model]
        sentence = (
            f"{best.model} predicts held-out labels best, {_in_errors(behind, error)} standard "
            f"errors ahead of {others[0].model}"
        )
    return Finding(simplest, sentence)


def _in_errors(behind: float, error: float) -> str:
    """Return a difference in standard errors, which may be 0."""
    return f"{behind / error:.1f}" if behind < _MANY * error else f"more than {_MANY}"


def _rank(name: str) -> int:
    return SIMPLEST_FIRST.index(name) if name in SIMPLEST_FIRST else len(SIMPLEST_FIRST)
