"""How probable each response strategy is, given an annotator's labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.latent_classes import normalise_log_weights, pool_to_class
from annotruth.models.people.passes import Cavities, PeoplePasses
from annotruth.models.people.strategies import (
    CARELESS,
    GROUP,
    LEVEL_PRIOR,
    LEVELS,
    N_PARTLY,
    N_VARIANTS,
    OWN_SHARES,
    PARTLY,
    PSEUDO_PEOPLE,
    SERIOUS,
    SKILL_VARIANCE,
    SKILLS,
    STRATEGIES,
    TILT_DEVIATION,
    WRONG,
    WRONG_PRIOR,
    Careless,
    Serious,
    by_rows,
    careless_labels,
    find_confusions,
    learn_skills,
    learn_tilt_deviation,
    serious_labels,
    skill_weights,
)

CLEARLY = 2.0
"""Standard errors from which labels clearly follow the items."""

_ROUNDS = 2
_SHARE_STEPS = 25
_THETA_PSEUDO_COUNTS = 2.0
_MOSTLY_SERIOUS = 0.8
_LEAST_FOLLOWED = 0.2  # of the labels, by people who clearly follow the items
_INFLATION = 1.17  # of variances, as posteriors of items and people are computed as if independent
_EDGES = np.append((LEVELS[1:] + LEVELS[:-1]) / 2.0, 1.0)
_TAIL = 0.025

_WITH_LEVEL = STRATEGIES.level >= 0
_VARIANT, _BEHAVIOR = STRATEGIES.variant[_WITH_LEVEL], STRATEGIES.behavior[_WITH_LEVEL]
_LEVEL, _RELIABILITY = STRATEGIES.level[_WITH_LEVEL], STRATEGIES.reliability[_WITH_LEVEL]
_BROAD = np.flatnonzero(STRATEGIES.variant == len(SKILLS) + 1)
_EXCHANGED = int(np.flatnonzero(STRATEGIES.variant == N_VARIANTS)[0])


@dataclass(frozen=True, eq=False)
class PeoplePosterior:
    """The posterior of annotators' strategies."""

    # the probability of each level of reliability, annotators x levels; the rest is consistently
    # wrong
    levels: Floats
    # the probability of each group: careless, partly careless, serious, consistently wrong
    groups: Floats
    # the log10 of the factor by which the labels raised the odds of careless or consistently wrong
    evidence: Floats
    # the log10 of how much better the own shares of labels explain the labels than serious labels
    # with the same shares do: whether the items matter at all
    item_evidence: Floats
    behaviors: Floats  # the probability of each careless behavior, if careless
    careless: Careless  # annotators' careless labels

    @property
    def reliability(self) -> Floats:
        """The probability that a label is serious; those of people who are consistently wrong are not."""
        reliability: Floats = self.levels @ LEVELS
        return reliability

    @property
    def p_careless(self) -> Floats:
        """The probability of a reliability below one half, or of being consistently wrong."""
        return self.groups[:, CARELESS] + self.groups[:, WRONG]

    @property
    def p_partly(self) -> Floats:
        """The probability of not being serious: careless, partly careless or consistently wrong."""
        return 1.0 - self.groups[:, SERIOUS]

    def interval(self) -> tuple[Floats, Floats]:
        """Return the central 95% of the reliability."""
        cumulative = self.groups[:, WRONG, np.newaxis] + np.cumsum(self.levels, axis=1)
        edges, below = np.append(0.0, _EDGES), np.insert(cumulative, 0, 0.0, axis=1)
        low, high = (_quantile(below, edges, tail) for tail in (_TAIL, 1.0 - _TAIL))
        return low, np.where(high > _EDGES[-2], 1.0, high)


def _quantile(below: Floats, edges: Floats, tail: float) -> Floats:
    """Return where each row of a distribution function, linear between the edges, reaches a value."""
    bin_ = np.clip((below <= tail).sum(axis=1) - 1, 0, len(edges) - 2)[:, np.newaxis]
    first, last = (np.take_along_axis(below, bin_ + n, axis=1)[:, 0] for n in (0, 1))
    share = np.clip((tail - first) / np.maximum(last - first, 1e-300), 0.0, 1.0)
    left, right = edges[bin_[:, 0]], edges[bin_[:, 0] + 1]
    quantile: Floats = left + share * (right - left)
    return quantile


