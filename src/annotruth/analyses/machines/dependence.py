"""Judges: their confusion, whether two of them err together, and whether one may replace a person.

The second is the correlation of their labels given the items' states, the third the alternative annotator
test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Z_95
from annotruth.models.evidence.dependent_annotators import MIN_COMMON
from annotruth.models.latent_classes import normalise_log_weights
from annotruth.models.robust_gpm.readouts import LatentStates
from annotruth.models.robust_gpm.strategies import MIN_PROBABILITY
from annotruth.observations import Scale

AnyCodes: TypeAlias = NDArray[np.integer[Any]]

_PRIOR_LABELS = 4.0
_MAX_STEPS, _TOL = 300, 1e-4
_MAX_BY_CONSENSUS = 8  # categories for which errors of the confusion are considered by consensus
_EXACT = 1.0 - 1e-9  # a correlation from here on is that of copies

MIN_ITEMS, MIN_PEOPLE = 30, 3
"""The least number of items per person that the machine and others labelled, and of such people."""

_LEVEL, _WINNING_RATE = 0.05, 0.5
_ROUNDING = 1e-9
YES, NO, UNKNOWN = "yes", "no", "too few labels to tell"


class Judge(NamedTuple):
    """The labels of one annotator on items that the people labelled, one per item."""

    item: Codes
    label: Codes


def judge_of(item: AnyCodes, label: AnyCodes) -> Judge:
    """Return the labels sorted by item; of several labels of an item, the first."""
    items, first = np.unique(item, return_index=True)
    return Judge(items.astype(np.int64), label[first].astype(np.int64))


def confusion_of(judge: Judge, states: LatentStates) -> Floats:
    r"""Return P(label | state) of a judge, categories x states.

    With :math:`w_{e,z}` the posterior of the item's state given the people's labels, EM maximises

    .. math:: \sum_e \log \sum_z w_{e,z} \, v_z(r_e), \qquad
              v_z \sim \mathrm{Dirichlet}\Bigl(c_z \sum_g q_g \, a_g(\cdot \mid z)\Bigr),

    in which :math:`a_g` are the response strategies of RobustGPM and q, the share of the judge's labels
    in each, is estimated, too. There are four pseudo-labels, :math:`c_z` of them in state z. That
    people may be wrong is thus not counted as an error of the judge.
    """
    posterior, n = states.posterior[judge.item], states.right.shape[1]
    is_label = np.eye(n)[judge.label].T
    strategies = _strategies_of(judge, posterior @ states.right, states)
    prior = normalise_log_weights(states.log_prior[np.newaxis])[0]
    shares, weights, old = prior, posterior, np.zeros((n, posterior.shape[1]))
    prior_labels = _PRIOR_LABELS * states.posterior.mean(axis=0)
    for _ in range(_MAX_STEPS):
        counts = is_label @ weights
        # One EM step of the shares of strategies, with one pseudo-label of the prior.
        ratio = counts / np.maximum(np.tensordot(shares, strategies, axes=1), MIN_PROBABILITY)
        shares = shares * np.tensordot(strategies, ratio, axes=2) + prior
        shares /= shares.sum()
        mass = counts + prior_labels * np.tensordot(shares, strategies, axes=1)
        confusion: Floats = np.maximum(mass / mass.sum(axis=0), MIN_PROBABILITY)
        if np.abs(confusion - old).max() < _TOL:
            break
        old = confusion
        weights = posterior_with(posterior, confusion[judge.label])
    return confusion


def _strategies_of(judge: Judge, expected: Floats, states: LatentStates) -> Floats:
    """Return P(label | state) in each strategy, strategies x categories x states.

    The label that the judge would repeat is the one that it gives most above the items' consensus.
    """
    given = np.bincount(judge.label, minlength=expected.shape[1])
    repeated = int((given - expected.sum(axis=0)).argmax())
    table = states.strategies.probability
    strategies = table.other.copy()
    strategies[:, repeated] = table.repeated[:, repeated]
    return strategies


def posterior_with(posterior: Floats, likelihood: Floats) -> Floats:
    """Return posteriors of items, items x states, after labels with these likelihoods."""
    joint = posterior * likelihood
    normalised: Floats = joint / np.maximum(joint.sum(axis=1, keepdims=True), MIN_PROBABILITY)
    return normalised


class Dependence(NamedTuple):
    """What two judges have in common."""

    n_items: int  # the number of items that both labelled
    # the share of these with the same label, and what independent judges would have
    agreement: float
    expected: float
    # the correlation of labels within the items' states, with its 95% interval
    correlation: float
    low: float
    high: float
    p_value: float  # of the one-sided test of independence


NOTHING_IN_COMMON = Dependence(0, *(float("nan"),) * 5, 1.0)
"""What is said of judges with too few items in common."""


class JudgeModel(NamedTuple):
    r"""A judge's labels and confusion, and how far the confusion may be off."""

    judge: Judge
    confusion: Floats  # :math:`v_z(n)`, P(label | state), categories x states
    # directions in which the confusion may be off, each categories x states: more of label n in the
    # states whose consensus is k
    directions: Floats
    # what each item of the judge adds to the error in each direction, items x directions
    influence: Floats


