r"""Response strategies of people: how labels follow the items, and how they do not.

A strategy g has the labels

.. math:: P_g(n \mid z) = \epsilon_g \, \phi_z(n) + (1 - \epsilon_g) \, h(n), \quad
          \phi_z(n) \propto \theta_z(n)^\alpha e^{t_n}.

*Serious* labels :math:`\phi` follow the state z of the item: :math:`\theta_z` is the crowd's distribution of
serious labels, :math:`\alpha` a person's skill, and the tilt t a tendency towards some labels, so that strict,
lenient and biased people are serious. *Careless* labels h are the same for all items: any label, one label,
half of each, or the person's own shares of labels. People who are *consistently wrong* exchange labels:
:math:`\phi_z(n) = \theta_z(\sigma(n))`, the best assignment of labels to classes; on scales, the reversed one.

Priors, which are weak: :math:`\log \alpha` is Gaussian with mean 0 and standard deviation 0.4, worth four
people, and t has the standard deviation 0.5, worth four people and never less; both are learned from the people
whose labels clearly follow the items. Half of the serious label as the crowd does, without a skill or tilt of
their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats, concatenate, map_slices

LEVELS = np.array([0.005, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 0.995])
"""The reliabilities of strategies."""

LEVEL_PRIOR = np.array([0.08, *[0.22 / 6] * 6, 0.70])
"""Most people are serious, some are not at all, few are in between."""

CARELESS, PARTLY, SERIOUS, WRONG = range(4)
GROUP = np.array([CARELESS] * 4 + [PARTLY] * 2 + [SERIOUS] * 2)
"""The group of each level: reliability below 0.5, below 0.85, or above."""

WRONG_PRIOR = 0.01
"""The share of people who are consistently wrong."""

PSEUDO_PEOPLE = 4.0
"""How many people the priors of shares, skills and tilts count for."""

BEHAVIORS = ("random", "repeated", "careless", "mixed", "random")
"""Careless labels: any, one, the own shares of labels, any and one in equal parts, or the crowd's shares."""

N_PARTLY = 3
"""How many of them are distinguished in people who are careless in part."""

OWN_SHARES = BEHAVIORS.index("careless")
_BEHAVIOR_PRIOR = np.array([0.25, 0.2, 0.3, 0.15, 0.1])
_REPEATS = np.array(
    [False, True, False, True, False]
)  # one of the N labels, so a prior of 1 / N each

SKILLS = np.array([0.4, 0.63, 1.0, 1.6, 2.5])
SKILL_VARIANCE, _LEAST_SKILL_VARIANCE = 0.16, 0.04
TILT_DEVIATION = 0.5
BROAD_TILT = 3.0
"""The standard deviation of tilts that cost next to nothing."""

_SLIP = 0.02  # of labels of people who repeat one
_WRONG_RELIABILITY = 0.95
_ROWS = 4096  # annotators of a slice
_MOST_PEOPLE = 2_000  # from whom the standard deviation of tilts is learned
_LEAST_SERIOUS = 1e-6

# The serious variants: as the crowd; every skill with the own tilt; as the crowd with a broad tilt.
AS_CROWD, BROAD, N_VARIANTS = 0, len(SKILLS) + 1, len(SKILLS) + 2


class Strategies(NamedTuple):
    """The list of strategies: variant of serious labels, behavior otherwise, level of reliability."""

    variant: Codes
    behavior: Codes
    level: Codes
    reliability: Floats


def list_strategies() -> Strategies:
    """Return all strategies.

    Careless people need no skill or tilt, and those who are always serious no behavior. The strategies with
    a broad tilt and of people who are consistently wrong come last.
    """
    listed: list[tuple[int, int, int, float]] = []
    for level, reliability in enumerate(LEVELS.tolist()):
        if GROUP[level] == CARELESS:
            listed += [(AS_CROWD, b, level, reliability) for b in range(len(BEHAVIORS))]
            continue
        behaviors = range(1 if level == len(LEVELS) - 1 else N_PARTLY)
        listed += [(v, b, level, reliability) for v in range(len(SKILLS) + 1) for b in behaviors]
    listed += [(BROAD, OWN_SHARES, -1, reliability) for reliability in LEVELS[-3:].tolist()]
    listed.append((N_VARIANTS, 0, -1, _WRONG_RELIABILITY))
    variant, behavior, level_of, eps = zip(*listed, strict=True)
    return Strategies(np.array(variant), np.array(behavior), np.array(level_of), np.array(eps))


