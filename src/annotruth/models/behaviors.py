"""Irregular behaviors: what annotators do when they are not serious.

`IRREGULAR_BEHAVIORS` lists those that RobustGPM distinguishes. To add one, add a `Behavior` to it.
The functions below serve the models that assume uniform labels or learn a distribution per annotator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import SPAMMER_BELOW, BaseFit

LabelDistribution: TypeAlias = Callable[[Floats], Floats]
"""From the distribution of serious labels, categories x latent classes, to one of the same shape."""


@dataclass(frozen=True)
class Behavior:
    """An irregular behavior: how labels are distributed that are not serious.

    Attributes
    ----------
    name
        The name in the annotators' table.
    prior_weight
        The prior probability, up to a factor.
    distribution
        The probability of each label, given the distribution of serious labels.
    repeated_label
        The probability of the label that the annotator repeats, where it differs from that in
        ``distribution``. An annotator may repeat any of the N labels, and the model considers one of
        them, so the prior weight is then divided by N.
    inverted_share
        The share of labels that are serious ones counted from the other end of the scale.
    ordinal_only
        Whether it needs categories that have an order.
    shows_label
        Whether the table shows the repeated label behind the name.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.behaviors import Behavior
    >>> def extremes(serious):
    ...     ends = np.zeros_like(serious)
    ...     ends[[0, -1]] = 0.5
    ...     return ends
    >>> behavior = Behavior("extremes", 0.05, extremes, ordinal_only=True)
    >>> behavior.distribution(np.full((4, 1), 0.25)).ravel()
    array([0.5, 0. , 0. , 0.5])
    """

    name: str
    prior_weight: float
    distribution: LabelDistribution
    repeated_label: LabelDistribution | None = None
    inverted_share: float = 0.0
    ordinal_only: bool = False
    shows_label: bool = False


def _random(serious: Floats) -> Floats:
    return np.full_like(serious, 1.0 / len(serious))


def _inverted(serious: Floats) -> Floats:
    return serious[::-1]


def _mixed(serious: Floats) -> Floats:
    """Return a third each of random and inverted; the other third is the repeated label's."""
    mixed: Floats = (_random(serious) + _inverted(serious)) / 3.0
    return mixed


def _mixed_repeated(serious: Floats) -> Floats:
    mixed: Floats = (_random(serious) + _inverted(serious) + 1.0) / 3.0
    return mixed


IRREGULAR_BEHAVIORS = (
    Behavior("random", 0.4, _random),
    Behavior("repeated", 0.2, np.zeros_like, np.ones_like, shows_label=True),
    Behavior("inverted", 0.05, _inverted, inverted_share=1.0, ordinal_only=True),
    Behavior("mixed", 0.35, _mixed, _mixed_repeated, inverted_share=1.0 / 3.0, ordinal_only=True),
)
"""The behaviors that RobustGPM distinguishes; the first is that of annotators who are always serious."""


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


def learned_behaviors(fit: BaseFit, behavior: str) -> Floats:
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
