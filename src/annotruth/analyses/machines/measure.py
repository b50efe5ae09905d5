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
    Judge,
    JudgeModel,
    alternative_test,
    confusion_of,
    holm,
    judge_model,
    judge_of,
    judge_weights,
    label_kernel,
    measure_dependence,
    people_labels,
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


class Estimate(NamedTuple):
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float


UNKNOWN_ESTIMATE = Estimate(*(float("nan"),) * 3)
"""The estimate of what cannot be measured."""


def numbers(values: Sequence[float] | Floats) -> pa.Array:
    """Return a column of numbers, null where there is none."""
    return pa.array(np.asarray(values, dtype=np.float64), from_pandas=True)


def estimate_columns(name: str, estimates: Sequence[Estimate]) -> dict[str, pa.Array]:
    """Return three columns: the values, and the lower and upper ends of their intervals."""
    columns = np.array(estimates, dtype=np.float64).reshape(-1, 3).T
    ends = (name, f"{name}_low", f"{name}_high")
    return {end: numbers(column) for end, column in zip(ends, columns, strict=True)}


class MachineMeasures(NamedTuple):
    """What is measured of all machines, whose codes follow those of people."""

    codes: Codes
    weight: Floats  # what each machine's labels count
    columns: dict[str, pa.Array]  # of the table of machines
    confusion: Floats  # expected counts by consensus and label: machines x categories x categories
    pairs: list[
        dict[str, Any]
    ]  # all pairs of machines: rows of the table of dependence, with codes
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
    consensus = [_consensus(model, states) for model in models]
    weight = _weights(models, codes, pairs)
    columns = {
        "n_labels": pa.array(labels.labels_per_annotator[codes], pa.int64()),
        "n_items": pa.array([len(judge.item) for judge in judges], pa.int64()),
        "weight": numbers(weight),
        **estimate_columns("agreement", [_agreement(judge, counts) for judge in judges]),
        "people_agreement": numbers([_agreement_of_people(counts[judge.item]) for judge in judges]),
        **estimate_columns(
            "accuracy",
            [
                _mean_share(right[np.arange(len(right)), judge.label])
                for judge, right in zip(judges, consensus, strict=True)
            ],
        ),
    }
    if labels.scale.is_ordinal:
        columns |= _differences(labels.scale.values, judges, counts)
    confusion = [
        right.T @ np.eye(labels.n_categories)[judge.label]
        for judge, right in zip(judges, consensus, strict=True)
    ]
    tests = [
        alternative_test(by_people, _label_of_each(judge, n_items), margin) for judge in judges
    ]
    return MachineMeasures(codes, weight, columns, np.stack(confusion), pairs, tests)


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
) -> list[dict[str, Any]]:
    """Return all pairs of machines, and what they have in common; p-values are adjusted for all pairs."""
    kernel = label_kernel(people.data.scale)
    inflation = _OPINION_INFLATION if people.readout == "opinion" else _CLASS_INFLATION
    found = [
        measure_dependence(one, other, states.posterior, kernel, inflation)
        for one, other in combinations(models, 2)
    ]
    adjusted = holm([each.p_value for each in found]).tolist()
    return [
        {
            "annotator": annotator,
            "other": other,
            **each._replace(p_value=p)._asdict(),
            "dependent": p <= SIGNIFICANCE and each.correlation > 0.0,
        }
        for (annotator, other), each, p in zip(
            combinations(codes.tolist(), 2), found, adjusted, strict=True
        )
    ]


def _weights(
    models: Sequence[JudgeModel], codes: Codes, pairs: Sequence[Mapping[str, Any]]
) -> Floats:
    """Return what each machine's labels count."""
    correlation, n_common = np.zeros((2, len(codes), len(codes)))
    for pair in pairs:
        a, b = pair["annotator"] - codes[0], pair["other"] - codes[0]
        n_common[a, b] = n_common[b, a] = pair["n_items"]
        if pair["dependent"]:
            correlation[a, b] = correlation[b, a] = pair["correlation"]
    n_labels = np.array([len(model.judge.item) for model in models], dtype=np.float64)
    return judge_weights(correlation, n_common, n_labels)