STRATEGIES = list_strategies()


class Careless(NamedTuple):
    """Careless labels of each annotator."""

    distribution: Floats  # annotators x behaviors x categories
    log_prior: Floats  # the log-prior of the behaviors
    regret: Floats  # what choosing the own shares of labels after the fact costs, in nats
    repeated: Codes  # the label that an annotator repeats, if any


def careless_labels(counts: Floats) -> Careless:
    """Return the careless labels of annotators, given how often they gave each label.

    The label that somebody repeats is the one whose share they have most above the crowd's. The regret of
    the own shares is that of a Dirichlet-multinomial distribution with half a pseudo-count per label.
    """
    n_annotators, n_categories = counts.shape
    n_labels = counts.sum(axis=1, keepdims=True)
    crowd = counts.sum(axis=0) / max(counts.sum(), 1.0)
    repeated: Codes = (counts / np.maximum(n_labels, 1.0) - crowd).argmax(axis=1)
    uniform = np.full((n_annotators, n_categories), 1.0 / n_categories)
    one = np.full((n_annotators, n_categories), _SLIP / max(n_categories - 1, 1))
    one[np.arange(n_annotators), repeated] = 1.0 - _SLIP
    own = (counts + 0.5) / (n_labels + n_categories / 2.0)
    as_crowd = np.tile(
        (counts.sum(axis=0) + 1.0) / (counts.sum() + n_categories), (n_annotators, 1)
    )
    marginal = (gammaln(counts + 0.5) - gammaln(0.5)).sum(axis=1)
    marginal += gammaln(n_categories / 2.0) - gammaln(n_labels[:, 0] + n_categories / 2.0)
    prior = np.where(_REPEATS, _BEHAVIOR_PRIOR / n_categories, _BEHAVIOR_PRIOR)
    return Careless(
        np.stack([uniform, one, own, (uniform + one) / 2.0, as_crowd], axis=1),
        np.log(prior / prior.sum()),
        marginal - (counts * np.log(own)).sum(axis=1),
        repeated,
    )


@dataclass(frozen=True, eq=False)
class Serious:
    """Serious labels of each annotator, in the factors that the pass takes."""

    tables: Floats  # variants x categories x states, before the tilt
    # of `Tilts`
    factor: Floats
    normaliser: Floats
    # the log-prior of each annotator's tilt, annotators x skills
    log_prior: Floats


def serious_labels(
    session: Session, theta: Floats, states: Floats, counts: Floats, deviation: float
) -> Serious:
    """Return the serious labels of annotators, given the crowd's, their states and counts of labels."""
    theta = bounded(theta)
    tables = np.stack([theta, *(_normalised(theta**skill) for skill in SKILLS), theta])
    deviations = np.array([0.0, *[deviation] * len(SKILLS), BROAD_TILT])
    tilts = fit_tilts(session, tables, deviations, states, counts)
    return Serious(tables, tilts.factor, tilts.normaliser, tilts.log_prior[:, 1:BROAD])


class Tilts(NamedTuple):
    """Each annotator's tilts of tables of serious labels: see ``fit_tilts`` in ``native/people.cpp``."""

    factor: Floats
    normaliser: Floats
    variance: Floats
    log_prior: Floats


def fit_tilts(
    session: Session, theta: Floats, deviation: Floats, states: Floats, counts: Floats
) -> Tilts:
    """Return the tilts of the highest posterior: tables are tables x categories x states."""
    n_tables, n_categories, n_states = theta.shape
    shapes = (n_tables, n_categories), (n_tables, n_states), (n_tables,), (n_tables,)
    tilts = Tilts(*(np.zeros((len(counts), *shape)) for shape in shapes))
    given = {"theta": theta, "deviation": deviation, "states": states, "counts": counts}
    given = {name: np.ascontiguousarray(values) for name, values in given.items()}
    session.run_over_annotators("people.fit_tilts", len(counts), **given, **tilts._asdict())
    return tilts


