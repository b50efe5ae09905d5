"""Response strategies: how often an annotator is serious, which behavior they have otherwise.

A strategy is a reliability, an irregular behavior and a shift of serious labels. Each annotator has a
posterior over the same list of strategies (`tabulate_strategies`). To add a behavior, add a `Behavior` to
`IRREGULAR_BEHAVIORS`.

Where items have one right label, the shares of strategies among annotators are learned. Where opinions
differ, the share of annotators who are always serious is learned, and the rest of the prior is the product
of the weights here: those of behaviors (`Behavior.prior_weight`) and of levels of reliability, and those
of shifts (`annotruth.models.robust_gpm.opinions.OpinionShapes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats, product_over_annotators

ALWAYS_SERIOUS = 0.995
"""The reliability of annotators who are always serious, except for slips."""

MIN_PROBABILITY = 1e-12
"""The least probability of a label in a strategy, so that it has a logarithm."""

# Prior weights of ten equal levels of reliability: most people are serious or hardly ever serious,
# few are in between.
_LEVEL_WEIGHTS = np.array([2.0, 1.5, 0.5, 0.15, 0.15, 1.0, 1.0, 1.0, 1.0, 1.0])

# Shifts of serious labels are considered for annotators who are serious more often than this;
# in fewer serious labels a shift can hardly be observed.
_SHIFTED_ABOVE = 0.5

_ROUNDING = 1e-12


NO_LABEL = -1
"""The repeated label of annotators who would repeat several labels alike."""


LabelDistribution: TypeAlias = Callable[[Floats], Floats]
"""From the distribution of serious labels, categories x latent classes, to one of the same shape."""


@dataclass(frozen=True)
class Behavior:
    """An irregular behavior: how labels are distributed that are not serious."""

    name: str  # the name in the annotators' table
    prior_weight: float  # the prior probability, up to a factor
    # the probability of each label, given the distribution of serious labels
    distribution: LabelDistribution
    # the probability of the label that the annotator repeats, where it differs from that in
    # ``distribution``. An annotator may repeat any of the N labels, and the model considers one of
    # them, so the prior weight is then divided by N.
    repeated_label: LabelDistribution | None = None
    # the share of labels that are serious ones counted from the other end of the scale
    inverted_share: float = 0.0
    ordinal_only: bool = False  # whether it needs categories that have an order
    shows_label: bool = False  # whether the table shows the repeated label behind the name


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


class LabelTable(NamedTuple):
    """A value for every strategy, label and latent class: strategies x categories x classes.

    Each annotator has one label that they repeat in some strategies, or `NO_LABEL`; its values are
    apart.
    """

    other: Floats  # of labels other than the repeated one
    repeated: Floats  # of the repeated label, whichever it is

    @classmethod
    def of_counts(cls, weights: Floats, counts: Floats, repeated_label: Codes) -> LabelTable:
        """Return counts of labels, given annotators' weights of strategies and counts in classes."""
        flat = product_over_annotators(weights, counts.reshape(len(counts), -1))
        other = flat.reshape(-1, *counts.shape[1:])
        repeated = np.zeros_like(other)
        for n, rows in _rows_by_label(repeated_label, counts.shape[1]):
            repeated[:, n] = product_over_annotators(weights[rows], counts[:, n][rows])
        return cls(other - repeated, repeated)

    def average(self, weights: Floats, repeated_label: Codes) -> Floats:
        """Return the mean over strategies by annotators' weights: annotators x categories x classes."""
        n_strategies, n_categories, n_classes = self.other.shape
        other: Any = np.asarray(self.other.reshape(n_strategies, -1), like=weights)
        mean: Floats = (weights @ other).reshape(-1, n_categories, n_classes)
        for n, rows in _rows_by_label(repeated_label, n_categories):
            mean[:, n][rows] = weights[rows] @ np.asarray(self.repeated[:, n], like=weights)
        return mean

    def total(self, counts: Floats, repeated_label: Codes) -> Floats:
        """Return the sum over annotators' counts of labels and classes: annotators x strategies."""
        other = self.other.reshape(len(self.other), -1).T
        total: Floats = counts.reshape(len(counts), -1) @ np.asarray(other, like=counts)
        for n, rows in _rows_by_label(repeated_label, counts.shape[1]):
            more = (self.repeated[:, n] - self.other[:, n]).T
            total[rows] += counts[:, n][rows] @ np.asarray(more, like=counts)
        return total

    def total_of(self, labels: LabelTable) -> Floats:
        """Return the sum over strategies' numbers of labels: categories x classes."""
        total: Floats = (self.other * labels.other + self.repeated * labels.repeated).sum(axis=0)
        return total