def judge_model(judge: Judge, confusion: Floats, posterior: Floats, right: Floats) -> JudgeModel:
    r"""Return a judge with the directions of the errors of its confusion.

    In direction (k, n), :math:`\partial v_z(m) = R_{z,k} \, v_z(m) (1_{m=n} - v_z(n))` with R the
    distribution of the consensus in each state (``right``). The errors have the information of the
    scores of :math:`\log \sum_z w_{e,z} v_z(r_e)`, and that of a standard normal prior. On scales with
    many categories, directions are those of all states together, and of a lower reliability.
    """
    n = len(confusion)
    tilts = confusion * (np.eye(n)[:, :, np.newaxis] - confusion[:, np.newaxis])
    if n <= _MAX_BY_CONSENSUS:
        directions = (right.T[:, np.newaxis, np.newaxis] * tilts).reshape(-1, *confusion.shape)
    else:
        reliability = confusion - confusion.mean(axis=1, keepdims=True)
        directions = np.concatenate([tilts, reliability[np.newaxis]])
    rows = posterior[judge.item]
    likelihood = (rows * confusion[judge.label]).sum(axis=1)
    score = np.stack([(rows * each[judge.label]).sum(axis=1) for each in directions], axis=1)
    score /= np.maximum(likelihood, MIN_PROBABILITY)[:, np.newaxis]
    information = score.T @ score + np.eye(len(directions))
    return JudgeModel(judge, confusion, directions, np.linalg.solve(information, score.T).T)


def label_kernel(scale: Scale) -> Floats:
    """Return how alike two labels are, categories x categories.

    On nominal scales 1 if they are the same, else 0. On ordinal scales the product of their values,
    so that the correlation is that of numbers.
    """
    if not scale.is_ordinal:
        return np.eye(len(scale))
    values = scale.values - scale.values.mean()
    largest = float(np.abs(values).max()) or 1.0  # 0 of a single category
    return np.outer(values, values) / largest**2


def measure_dependence(
    first: JudgeModel,
    second: JudgeModel,
    posterior: Floats,
    kernel: Floats,
    error_inflation: float = 1.0,
) -> Dependence:
    r"""Return what two judges have in common, given the items' posterior over the states.

    With K how alike two labels are, :math:`w_{e,z}` the posterior given the people's labels and
    :math:`v_{s,z}` the confusion of judge s, the covariance of two judges is the mean over their items
    of

    .. math:: x_{st} = K(r_s, r_t) - \sum_z w_{e,z} \, v_{s,z}^T K \, v_{t,z},

    which is 0 for judges who are independent given the state, and the correlation is
    :math:`\rho = \bar x_{st} / \sqrt{\bar x_{ss} \bar x_{tt}}`. Standard errors are those of sums over
    items, and count that v is estimated: what an item adds to the error of v is added to its x
    (`judge_model`). The interval of the correlation is symmetric on the scale of Fisher's z; the
    one-sided test compares the sum of :math:`x_{st}` with 0. ``error_inflation`` multiplies standard
    errors, because the people's confusion is estimated, too. Copies have :math:`\rho = 1`.
    """
    common, at_first, at_second = np.intersect1d(
        first.judge.item, second.judge.item, assume_unique=True, return_indices=True
    )
    if len(common) < MIN_COMMON:
        return NOTHING_IN_COMMON._replace(n_items=len(common))
    one, other = first.judge.label[at_first], second.judge.label[at_second]
    rows = posterior[common]
    in_states = rows.sum(axis=0)

    def excess(a: JudgeModel, b: JudgeModel, x: Codes, y: Codes) -> tuple[Floats, float]:
        """Return the terms of the sum of x, one per item, with those of the error of v; and the sum."""
        values = kernel[x, y] - rows @ _moment(a, b, kernel)
        terms = np.zeros(len(posterior))
        terms[common] = values
        for judge, its_other in ((a, b), (b, a)):
            toward = in_states * (kernel @ its_other.confusion)
            slope = (judge.directions * toward).sum(axis=(1, 2))
            terms[judge.judge.item] -= judge.influence @ slope
        return terms, float(values.sum())

    expected = float((rows @ _moment(first, second, np.eye(len(kernel)))).mean())
    covariance, total = excess(first, second, one, other)
    correlation, error = _ratio(
        (covariance, total), excess(first, first, one, one), excess(second, second, other, other)
    )
    low, high = _interval(correlation, error_inflation * error)
    z = total / max(error_inflation * float(np.sqrt((covariance**2).sum())), 1e-300)
    if is_copy := bool((one == other).all()):
        correlation = low = high = 1.0
    return Dependence(
        len(common),
        float((one == other).mean()),
        expected,
        correlation,
        low,
        high,
        0.0 if is_copy else float(ndtr(-z)),
    )


