"""The report's section on machines among the annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from annotruth.errors import counted, shorten
from annotruth.models.fits.further import FurtherResults
from annotruth.models.result import Fit
from annotruth.report.charts import shapes
from annotruth.report.charts.chart import Chart
from annotruth.report.render import Heading, Part, Section, SideBySide, SmallTable, Text

_MAX_PAIRS = 20
_MAX_MATRICES = 6
_MAX_CATEGORIES = 12
_EFFECT = "_effect"  # how columns of covariates' coefficients end

_MEANING = (
    "Machines are compared with the people's consensus, which is inferred without them. Whether "
    "they may replace a person is the alternative annotator test: on each person's items, is the machine at least "
    "as close to the other people, but for a margin of {margin:g}? It may replace a person if that holds, "
    "beyond chance, for at least half of the people; the p value is the level at which it would."
)
_TOGETHER = (
    "Copies of one model are no independent votes. The correlation is of the labels of two machines "
    "given the items' true state, with its 95% interval; expected is how often independent machines would "
    "agree. Labels of machines that depend on one another count less."
)


def make_section(fit: Fit[Any], results: FurtherResults) -> Section:
    """Return the section: machines beside people, their dependence, and their confusion."""
    tables = {name: table.to_pylist() for name, table in results.tables.items()}
    charts = _confusion_charts(tables["machine_confusion"])
    meaning = _MEANING.format(margin=results.facts.get("margin", 0.1))
    warnings = [line.removeprefix("WARNING: ") for line in results.lines if "WARNING" in line]
    parts: list[Part] = [
        Text(meaning),
        *(Text(line, "note") for line in warnings),
        _machine_table(tables["machines"]),
        *_bias_table(tables["machines"]),
        *_pair_table(tables["dependence"]),
    ]
    if charts:
        parts.append(SideBySide(charts))
    return Section("machines", "Machines", parts)


def _machine_table(rows: Sequence[Mapping[str, Any]]) -> SmallTable:
    """Return the table of agreement, weight and replacement."""
    header = (
        *("Machine", "Labels", "Agrees with people", "People with each other"),
        *("Same as consensus", "A label counts", "May replace a person", "Winning rate"),
        *("Advantage", "p", "People tested"),
    )
    lines = [
        [
            _name(row["machine"]),
            f"{row['n_labels']:,}",
            _interval(row, "agreement", "{:.0%}"),
            _number(row["people_agreement"], "{:.0%}"),
            _interval(row, "accuracy", "{:.0%}"),
            _number(row["weight"], "{:.2f}"),
            str(row["may_replace"]),
            _number(row["winning_rate"], "{:.2f}"),
            _number(row["advantage"], "{:.2f}"),
            _number(row["p_value"], "{:.2g}"),
            f"{row['n_people']:,}",
        ]
        for row in rows
    ]
    return SmallTable(header, lines)


def _bias_table(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Return what sways machines that compare pairs, if they do."""
    if "consistency" not in rows[0]:
        return []
    effects = [name for name in rows[0] if name == "side_bias" or name.endswith(_EFFECT)]
    effects = [name for name in effects if not name.startswith("people_")]
    header = ["Machine"]
    for name in effects:
        title = "Side bias" if name == "side_bias" else f"Effect of {name.removesuffix(_EFFECT)}"
        header += [title, "of people"]
    header += ["Same in both orders", "Pairs in both orders"]
    lines = []
    for row in rows:
        cells = [_name(row["machine"])]
        for name in effects:
            cells += [_interval(row, name, "{:+.2f}"), _number(row[f"people_{name}"], "{:+.2f}")]
        cells += [_number(row["consistency"], "{:.0%}"), f"{row['n_both_orders']:,}"]
        lines.append(cells)
    note = "Biases are log-odds of left over right for items of equal score; above 0 is left."
    return [SmallTable(header, lines), Text(note, "quiet")]


def _pair_table(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Return the table of pairs of machines, strongest correlation first."""
    if not rows:
        return []
    ordered = sorted(rows, key=lambda row: -(row["correlation"] or 0.0))
    lines = [
        [
            f"{_name(row['annotator'])} and {_name(row['other'])}",
            f"{row['n_items']:,}",
            _number(row["agreement"], "{:.0%}"),
            _number(row["expected"], "{:.0%}"),
            _interval(row, "correlation", "{:.2f}"),
            _number(row["p_value"], "{:.2g}"),
            "yes" if row["dependent"] else "no",
        ]
        for row in ordered[:_MAX_PAIRS]
    ]
    header = (
        *("Pair", "Common items", "Same label", "Expected"),
        *("Correlation", "p", "Dependent"),
    )
    more = len(rows) - _MAX_PAIRS
    note = f"And {counted(more, 'further pair')}: see dependence.csv of --out."
    return [
        Heading("Machines that err together"),
        Text(_TOGETHER),
        SmallTable(header, lines),
        Text(note, "note") if more > 0 else "",
    ]


def _confusion_charts(rows: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Return the confusion matrix of each machine, of the first ones."""
    names = list(dict.fromkeys(str(row["consensus"]) for row in rows))
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    if not 1 < len(names) <= _MAX_CATEGORIES:
        return []
    return [
        _confusion_chart(
            f"machine-{k + 1}",
            _name(machine),
            names,
            [row for row in rows if row["machine"] == machine],
        )
        for k, machine in enumerate(machines[:_MAX_MATRICES])
    ]


def _confusion_chart(
    chart_name: str, machine: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> Chart:
    counts = np.array([row["n"] or 0.0 for row in rows]).reshape(len(names), len(names))
    tips = [
        f"consensus {row['consensus']}, label {row['label']}: {_interval(row, 'share', '{:.0%}')}"
        for row in rows
    ]
    shown = counts.round().astype(np.int64)
    return Chart(
        name=chart_name,
        title=f"Confusion of {machine}",
        caption="Labels of the machine (columns) by the people's consensus (rows), expected counts. "
        "A stronger color is a larger share of the row.",
        data={
            "consensus": [row["consensus"] for row in rows],
            "label": [row["label"] for row in rows],
            "n": counts.ravel().tolist(),
        },
        draw=lambda width: shapes.confusion_matrix(
            names, shown, width, tips, ("consensus ↓", "label →")
        ),
    )


def _name(machine: Any) -> str:
    return shorten(str(machine))


def _number(value: float | None, template: str) -> str:
    return "-" if value is None else template.format(value)


def _interval(row: Mapping[str, Any], name: str, template: str) -> str:
    """Return a value with its interval in brackets; the columns of its ends may have no prefix."""
    ends = [row.get(f"{name}_{end}", row.get(end)) for end in ("low", "high")]
    if row[name] is None or None in ends:
        return _number(row[name], template)
    low, high = (template.format(end) for end in ends)
    return f"{template.format(row[name])} ({low} to {high})"