def _rows_by_label(repeated_label: Codes, n_categories: int) -> Iterator[tuple[int, Codes]]:
    """Return each label that some annotators would repeat, and who they are."""
    for n in range(n_categories):
        rows = np.flatnonzero(repeated_label == n)
        if len(rows):
            yield n, rows


@dataclass(frozen=True, eq=False)
class ResponseStrategies:
    """All strategies, and the labels that each makes likely."""

    behaviors: tuple[Behavior, ...]  # the irregular behaviors that the strategies have
    # of each strategy: a place in ``behaviors``, a place among the shifts, a probability
    behavior: Codes
    shift: Codes
    reliability: Floats
    inverted_share: Floats  # the share of each strategy's labels that are inverted
    probability: LabelTable  # P(label | latent class) in each strategy, and its logarithm
    log_probability: LabelTable
    p_serious: LabelTable  # the probability that such a label is serious
    _log_weight: Floats  # of behavior and shift
    _level_weight: Floats  # of the reliability, among annotators who are not always serious

    @property
    def n_strategies(self) -> int:
        """How many strategies there are."""
        return len(self.reliability)

    @property
    def always_serious(self) -> NDArray[np.bool_]:
        """Which strategies are those of annotators who are always serious."""
        always: NDArray[np.bool_] = self.reliability == ALWAYS_SERIOUS
        return always

    def log_prior(self, always_share: float) -> Floats:
        """Return the log-prior of strategies, given the share of annotators who are always serious."""
        level = np.where(
            self.always_serious, always_share, (1.0 - always_share) * self._level_weight
        )
        prior: Floats = self._log_weight + np.log(level)
        return prior

    def log_prior_of(self, shares: Floats) -> Floats:
        """Return the log-prior of strategies, given the share of annotators in each.

        Every label is as likely as any other to be the one that an annotator repeats.
        """
        n_categories = self.probability.other.shape[1]
        repeats = np.array([b.repeated_label is not None for b in self.behaviors])[self.behavior]
        prior: Floats = np.log(shares) - np.where(repeats, np.log(n_categories), 0.0)
        return prior

    def annotator_log_prior(self, log_prior: Floats, annotator_prior: Floats | None) -> Floats:
        """Return the log-prior of strategies: one row per annotator, or one for all of them.

        ``annotator_prior`` has two columns: numbers of earlier labels that were serious, and that
        were not.
        """
        prior = log_prior[np.newaxis]
        if annotator_prior is None:
            return prior
        p_label = np.stack([self.reliability, 1.0 - self.reliability])
        prior, log_p = (np.asarray(one, like=annotator_prior) for one in (prior, np.log(p_label)))
        with_labels: Floats = prior + annotator_prior @ log_p
        return with_labels

    def label_is_serious(self, weights: Floats, repeated_label: Codes) -> Floats:
        r"""Return how probable it is that a label is serious, annotators x categories x classes.

        With the weights w of an annotator's strategies, and other symbols as in `RobustGPM`, label n
        in class z is serious with probability

        .. math:: \sum_g w_g \epsilon_g \theta^{(d_g)}_{z,n} \Big/ \sum_g w_g a_g(n \mid z).
        """
        joint = LabelTable(*(p * q for p, q in zip(self.probability, self.p_serious, strict=True)))
        p_serious = joint.average(weights, repeated_label)
        p_serious /= self.probability.average(weights, repeated_label)
        return p_serious

    def by_reliability(self) -> tuple[Floats, Floats]:
        """Return the levels of reliability, rising, and an indicator matrix, strategies x levels."""
        levels, place = np.unique(self.reliability, return_inverse=True)
        return levels, np.eye(len(levels))[place]