def people_posterior(
    passes: PeoplePasses, cavities: Cavities, reliability: Floats
) -> PeoplePosterior:
    """Return the posterior of strategies.

    The crowd's serious labels are estimated anew from people whose labels clearly follow the items, weighted by
    their reliability, first the given one: careless people would hide their kind.
    """
    labels, states = passes.labels, passes.states
    counts = passes.compared
    careless = careless_labels(counts)
    confused, log_confused = find_confusions(
        states.counts[:, :-1] if states.one_truth else states.pseudo_counts[:, :-1],
        states.right_labels if states.one_truth else None,
    )
    prior = _level_prior(labels.annotator_prior)
    tempering = (1.0 - 1.0 / max(labels.n_annotators, 2)) / _INFLATION
    skills = skill_weights(0.0, SKILL_VARIANCE)
    follows = cavities.agreement.z > CLEARLY
    # Others would confirm their own labels. Where nearly nobody has enough labels, all count.
    trusted = follows if counts[follows].sum() > _LEAST_FOLLOWED * counts.sum() else 1.0
    deviation = TILT_DEVIATION
    for number in range(_ROUNDS):
        if number == 0 or states.one_truth:  # else the crowd's serious labels stay as they are
            theta = _crowd_labels(passes, reliability * trusted)
            if follows.sum() > 2:
                deviation = learn_tilt_deviation(
                    passes.session, theta, cavities.states[follows], counts[follows]
                )
            serious = serious_labels(passes.session, theta, cavities.states, counts, deviation)
            log_likelihood = passes.log_likelihood(
                serious=serious.tables,
                factor=serious.factor,
                normaliser=serious.normaliser,
                confused=confused,
                careless=careless.distribution,
                variant=STRATEGIES.variant,
                behavior=STRATEGIES.behavior,
                reliability=STRATEGIES.reliability,
            )
            log_likelihood *= tempering
        log_wrong = log_likelihood[:, _EXCHANGED] + log_confused
        by_level, by_skill, behaviors = _marginals(log_likelihood, serious, careless, skills)
        found = _posterior(by_level + prior, log_wrong, behaviors, careless)
        reliability = found.reliability
        known = follows & (reliability > _MOSTLY_SERIOUS)
        skills = learn_skills(normalise_log_weights(by_skill[known]), skills)
    n_labels = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    with_items = logsumexp(log_likelihood[:, _BROAD], axis=1) - np.log(len(_BROAD))
    own = (counts * np.log(np.maximum(counts, 1.0) / n_labels)).sum(axis=1) * tempering
    return replace(found, item_evidence=(own - with_items) / np.log(10.0))


def _level_prior(annotator_prior: Floats | None) -> Floats:
    """Return the log of the prior of levels, one row per annotator, or one for all.

    ``annotator_prior`` has two columns: numbers of earlier labels that were serious, and that were not.
    """
    prior: Floats = np.log(LEVEL_PRIOR)[np.newaxis]
    if annotator_prior is not None:
        prior = prior + annotator_prior @ np.log(np.stack([LEVELS, 1.0 - LEVELS]))
    return prior


def _crowd_labels(passes: PeoplePasses, reliability: Floats) -> Floats:
    """Return the crowd's distribution of serious labels, categories x states."""
    states = passes.states
    if states.class_of is None:
        return states.serious
    counts = states.counts[:, :-1]
    mass = (reliability @ counts.reshape(len(counts), -1)).reshape(counts.shape[1:])
    mass += _THETA_PSEUDO_COUNTS * states.serious
    return pool_to_class(mass / mass.sum(axis=0), states.class_of)