def by_rows(compute: Callable[[slice], tuple[Floats, ...]], n: int) -> tuple[Floats, ...]:
    """Return arrays of n rows that are computed in slices, on all cores, while they are in the cache."""
    parts = map_slices(compute, n, _ROWS)
    return tuple(concatenate(column) for column in zip(*parts, strict=True))


def bounded(theta: Floats) -> Floats:
    """Return distributions of labels, categories x states, in which every label has a logarithm."""
    return _normalised(np.maximum(theta, _LEAST_SERIOUS))


def _normalised(weights: Floats) -> Floats:
    normalised: Floats = weights / weights.sum(axis=0)
    return normalised


def learn_tilt_deviation(session: Session, theta: Floats, states: Floats, counts: Floats) -> float:
    """Return the standard deviation of tilts, given people whose labels clearly follow the items.

    It is one number, for which `_MOST_PEOPLE` of them, evenly spaced, are enough.
    """
    every = -(-len(counts) // _MOST_PEOPLE)
    states, counts = states[::every], counts[::every]
    variance, table = TILT_DEVIATION**2, bounded(theta)[np.newaxis]
    prior = PSEUDO_PEOPLE * counts.shape[1]
    for _ in range(20):
        tilts = fit_tilts(session, table, np.array([np.sqrt(variance)]), states, counts)
        squares = (np.log(tilts.factor) ** 2).sum() + tilts.variance.sum()
        before = variance
        variance = (squares + prior * TILT_DEVIATION**2) / (counts.size + prior)
        if abs(variance - before) < 1e-3:
            break
    return max(float(np.sqrt(variance)), TILT_DEVIATION)


def skill_weights(mean: float, variance: float) -> Floats:
    """Return the prior of the skills, given mean and variance of their logarithm."""
    weights = np.exp(-0.5 * (np.log(SKILLS) - mean) ** 2 / variance)
    normalised: Floats = weights / weights.sum()
    return normalised


def learn_skills(weights: Floats, prior: Floats) -> Floats:
    """Return the prior of the skills, given posteriors with another prior of people who follow the items."""
    logs = np.log(SKILLS)
    for _ in range(3):
        people = weights.sum(axis=0)
        n = people.sum() + PSEUDO_PEOPLE
        mean = people @ logs / n
        variance = (people @ (logs - mean) ** 2 + PSEUDO_PEOPLE * SKILL_VARIANCE) / n
        new = skill_weights(float(mean), max(float(variance), _LEAST_SKILL_VARIANCE))
        weights = weights / prior * new
        weights /= weights.sum(axis=1, keepdims=True)
        prior = new
    return prior


def find_confusions(counts: Floats, right_labels: Floats | None) -> tuple[Codes, Floats]:
    """Return how consistently wrong people would exchange labels, and the log-prior of that.

    The assignment of labels to classes that explains most of an annotator's labels; -inf where it is that of
    everybody. ``counts`` are annotators x categories x states. On scales, without right labels, it is the
    reversed scale.
    """
    n_annotators, n_categories, _ = counts.shape
    confused = np.tile(np.arange(n_categories), (n_annotators, 1))
    log_prior = np.full(n_annotators, -np.inf)
    if right_labels is None:
        return confused[:, ::-1].copy(), np.full(n_annotators, np.log(WRONG_PRIOR))
    by_class = np.einsum("snz,zk->skn", counts, right_labels)
    diagonal = np.einsum("snn->sn", by_class)
    for s in np.flatnonzero((diagonal < by_class.max(axis=2)).any(axis=1)):
        _, labels = linear_sum_assignment(-by_class[s])
        if (labels != np.arange(n_categories)).any():
            confused[s] = np.argsort(labels)
            log_prior[s] = np.log(WRONG_PRIOR) - gammaln(n_categories + 1)
    return confused, log_prior
