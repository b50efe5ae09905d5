"""What machines' labels are like, beside people's: agreement, confusion, dependence, the test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from annotruth.analyses.machines.dependence import (
    AlternativeTest,
    Dependence,
    JudgeModel,
    alternative_test,
    holm,
    judge_model,
    judge_weights,
    label_kernel,
    measure_dependence,
    people_labels,
)
from annotruth.analyses.machines.judges import (
    UNKNOWN_ESTIMATE,
    Estimate,
    Judge,
    confusion_of,
    judge_of,
    posterior_with,
)
from annotruth.engines import Engine
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Z_95
from annotruth.models.evidence.dependent_annotators import SIGNIFICANCE
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.readouts import LatentStates, latent_states
from annotruth.observations import Labels

# Standard errors of correlations are multiplied by these. Chosen on simulated crowds, so that 95%
# intervals cover.
_CLASS_INFLATION, _OPINION_INFLATION = 1.1, 1.4


class DependentPair(NamedTuple):
    """Two machines, by their codes, and what they have in common."""

    annotator: int
    other: int
    dependence: Dependence
    p_value: float
    """Adjusted for the number of pairs."""

    @property
    def is_dependent(self) -> bool:
        """Whether independence is rejected."""
        return self.p_value <= SIGNIFICANCE and self.dependence.correlation > 0.0


class MachineMeasures(NamedTuple):
    """What is measured of all machines, whose codes follow those of people."""

    # the machines, their numbers of labels, and of items that people labelled, too
    codes: Codes
    n_labels: Codes
    n_items: Codes
    agreement: list[Estimate]  # how often a machine and a person agree on an item
    people_agreement: list[float]  # how often two people agree, on the machine's items
    accuracy: list[Estimate]  # how often the machine's label is that of the people's consensus
    # on ordinal scales, the mean and root mean squared difference from the people's mean label
    bias: Floats | None
    rmse: Floats | None
    confusion: Floats  # expected counts by consensus and label: machines x categories x categories
    pairs: list[DependentPair]  # all pairs of machines
    weight: Floats  # what each machine's labels count
    tests: list[AlternativeTest]  # the alternative annotator test of each machine


def measure_machines(labels: Labels, people: Fit, engine: Engine, margin: float) -> MachineMeasures:
    """Return what is measured of machines.

    ``people`` is a fit of RobustGPM to the people's labels. Its items and annotators come first among
    those of ``labels``; the other annotators are the machines.
    """
    n_items = people.data.n_items
    codes = np.arange(people.data.n_annotators, labels.n_annotators)
    states = latent_states(people, engine)
    judges = [_judge(labels, int(code), n_items) for code in codes]
    models = [
        judge_model(judge, confusion_of(judge, states), states.posterior, states.right)
        for judge in judges
    ]
    pairs = _machine_pairs(codes, models, states, people)
    by_people = people_labels(
        people.data.item_of_label(),
        people.data.annotator,
        people.data.category_of_label(),
        labels.scale.values if labels.scale.is_ordinal else None,
    )
    counts = np.zeros((n_items, labels.n_categories))
    np.add.at(counts, (by_people.item, by_people.label), 1.0)
    bias, rmse = _differences(labels, judges, counts)
    consensus = [_consensus(model, states) for model in models]
    return MachineMeasures(
        codes=codes,
        n_labels=labels.labels_per_annotator[codes],
        n_items=np.array([len(judge.item) for judge in judges]),
        agreement=[_agreement(judge, counts) for judge in judges],
        people_agreement=[_agreement_of_people(counts[judge.item]) for judge in judges],
        accuracy=[
            _mean_share(right[np.arange(len(right)), judge.label])
            for judge, right in zip(judges, consensus, strict=True)
        ],
        bias=bias,
        rmse=rmse,
        confusion=np.stack(
            [
                right.T @ np.eye(labels.n_categories)[judge.label]
                for judge, right in zip(judges, consensus, strict=True)
            ]
        ),
        pairs=pairs,
        weight=_weights(models, codes, pairs),
        tests=[
            alternative_test(by_people, _label_of_each(judge, n_items), margin) for judge in judges
        ],
    )


def _judge(labels: Labels, code: int, n_items: int) -> Judge:
    """Return the labels of an annotator on the first items."""
    item, label = labels.item_of_label(), labels.category_of_label()
    kept = (labels.annotator == code) & (item < n_items)
    rows = np.flatnonzero(kept)[np.argsort(labels.row[kept])]
    return judge_of(item[rows], label[rows])


def _label_of_each(judge: Judge, n_items: int) -> Codes:
    """Return the judge's label of each item, -1 where there is none."""
    label = np.full(n_items, -1)
    label[judge.item] = judge.label
    return label