def _differences(values: Floats, judges: Sequence[Judge], counts: Floats) -> dict[str, pa.Array]:
    """Return mean and root mean squared differences from the people's mean labels, as columns."""
    mean = counts @ values / np.maximum(counts.sum(axis=1), 1.0)
    differences = [values[judge.label] - mean[judge.item] for judge in judges]
    bias = [each.mean() if len(each) else np.nan for each in differences]
    square = [(each**2).mean() if len(each) else np.nan for each in differences]
    return {"bias": numbers(bias), "rmse": numbers(np.sqrt(square))}


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
    tests = measures.tests
    machines = pa.table(
        {
            "machine": annotators.take(pa.array(measures.codes)),
            **measures.columns,
            **(further_columns or {}),
            "n_people": pa.array([test.n_people for test in tests], pa.int64()),
            **{
                name: numbers([getattr(test, name) for test in tests])
                for name in ("winning_rate", "advantage", "p_value")
            },
            "may_replace": pa.array([test.may_replace for test in tests], pa.string()),
        }
    )
    tables = {
        "machines": machines,
        "dependence": _dependence_table(measures, annotators),
        "machine_confusion": _confusion_table(measures, annotators, categories),
    }
    names = to_text(machines["machine"].combine_chunks()).to_pylist()
    rows = [
        {name: value for name, value in row.items() if name != "machine"} | {"machine": machine}
        for row, machine in zip(machines.to_pylist(), names, strict=True)
    ]
    dependent = [pair for pair in measures.pairs if pair["dependent"]]
    facts = {"margin": margin, "machines": rows, "dependent_pairs": len(dependent)}
    weights = dict(zip(measures.codes.tolist(), measures.weight.tolist(), strict=True))
    of_pairs = _pair_lines(dependent, to_text(annotators).to_pylist(), weights)
    return FurtherResults(tables, facts, [*map(_machine_line, rows), *further_lines, *of_pairs])


def _dependence_table(measures: MachineMeasures, annotators: pa.Array) -> pa.Table:
    weight = dict(zip(measures.codes.tolist(), measures.weight.tolist(), strict=True))

    def column(name: str, type_: pa.DataType | None = None) -> pa.Array:
        return pa.array([pair[name] for pair in measures.pairs], type_)

    return pa.table(
        {
            **{name: annotators.take(column(name, pa.int64())) for name in ("annotator", "other")},
            "n_items": column("n_items", pa.int64()),
            **{
                name: numbers([pair[name] for pair in measures.pairs])
                for name in ("agreement", "expected", "correlation", "low", "high", "p_value")
            },
            "dependent": column("dependent", pa.bool_()),
            "weight": numbers([weight[pair["annotator"]] for pair in measures.pairs]),
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


def _machine_line(row: Mapping[str, Any]) -> str:
    """Return how a machine agrees with people, and whether it may replace one, in words."""
    line = f"machine {row['machine']}: "
    if row["n_items"] == 0:
        return f"{line}no item of it has a person's label: nothing to compare it with"
    line += f"agrees with people {row['agreement']:.0%}"
    if row["people_agreement"] is not None:
        line += f" (people with each other {row['people_agreement']:.0%})"
    line += f"; may replace a person: {row['may_replace']}"
    if row["may_replace"] == UNKNOWN:
        return line
    people = counted(row["n_people"], "person", "people")
    return (
        f"{line} (winning rate {row['winning_rate']:.2f} over {people}, p = {row['p_value']:.2g})"
    )


def _pair_lines(
    dependent: Sequence[Mapping[str, Any]], names: Sequence[str], weight: Mapping[int, float]
) -> list[str]:
    """Return one line per dependent pair, strongest first."""
    lines = []
    for pair in sorted(dependent, key=lambda pair: -pair["correlation"])[:_MAX_LINES]:
        one, other = pair["annotator"], pair["other"]
        line = f"WARNING: {names[one]} and {names[other]} "
        if pair["agreement"] == 1.0:
            items = counted(pair["n_items"], "item")
            line += f"gave the same labels to all {items} that both labelled"
        else:
            line += (
                f"err together: correlation {pair['correlation']:.2f} ({pair['low']:.2f} to "
                f"{pair['high']:.2f}), same label on {pair['agreement']:.0%} of "
                f"{pair['n_items']:,}, {pair['expected']:.0%} expected"
            )
        lines.append(f"{line}; their labels count {weight[one]:.2f} and {weight[other]:.2f}")
    if len(dependent) > _MAX_LINES:
        n_more = len(dependent) - _MAX_LINES
        more = counted(n_more, "further pair depends", "further pairs depend")
        lines.append(f"WARNING: {more} on each other (table dependence)")
    return lines
