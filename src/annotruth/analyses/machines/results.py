"""Tables, figures and lines on machines, from what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.analyses.machines.dependence import UNKNOWN, AlternativeTest
from annotruth.analyses.machines.judges import estimate_columns, numbers
from annotruth.analyses.machines.measure import DependentPair, MachineMeasures
from annotruth.errors import counted
from annotruth.metrics import accuracy_interval
from annotruth.models.fits.further import FurtherResults
from annotruth.observations.encode import to_text

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