def _moment(first: JudgeModel, second: JudgeModel, kernel: Floats) -> Floats:
    """Return the mean of K over labels of two independent judges, one number per state."""
    moment: Floats = np.einsum("nz,nm,mz->z", first.confusion, kernel, second.confusion)
    return moment


def _ratio(
    covariance: tuple[Floats, float], first: tuple[Floats, float], second: tuple[Floats, float]
) -> tuple[float, float]:
    """Return a correlation and its standard error, from the terms and sums of three sums."""
    (c_terms, c), (a_terms, a), (b_terms, b) = covariance, first, second
    if min(a, b) <= 0.0:
        return 0.0, 1.0
    scale = np.sqrt(a * b)
    correlation = c / scale
    # The terms scatter around the means.
    n = max(len(c_terms), 1)
    c_terms, a_terms, b_terms = c_terms - c / n, a_terms - a / n, b_terms - b / n
    influence = c_terms / scale - correlation * (a_terms / a + b_terms / b) / 2.0
    return float(np.clip(correlation, -1.0, 1.0)), float(np.sqrt((influence**2).sum()))


def _interval(correlation: float, error: float) -> tuple[float, float]:
    """Return a 95% interval of a correlation, symmetric on the scale of Fisher's z."""
    if abs(correlation) > _EXACT:
        return correlation, correlation
    center, slope = np.arctanh(correlation), 1.0 - correlation**2
    low, high = np.tanh(center + np.array([-Z_95, Z_95]) * error / slope)
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> Floats:
    """Return p-values adjusted so that all tests together have the level of one (Holm, 1979)."""
    p = np.asarray(p_values, dtype=np.float64)
    order, n = np.argsort(p, kind="stable"), len(p)
    adjusted = np.empty(n)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(n, 0, -1)), 1.0)
    return adjusted


def judge_weights(correlation: Floats, n_common: Floats, n_labels: Floats) -> Floats:
    r"""Return what the labels of each judge count, given the correlations of all pairs.

    The mean of m labels with correlation :math:`\rho` has the variance of :math:`m / (1 + (m-1) \rho)`
    independent labels. So the labels of judge s, which has :math:`n_s` labels and :math:`n_{st}` items
    in common with judge t, count

    .. math:: u_s = \Bigl(1 + \sum_{t \ne s} \rho_{st} \, n_{st} / n_s\Bigr)^{-1}:

    m copies count as one judge. ``correlation`` is 0 for pairs that are not dependent.
    """
    share = n_common / np.maximum(n_labels[:, np.newaxis], 1.0)
    dependent = np.maximum(correlation, 0.0) * np.minimum(share, 1.0)
    np.fill_diagonal(dependent, 0.0)
    weights: Floats = 1.0 / (1.0 + dependent.sum(axis=1))
    return weights


class AlternativeTest(NamedTuple):
    """The result of the alternative annotator test of one machine."""

    n_people: int  # the number of people who share enough items with the machine and others
    winning_rate: float  # the share of these people whom the machine may replace
    # the mean probability that the machine is at least as close to the others as a person is
    advantage: float
    p_value: float  # the least level at which the winning rate is at least a half
    may_replace: str  # "yes", "no" or "too few labels to tell"


class PeopleLabels(NamedTuple):
    """The labels of people, one per item and person."""

    # codes, one of each per label
    item: Codes
    person: Codes
    label: Codes
    # the values of the categories on an ordinal scale, from 0 to 1; None on nominal ones
    values: Floats | None


