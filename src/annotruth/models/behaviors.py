"""What annotators do when they are not serious: assumed or learned, and said in a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import SPAMMER_BELOW, BaseFit

Behavior = Literal["uniform", "learned"]

# A behavior has N - 1 free numbers: with fewer labels a category it stays uniform.
_LABELS_A_CATEGORY = 5


def check_behavior(behavior: str) -> None:
    """Refuse what is no way of having behaviors."""
    if behavior not in get_args(Behavior):
        raise InputError(f"unknown behavior {behavior!r}: choose uniform or learned")


def enough_labels(
    n_labels: NDArray[np.integer[Any]] | Floats, n_categories: int
) -> NDArray[np.bool_]:
    """Say of each annotator whether there are labels enough to learn a behavior from."""
    return n_labels >= _LABELS_A_CATEGORY * n_categories


def pi_of(fit: BaseFit, behavior: str) -> Floats:
    """Take the learned behaviors out of a fit; empty where behavior is uniform."""
    if behavior == "uniform":
        return np.empty((0, 0))
    return fit.parameter("pi", fit.data.n_annotators, fit.data.n_categories)


def behaviors_of(pi: Floats, annotator: Codes, n_categories: int) -> Floats | float:
    """Return what some annotators do when not serious, a row each, or chance where all do."""
    return pi[annotator] if len(pi) else 1.0 / n_categories


def behavior_names(categories: Sequence[str], eps: Floats, pi: Floats) -> list[str]:
    """Say what each annotator mostly does: serious, or what they do instead.

    ``pi`` is annotators x categories, or empty where behavior is uniform, which cannot tell one
    irregularity from another. A learned one is "repeated" when it puts on one label more than
    half of what lies between chance and certainty.
    """
    if not len(pi):
        return ["serious" if e >= SPAMMER_BELOW else "irregular" for e in eps]
    clear = (1.0 + 1.0 / len(categories)) / 2.0
    top, share = pi.argmax(axis=1), pi.max(axis=1)
    instead = np.where(share > clear, [f"repeated {categories[n]}" for n in top], "random")
    return ["serious" if e >= SPAMMER_BELOW else word for e, word in zip(eps, instead, strict=True)]