def _marginals(
    log_likelihood: Floats, serious: Serious, careless: Careless, skills: Floats
) -> tuple[Floats, ...]:
    """Return the joint log-probabilities of labels and each level, skill or careless behavior.

    Those of levels are given the level; those of skills are of serious people, in any proportion.
    """
    skill = np.where(GROUP[_LEVEL] == SERIOUS, _VARIANT - 1, -1)
    of_careless = np.where(GROUP[_LEVEL] == CARELESS, _BEHAVIOR, -1)
    level_prior = np.log(LEVEL_PRIOR)[_LEVEL]
    log_prior = serious.log_prior + np.log(skills)

    def compute(rows: slice) -> tuple[Floats, ...]:
        joint = _joint(log_likelihood[rows], log_prior[rows], careless, careless.regret[rows])
        return (
            _sums(joint, _LEVEL, len(LEVELS)),
            _sums(joint, skill, len(SKILLS)),
            _sums(joint + level_prior, of_careless, len(careless.log_prior)),
        )

    return by_rows(compute, len(log_likelihood))


def _joint(
    log_likelihood: Floats, skill_prior: Floats, careless: Careless, regret: Floats
) -> Floats:
    """Return the joint log-probability of labels and strategy within each level."""
    joint = log_likelihood[:, _WITH_LEVEL].copy()
    not_careless = GROUP[_LEVEL] != CARELESS
    # Those who are always serious have one behavior only, which has all of the prior.
    partly = logsumexp(careless.log_prior[:N_PARTLY])
    log_prior = careless.log_prior[_BEHAVIOR] - np.where(not_careless, partly, 0.0)
    joint += np.where(LEVELS[-1] == _RELIABILITY, 0.0, log_prior)
    own = _BEHAVIOR == OWN_SHARES
    joint[:, own] += regret[:, np.newaxis] * (1.0 - _RELIABILITY[own])
    tilted = _VARIANT > 0
    joint[:, tilted] += skill_prior[:, _VARIANT[tilted] - 1]
    joint[:, not_careless] += np.log(0.5)  # with a tilt, or without one
    return joint


def _sums(joint: Floats, place: Codes, n: int) -> Floats:
    """Return the logarithms of sums over the strategies of each of n places, annotators x places."""
    order = np.argsort(place, kind="stable")[np.count_nonzero(place < 0) :]
    joint, place = joint[:, order], place[order]
    first = np.searchsorted(place, np.arange(n))
    top = np.maximum.reduceat(joint, first, axis=1)
    sums: Floats = top + np.log(np.add.reduceat(np.exp(joint - top[:, place]), first, axis=1))
    return sums


def _posterior(
    by_level: Floats, log_wrong: Floats, behaviors: Floats, careless: Careless
) -> PeoplePosterior:
    """Return the posterior, given the joint log-probabilities of levels and the consistently wrong.

    The shares of the groups among people are learned, the own labels left out.
    """
    groups = [group == GROUP for group in (CARELESS, PARTLY, SERIOUS)]
    prior = np.array([*(LEVEL_PRIOR[group].sum() for group in groups), WRONG_PRIOR])
    likelihood = np.column_stack([_sums(by_level, GROUP, len(groups)), log_wrong]) - np.log(prior)
    posterior = _posterior_of_groups(likelihood, prior / prior.sum())
    levels = np.zeros_like(by_level)
    for place, group in enumerate(groups):
        levels[:, group] = posterior[:, place, np.newaxis] * normalise_log_weights(
            by_level[:, group]
        )
    bad, good = (
        logsumexp(likelihood[:, some], axis=1, b=prior[some] / prior[some].sum())
        for some in ([CARELESS, WRONG], [PARTLY, SERIOUS])
    )
    return PeoplePosterior(
        levels,
        posterior,
        evidence=(bad - good) / np.log(10.0),
        item_evidence=np.zeros(len(levels)),
        behaviors=normalise_log_weights(behaviors),
        careless=careless,
    )


def _posterior_of_groups(likelihood: Floats, prior: Floats) -> Floats:
    """Return the posterior of groups, whose shares among the other people are learned."""
    weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True)).T.copy()
    prior = prior[:, np.newaxis]
    posterior = weights * prior
    for _ in range(_SHARE_STEPS):
        posterior /= posterior.sum(axis=0)
        others = posterior.sum(axis=1, keepdims=True) - posterior + PSEUDO_PEOPLE * prior
        np.multiply(weights, others, out=posterior)
    return np.ascontiguousarray((posterior / posterior.sum(axis=0)).T)
