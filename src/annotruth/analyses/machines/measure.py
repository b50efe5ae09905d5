"""What machines' labels are like, beside people's: agreement, confusion, dependence, the test; its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.analyses.machines.dependence import (
    UNKNOWN,
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
    estimate_columns,
    judge_of,
    numbers,
    posterior_with,
)
from annotruth.engines import Engine
from annotruth.errors import counted
from annotruth.kernels.arrays import Codes, Floats
from annotruth.metrics import accuracy_interval
from annotruth.models.distribution import Z_95
from annotruth.models.evidence.dependent_annotators import SIGNIFICANCE
from annotruth.models.fits.further import FurtherResults
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.readouts import LatentStates, latent_states
from annotruth.observations import Labels
from annotruth.observations.encode import to_text

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


_MAX_LINES = 10  # of the summary, on dependent pairs


def make_results(
    measures: MachineMeasures,
    annotators: pa.Array,
    categories: Sequence[str],
    *,
    margin: float,
    further_columns: Mapping[str, Any] | None = None,
    further_lines: Sequence[str] = (),
) -> FurtherResults:
    """Return the tables, figures and lines.

    ``annotators`` are the ids behind the codes; ``further_columns`` are those of the machines' table
    that only pair comparisons have.
    """
    machines = _machine_table(measures, annotators, further_columns or {})
    tables = {
        "machines": machines,
        "dependence": _dependence_table(measures, annotators),
        "machine_confusion": _confusion_table(measures, annotators, categories),
    }
    names = to_text(machines["machine"].combine_chunks()).to_pylist()
    facts = {
        "margin": margin,
        "machines": [
            {name: value for name, value in row.items() if name != "machine"} | {"machine": machine}
            for row, machine in zip(machines.to_pylist(), names, strict=True)
        ],
        "dependent_pairs": sum(pair.is_dependent for pair in measures.pairs),
    }
    lines = [*_machine_lines(measures, names), *further_lines, *_pair_lines(measures, annotators)]
    return FurtherResults(tables, facts, lines)


def _machine_table(
    measures: MachineMeasures, annotators: pa.Array, further_columns: Mapping[str, Any]
) -> pa.Table:
    tests = measures.tests
    columns: dict[str, Any] = {
        "machine": annotators.take(pa.array(measures.codes)),
        "n_labels": pa.array(measures.n_labels, pa.int64()),
        "n_items": pa.array(measures.n_items, pa.int64()),
        "weight": numbers(measures.weight),
        **estimate_columns("agreement", measures.agreement),
        "people_agreement": numbers(measures.people_agreement),
        **estimate_columns("accuracy", measures.accuracy),
    }
    if measures.bias is not None and measures.rmse is not None:
        columns |= {"bias": numbers(measures.bias), "rmse": numbers(measures.rmse)}
    columns |= further_columns
    columns |= {
        "n_people": pa.array([test.n_people for test in tests], pa.int64()),
        "winning_rate": numbers([test.winning_rate for test in tests]),
        "advantage": numbers([test.advantage for test in tests]),
        "p_value": numbers([test.p_value for test in tests]),
        "may_replace": pa.array([test.may_replace for test in tests], pa.string()),
    }
    return pa.table(columns)


def _dependence_table(measures: MachineMeasures, annotators: pa.Array) -> pa.Table:
    pairs = measures.pairs
    weight = dict(zip(measures.codes.tolist(), measures.weight.tolist(), strict=True))

    def ids(codes: list[int]) -> pa.Array:
        return annotators.take(pa.array(codes, pa.int64()))

    found = [pair.dependence for pair in pairs]
    return pa.table(
        {
            "annotator": ids([pair.annotator for pair in pairs]),
            "other": ids([pair.other for pair in pairs]),
            "n_items": pa.array([each.n_items for each in found], pa.int64()),
            **{
                name: numbers([getattr(each, name) for each in found])
                for name in ("agreement", "expected", "correlation", "low", "high")
            },
            "p_value": numbers([pair.p_value for pair in pairs]),
            "dependent": pa.array([pair.is_dependent for pair in pairs], pa.bool_()),
            "weight": numbers([weight[pair.annotator] for pair in pairs]),
        }
    )


def _confusion_table(
    measures: MachineMeasures, annotators: pa.Array, categories: Sequence[str]
) -> pa.Table:
    """Return one row per machine, consensus and label: the share of labels, with Wilson's interval."""
    machine, consensus, label = (axis.ravel() for axis in np.indices(measures.confusion.shape))
    counts = measures.confusion.ravel()
    total = np.repeat(measures.confusion.sum(axis=2).ravel(), len(categories))
    with np.errstate(invalid="ignore", divide="ignore"):
        share, (low, high) = counts / total, accuracy_interval(counts, total)
    names = pa.array(categories, pa.string())
    return pa.table(
        {
            "machine": annotators.take(pa.array(measures.codes[machine])),
            "consensus": names.take(pa.array(consensus)),
            "label": names.take(pa.array(label)),
            "n": numbers(counts),
            "share": numbers(share),
            "low": numbers(low),
            "high": numbers(high),
        }
    )


def _machine_lines(measures: MachineMeasures, names: Sequence[str]) -> list[str]:
    lines = []
    for at, name in enumerate(names):
        line = f"machine {name}: "
        if measures.n_items[at] == 0:
            lines.append(f"{line}no item of it has a person's label: nothing to compare it with")
            continue
        line += f"agrees with people {measures.agreement[at].value:.0%}"
        if np.isfinite(measures.people_agreement[at]):
            line += f" (people with each other {measures.people_agreement[at]:.0%})"
        lines.append(f"{line}; {replacement(measures.tests[at])}")
    return lines


def replacement(test: AlternativeTest) -> str:
    """Return the result of the alternative annotator test in words."""
    if test.may_replace == UNKNOWN:
        return f"may replace a person: {UNKNOWN}"
    return (
        f"may replace a person: {test.may_replace} (winning rate {test.winning_rate:.2f} over "
        f"{counted(test.n_people, 'person', 'people')}, p = {test.p_value:.2g})"
    )


def _pair_lines(measures: MachineMeasures, annotators: pa.Array) -> list[str]:
    """Return one line per dependent pair, strongest first."""
    found = sorted(
        (pair for pair in measures.pairs if pair.is_dependent),
        key=lambda pair: -pair.dependence.correlation,
    )
    names = to_text(annotators).to_pylist()
    machines = dict(zip(measures.codes.tolist(), measures.weight.tolist(), strict=True))
    lines = [_pair_line(pair, names, machines) for pair in found[:_MAX_LINES]]
    if len(found) > _MAX_LINES:
        more = counted(len(found) - _MAX_LINES, "further pair depends", "further pairs depend")
        lines.append(f"WARNING: {more} on each other (table dependence)")
    return lines


def _pair_line(pair: DependentPair, names: Sequence[str], weight: Mapping[int, float]) -> str:
    one, other, found = names[pair.annotator], names[pair.other], pair.dependence
    line = f"WARNING: {one} and {other} "
    if found.agreement == 1.0:
        line += f"gave the same labels to all {counted(found.n_items, 'item')} that both labelled"
    else:
        line += (
            f"err together: correlation {found.correlation:.2f} ({found.low:.2f} to "
            f"{found.high:.2f}), same label on {found.agreement:.0%} of {found.n_items:,}, "
            f"{found.expected:.0%} expected"
        )
    return f"{line}; their labels count {weight[pair.annotator]:.2f} and {weight[pair.other]:.2f}"
