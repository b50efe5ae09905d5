"""The alternative annotator test: whether a machine may replace a person."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtr
from scipy.stats import false_discovery_control

from annotruth.analyses.machines.judges import AnyCodes
from annotruth.kernels.arrays import Codes, Floats

MIN_ITEMS, MIN_PEOPLE = 30, 3
"""The least number of items per person that the machine and others labelled, and of such people."""

_LEVEL, _WINNING_RATE = 0.05, 0.5
_ROUNDING = 1e-9

YES, NO, UNKNOWN = "yes", "no", "too few labels to tell"


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