def tabulate_strategies(
    serious: Floats,
    shift_weights: Floats,
    *,
    ordinal: bool,
    always_only: NDArray[np.bool_] | None = None,
) -> ResponseStrategies:
    """Return all strategies over latent classes with the given distributions of serious labels.

    ``serious`` is shifts x categories x classes, of which the middle shift is none, ``shift_weights`` the
    prior of shifts, and ``always_only`` are those that only annotators have who are always serious.
    """
    n_shifts, n_categories, _ = serious.shape
    n_levels = len(_LEVEL_WEIGHTS)
    levels = np.append((np.arange(n_levels) + 0.5) / n_levels, ALWAYS_SERIOUS)
    level_weights = np.append(_LEVEL_WEIGHTS / _LEVEL_WEIGHTS.sum(), 0.0)
    behaviors = tuple(b for b in IRREGULAR_BEHAVIORS if ordinal or not b.ordinal_only)
    prior = np.array([b.prior_weight for b in behaviors])
    prior /= np.array([1 if b.repeated_label is None else n_categories for b in behaviors])
    behavior, shift, level, weight = _distinct_strategies(
        prior / prior.sum(),
        shift_weights,
        levels,
        np.zeros(n_shifts, dtype=np.bool_) if always_only is None else always_only,
    )
    reliability = levels[level][:, np.newaxis, np.newaxis]
    unshifted = serious[n_shifts // 2]
    p_serious_and_label = reliability * serious[shift]
    tables = []
    for distributions in (
        [b.distribution for b in behaviors],
        [b.repeated_label or b.distribution for b in behaviors],
    ):
        irregular = np.stack([distribution(unshifted) for distribution in distributions])
        probability = p_serious_and_label + (1.0 - reliability) * irregular[behavior]
        probability = np.maximum(probability, MIN_PROBABILITY)
        p_serious = np.minimum(p_serious_and_label / probability, 1.0)
        tables.append((probability, np.log(probability), p_serious))
    inverted = np.array([b.inverted_share for b in behaviors])
    probabilities, log_probabilities, p_serious_tables = zip(*tables, strict=True)
    return ResponseStrategies(
        behaviors=behaviors,
        behavior=behavior,
        shift=shift,
        reliability=levels[level],
        inverted_share=(1.0 - levels[level]) * inverted[behavior],
        probability=LabelTable(*probabilities),
        log_probability=LabelTable(*log_probabilities),
        p_serious=LabelTable(*p_serious_tables),
        _log_weight=np.log(weight),
        _level_weight=level_weights[level],
    )


def _distinct_strategies(
    behavior_weights: Floats,
    shift_weights: Floats,
    levels: Floats,
    always_only: NDArray[np.bool_],
) -> tuple[Codes, Codes, Codes, Floats]:
    """Return behavior, shift, level and weight of each strategy that labels can tell from others.

    The irregular labels of annotators who are always serious are too few to show a behavior:
    these strategies have the first behavior only.
    """
    no_shift = len(shift_weights) // 2
    other_weights = shift_weights / shift_weights[~always_only].sum()
    strategies: list[tuple[int, int, int, Any]] = []
    for level, reliability in enumerate(levels):
        for shift, shift_weight in enumerate(shift_weights):
            if reliability == ALWAYS_SERIOUS:
                strategies.append((0, shift, level, shift_weight))
                continue
            is_shifted = reliability > _SHIFTED_ABOVE
            if (is_shifted and not always_only[shift]) or (not is_shifted and shift == no_shift):
                of_shift = other_weights[shift] if is_shifted else 1.0
                strategies += [
                    (behavior, shift, level, of_shift * weight)
                    for behavior, weight in enumerate(behavior_weights)
                ]
    behaviors, shifts, places, weights = zip(*strategies, strict=True)
    return np.array(behaviors), np.array(shifts), np.array(places), np.array(weights)


def find_repeated_labels(
    labels_per_category: NDArray[np.int64], *, break_ties: bool, weight: Floats | None = None
) -> Codes:
    """Return the label whose share each annotator has most above the crowd's.

    ``labels_per_category`` is annotators x categories. Ties go to the first of the labels, or, if
    they are not to be broken, to `NO_LABEL`, so that the result does not depend on the order.
    ``weight`` is what each annotator's labels count for the crowd's shares.
    """
    share = labels_per_category / np.maximum(labels_per_category.sum(axis=1, keepdims=True), 1)
    counts = labels_per_category.sum(axis=0) if weight is None else weight @ labels_per_category
    crowd = counts / counts.sum()
    excess = share - crowd
    repeated: Codes = excess.argmax(axis=1)
    if not break_ties:
        is_top = excess >= excess.max(axis=1, keepdims=True) - _ROUNDING
        repeated[is_top.sum(axis=1) > 1] = NO_LABEL
    return repeated