def _agreement(judge: Judge, counts: Floats) -> Estimate:
    """Return how often the judge and a person agree, the mean over items."""
    of_item = counts[judge.item]
    return _mean_share(of_item[np.arange(len(of_item)), judge.label] / of_item.sum(axis=1))


def _agreement_of_people(counts: Floats) -> float:
    """Return how often two people agree, the mean over items with two labels or more."""
    n = counts.sum(axis=1)
    several = n >= 2
    if not several.any():
        return float("nan")
    pairs = (counts * (counts - 1.0)).sum(axis=1)[several] / (n * (n - 1.0))[several]
    return float(pairs.mean())


def _mean_share(values: Floats) -> Estimate:
    """Return the mean of one share per item, with an interval between 0 and 1."""
    n = len(values)
    if n == 0:
        return UNKNOWN_ESTIMATE
    # Two more of each kind keep the interval open where all values are the same (Agresti, Coull).
    padded = np.append(values, [0.0, 0.0, 1.0, 1.0])
    margin = Z_95 * padded.std() / np.sqrt(n + 4)
    mean = float(values.mean())
    low, high = padded.mean() - margin, padded.mean() + margin
    return Estimate(mean, float(np.clip(low, 0.0, mean)), float(np.clip(high, mean, 1.0)))


def _consensus(model: JudgeModel, states: LatentStates) -> Floats:
    """Return the distribution of the consensus, given people's and the judge's labels.

    The people may be wrong, too.
    """
    judge = model.judge
    posterior = posterior_with(states.posterior[judge.item], model.confusion[judge.label])
    right: Floats = posterior @ states.right
    return right


def _machine_pairs(
    codes: Codes, models: Sequence[JudgeModel], states: LatentStates, people: Fit
) -> list[DependentPair]:
    """Return all pairs of machines, and what they have in common."""
    kernel = label_kernel(people.data.scale)
    inflation = _OPINION_INFLATION if people.readout == "opinion" else _CLASS_INFLATION
    found = [
        measure_dependence(one, other, states.posterior, kernel, inflation)
        for one, other in combinations(models, 2)
    ]
    adjusted = holm([each.p_value for each in found]).tolist()
    places = combinations(codes.tolist(), 2)
    return [
        DependentPair(*place, each, p)
        for place, each, p in zip(places, found, adjusted, strict=True)
    ]


def _weights(models: Sequence[JudgeModel], codes: Codes, pairs: Sequence[DependentPair]) -> Floats:
    """Return what each machine's labels count."""
    correlation, n_common = np.zeros((2, len(codes), len(codes)))
    for pair in pairs:
        a, b = pair.annotator - codes[0], pair.other - codes[0]
        n_common[a, b] = n_common[b, a] = pair.dependence.n_items
        if pair.is_dependent:
            correlation[a, b] = correlation[b, a] = pair.dependence.correlation
    n_labels = np.array([len(model.judge.item) for model in models], dtype=np.float64)
    return judge_weights(correlation, n_common, n_labels)


def _differences(
    labels: Labels, judges: Sequence[Judge], counts: Floats
) -> tuple[Floats | None, Floats | None]:
    """Return mean and root mean squared differences from the people's mean labels, if ordinal."""
    if not labels.scale.is_ordinal:
        return None, None
    values = labels.scale.values
    mean = counts @ values / np.maximum(counts.sum(axis=1), 1.0)
    differences = [values[judge.label] - mean[judge.item] for judge in judges]
    bias = np.array([each.mean() if len(each) else np.nan for each in differences])
    square = [(each**2).mean() if len(each) else np.nan for each in differences]
    return bias, np.sqrt(np.array(square))
