"""What annotators do when they are not serious, in models that learn a distribution for each.

The behaviors that RobustGPM distinguishes are in `annotruth.models.robust_gpm.strategies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit

BehaviorOption = Literal["uniform", "learned"]
"""Whether labels that are not serious are uniform, or have a distribution learned per annotator."""

# A distribution has N - 1 free parameters: with fewer labels per category it stays uniform.
_LABELS_PER_CATEGORY = 5


def check_behavior_option(behavior: str) -> None:
    """Refuse an unknown option."""
    if behavior not in get_args(BehaviorOption):
        raise InputError(f"unknown behavior {behavior!r}: choose uniform or learned")


def enough_labels(
    n_labels: NDArray[np.integer[Any]] | Floats, n_categories: int
) -> NDArray[np.bool_]:
    """Return, per annotator, whether there are enough labels to learn a distribution from."""
    return n_labels >= _LABELS_PER_CATEGORY * n_categories


def learned_behaviors(fit: Fit, behavior: str) -> Floats:
    """Return the learned distributions of a fit, annotators x categories; empty if uniform."""
    if behavior == "uniform":
        return np.empty((0, 0))
    return fit.parameter("pi", fit.data.n_annotators, fit.data.n_categories)


def behavior_distribution(pi: Floats, annotator: Codes, n_categories: int) -> Floats | float:
    """Return the distribution of irregular labels, one row per given annotator; a number if uniform."""
    return pi[annotator] if len(pi) else 1.0 / n_categories


def behavior_names(categories: Sequence[str], eps: Floats, pi: Floats) -> list[str]:
    """Return the name of each annotator's behavior: serious, or what the irregular labels are.

    ``pi`` is annotators x categories. It is empty if behavior is uniform: all irregular labels are
    then alike. A learned distribution is "repeated" if the probability of one label is more than
    halfway between chance and certainty.
    """
    if not len(pi):
        return ["serious" if e >= SPAMMER_BELOW else "irregular" for e in eps]
    clear = (1.0 + 1.0 / len(categories)) / 2.0
    top, share = pi.argmax(axis=1), pi.max(axis=1)
    names = np.where(share > clear, [f"repeated {categories[n]}" for n in top], "random")
    return ["serious" if e >= SPAMMER_BELOW else name for e, name in zip(eps, names, strict=True)]