def people_labels(
    item: AnyCodes, person: AnyCodes, label: AnyCodes, values: Floats | None
) -> PeopleLabels:
    """Return labels of people; of several by one person on an item, the first."""
    if values is not None and len(values) > 1:
        # In units of the scale: squares of differences are compared up to rounding.
        values = (values - values[0]) / (values[-1] - values[0])
    key = item.astype(np.int64) * (int(person.max(initial=0)) + 1) + person
    first = np.unique(key, return_index=True)[1]
    items, people, labels = (each[first].astype(np.int64) for each in (item, person, label))
    return PeopleLabels(items, people, labels, values)


def alternative_test(people: PeopleLabels, machine: Codes, margin: float) -> AlternativeTest:
    r"""Return the alternative annotator test (Calderon, Reichart and Dror, 2025).

    Each person j is left out in turn. On item i, the machine's label f and the person's label h are
    scored by how close they are to the labels of the other people: by the share of these that are the
    same, or, on ordinal scales, by minus the root mean squared difference. With
    :math:`\rho^f_j` the share of items on which the machine's score is at least the person's, and
    :math:`\rho^h_j` the reverse, the hypothesis

    .. math:: H_{0j}: \rho^f_j \le \rho^h_j - \varepsilon

    is tested by a one-sided paired t-test over the items, with ``margin`` :math:`\varepsilon`: what
    the machine may be worse by, as it costs less. The hypotheses are rejected by the procedure of
    Benjamini and Yekutieli at 5%. The machine may replace a person if at least half of them are.
    ``machine`` is its label of each item, -1 where there is none.
    """
    advantage, p_values = [], []
    for machine_wins, person_wins in _comparisons(people, machine):
        if len(machine_wins) >= MIN_ITEMS:
            advantage.append(machine_wins.mean())
            p_values.append(_t_test(person_wins - machine_wins, margin))
    n = len(p_values)
    if n < MIN_PEOPLE:
        nothing = float("nan")
        return AlternativeTest(n, nothing, nothing, nothing, UNKNOWN)
    from scipy.stats import false_discovery_control  # imported here because that takes long

    adjusted = false_discovery_control(p_values, method="by")
    rate = float((adjusted <= _LEVEL).mean())
    p_value = float(np.sort(adjusted)[int(np.ceil(_WINNING_RATE * n)) - 1])
    verdict = YES if rate >= _WINNING_RATE else NO
    return AlternativeTest(n, rate, float(np.mean(advantage)), p_value, verdict)


def _comparisons(people: PeopleLabels, machine: Codes) -> list[tuple[Floats, Floats]]:
    """Return per person on which items the machine is at least as close to others, and the reverse."""
    n_people = np.bincount(people.item, minlength=len(machine))
    kept = (machine[people.item] >= 0) & (n_people[people.item] >= 2)
    item, person, own = people.item[kept], people.person[kept], people.label[kept]
    other = machine[item]
    if people.values is None:
        counts = np.zeros((len(machine), int(max(people.label.max(), machine.max())) + 1))
        np.add.at(counts, (people.item, people.label), 1.0)
        # The person is not among the others.
        machine_score = counts[item, other] - (own == other)
        person_score = counts[item, own] - 1.0
    else:
        value, n = people.values[people.label], len(machine)
        total, square = (np.bincount(people.item, value**k, minlength=n)[item] for k in (1, 2))
        its, theirs = people.values[other], people.values[own]
        machine_score, person_score = (
            -(n_people[item] * v**2 - 2.0 * v * total + square - (v - theirs) ** 2)
            for v in (its, theirs)
        )
    machine_wins = (machine_score >= person_score - _ROUNDING).astype(np.float64)
    person_wins = (person_score >= machine_score - _ROUNDING).astype(np.float64)
    order = np.argsort(person, kind="stable")
    bounds = np.flatnonzero(np.diff(person[order])) + 1
    return list(
        zip(
            np.split(machine_wins[order], bounds), np.split(person_wins[order], bounds), strict=True
        )
    )


def _t_test(difference: Floats, margin: float) -> float:
    """Return the p-value of the one-sided test that the mean difference is below the margin."""
    n, mean, deviation = len(difference), difference.mean(), difference.std(ddof=1)
    if deviation == 0.0:
        return 0.0 if mean < margin else 1.0
    return float(stdtr(n - 1, (mean - margin) / (deviation / np.sqrt(n))))
