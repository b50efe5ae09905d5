"""The sections on further results: pairs and groups of annotators, boards, machines, over time.

A kind has a function of its name in `SECTIONS`, or is shown as its lines and tables.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import counted, shorten
from annotruth.models.fits.further import FurtherResults, further_kinds
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.matrices import matrix_chart
from annotruth.report.over_time import time_section
from annotruth.report.render import (
    DASH,
    Heading,
    Opener,
    Part,
    Section,
    SideBySide,
    SmallTable,
    Text,
    as_sentence,
    fill,
    rows_table,
)

Row: TypeAlias = Mapping[str, Any]

_MAX_PAIRS, _MAX_ROWS = 20, 30
_MAX_BOARDS = 12
_MAX_ITEMS = 25  # on which groups differ
_MAX_SHARES = 3  # of an opinion
_MAX_MATRICES, _MAX_CATEGORIES = 6, 12
_TWO = ("group", "other")


def make_sections(fit: Any) -> list[Section]:
    """Return the section of each kind of further results that a fit has."""
    return [
        SECTIONS[kind](fit, results) if kind in SECTIONS else _plain_section(kind, results)
        for kind, results in fit.further.items()
    ]


def _plain_section(kind: str, results: FurtherResults) -> Section:
    described = further_kinds()[kind]
    parts: list[Part] = [Text(described.meaning, "lead")]
    parts += [Text(as_sentence(line)) for line in results.lines]
    for table in results.tables.values():
        columns = {
            name.replace("_", " ").capitalize(): _TEMPLATES[str(type_)].replace("value", name)
            for name, type_ in zip(table.column_names, table.schema.types, strict=True)
        }
        parts += rows_table(table.to_pylist(), columns, _MAX_ROWS)
    return Section(kind, described.title, parts)


_TEMPLATES = defaultdict(lambda: "{value}", double="{value:.3g}", int64="{value:,}")

_MATCHING = (
    "These annotators gave equal labels to more of their common items than independent annotators would "
    "(expected). {n_tested} were tested, at a significance of {significance:.0%} over all of them: in up to "
    "{significance:.0%} of crowds, a pair is listed by chance. One may have copied from the other, they may "
    "have worked together or have had the same training, or one person may have two accounts; the labels do "
    "not say which. The correlation is the share of their labels that depend on one another. Estimates do "
    "not take it into account: their reliabilities may be too high."
)


_PAIR = {
    "Common items": "{n_items:,}",
    "Same label": "{agreement:.0%}",
    "Expected": "{expected:.0%}",
}


def dependent_annotators(fit: object, results: FurtherResults) -> Section:
    """Return the section on annotators with matching labels; it is empty if there are none."""
    rows = results.tables["dependent_annotators"].to_pylist()
    title = "Annotators with matching labels"
    if not rows:
        return Section("dependent_annotators", title, [])
    tested, significance = (results.facts[name] for name in ("n_tested", "significance"))
    meaning = _MATCHING.format(n_tested=counted(tested, "pair"), significance=significance)
    columns = {
        "Annotator": "{annotator}",
        "Other": "{other}",
        **_PAIR,
        "Correlation": "{correlation:.2f}",
        "p": "{p_value:.2g}",
    }
    see = ": see dependent_annotators.csv of --out"
    parts = [Text(meaning), *rows_table(rows, columns, _MAX_PAIRS, "further pair", see)]
    return Section("dependent_annotators", title, parts, link="Matching labels")


_BOARDS = (
    "One column per value of {by}: the rank of each item there, and its score with its 95% interval. Boards with "
    "few votes are drawn towards the ranking of all; a dash is an item that was not compared there."
)


def _boards(fit: object, results: FurtherResults) -> Section:
    """Return the section on boards: side by side, and where the order differs."""
    column = shorten(str(results.facts["by"]), 40)
    different = results.tables["board_differences"].to_pylist()
    columns = {
        "Board": "{board}",
        "Better there": "{item}",
        "Better over all": "{other}",
        "Difference there": "{difference:.2f} ({low:.2f} to {high:.2f})",
        "Over all": "{overall:.2f}",
        "q": "{q_value:.2g}",
    }
    where: list[Part] = [Text(f"The order of no two items clearly differs by {column}.")]
    if different:
        table = rows_table(different, columns, _MAX_PAIRS, "further pair")
        where = [Heading("Where the order differs"), *table]
    lead = Text(_BOARDS.format(by=column), "lead")
    parts = [lead, *_board_matrix(results.tables["boards"].to_pylist()), *where]
    return Section("boards", f"Boards by {column}", parts, link="Boards")


def _board_matrix(rows: Sequence[Row]) -> list[Part]:
    """Return one row per item, best first, and one column per board, the largest first."""
    sizes = {row["board"]: row["n_comparisons"] for row in rows}
    boards = sorted(sizes, key=lambda name: -sizes[name])[:_MAX_BOARDS]
    cells = {
        (row["item"], row["board"]): fill("{rank}: {score:.2f} ({low:.2f} to {high:.2f})", row)
        if row["compared"]
        else DASH
        for row in rows
    }
    overall = {row["item"]: row["score"] - row["difference"] for row in rows}
    items = sorted(overall, key=lambda item: -overall[item])[:_MAX_ROWS]
    header = ["Item", *(f"{shorten(name, 24)} ({sizes[name]:,})" for name in boards)]
    lines = [[shorten(str(item), 40), *(cells[item, board] for board in boards)] for item in items]
    left_out = [
        f"{counted(n, what)} more in boards.csv of --out"
        for n, what in ((len(sizes) - len(boards), "board"), (len(overall) - len(items), "item"))
        if n > 0
    ]
    return [SmallTable(header, lines), Text(as_sentence("; ".join(left_out)), "quiet")]


def _groups(fit: Any, results: FurtherResults) -> Section:
    """Return the section on groups: overall, and the items on which they differ most."""
    summary = results.tables["group_summary"]
    columns = {
        "n_annotators": ("Annotators", "{n_annotators:,}"),
        "n_labels": ("Labels", "{n_labels:,}"),
        "reliability": ("Median reliability", "{reliability:.2f}"),
        "n_spammers": ("Spammers", "{n_spammers:,}"),
        "level": ("Above the others", "{level:+.2f}"),
        "p_value": ("P-value", "{p_value}"),
        "q_value": ("Q-value", "{q_value}"),
        "differs": ("Differs", "{differs}"),
    }
    shown = dict(columns[key] for key in columns if key in summary.column_names)
    rows = [
        row | {key: _p(row[key]) for key in ("p_value", "q_value")} for row in summary.to_pylist()
    ]
    parts: list[Part] = [Text(as_sentence(line)) for line in results.lines]
    parts += [Heading("Groups overall"), *rows_table(rows, {"Group": "{group}", **shown})]
    return Section("groups", "Groups", [*parts, *_group_items(fit, results.tables)])


def _p(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _group_items(fit: Any, tables: Mapping[str, pa.Table]) -> list[Part]:
    """Return the items on which groups differ, with the opinions of the two that differ most."""
    found, opinions = tables["group_differences"], tables["groups"]
    shares = {f"p_{name}": name for name in fit.data.scale.names}
    types = {name: opinions.schema.field(name).type for name in opinions.column_names}
    if not len(found) or not all(
        name in types and pa.types.is_floating(types[name]) for name in shares
    ):
        return []
    found = found.take(pc.sort_indices(found, [("p_value", "ascending")])[:_MAX_ITEMS])
    rows = []
    for row in found.to_pylist():
        of_item = opinions.filter(pc.equal(opinions["item"], pa.scalar(row["item"])))
        said = {
            each.pop("group"): _opinion({shares[key]: value for key, value in each.items()})
            for each in of_item.select(["group", *shares]).to_pylist()
        }
        rows.append(
            [
                Opener(shorten(str(row["item"]), 40), "items", str(row["item"])),
                *(f"{shorten(row[key], 24)}: {said.get(row[key], DASH)}" for key in _TWO),
                *(_p(row[key]) for key in ("p_value", "q_value")),
                fill("{differs}", row),
            ]
        )
    is_any = found["differs"][0].as_py()
    title = "Items on which groups differ most" if is_any else "Items with the smallest p-values"
    header = ["Item", "Group", "Other group", "P-value", "Q-value", "Differs"]
    return [Heading(title), SmallTable(header, rows)]


def _opinion(shares: Mapping[str, float | None]) -> str:
    """Return the largest shares of an opinion, such as "cat 70%, dog 25%"."""
    known = {name: share for name, share in shares.items() if share and math.isfinite(share)}
    largest = sorted(known, key=lambda name: -known[name])[:_MAX_SHARES]
    return ", ".join(f"{shorten(name, 24)} {known[name]:.0%}" for name in largest) or DASH


_MACHINES = (
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


def _machines(fit: object, results: FurtherResults) -> Section:
    """Return the section on machines: beside people, their dependence, and their confusion."""
    tables = {name: table.to_pylist() for name, table in results.tables.items()}
    columns = {
        "Machine": "{machine}",
        "Labels": "{n_labels:,}",
        "Agrees with people": "{agreement:.0%} ({agreement_low:.0%} to {agreement_high:.0%})",
        "People with each other": "{people_agreement:.0%}",
        "Same as consensus": "{accuracy:.0%} ({accuracy_low:.0%} to {accuracy_high:.0%})",
        "A label counts": "{weight:.2f}",
        "May replace a person": "{may_replace}",
        "Winning rate": "{winning_rate:.2f}",
        "Advantage": "{advantage:.2f}",
        "p": "{p_value:.2g}",
        "People tested": "{n_people:,}",
    }
    warnings = [line.removeprefix("WARNING: ") for line in results.lines if "WARNING" in line]
    parts: list[Part] = [
        Text(_MACHINES.format(margin=results.facts.get("margin", 0.1))),
        *(Text(line, "note") for line in warnings),
        *rows_table(tables["machines"], columns),
        *_bias_table(tables["machines"]),
        *_machine_pairs(tables["dependence"]),
    ]
    if charts := _confusion_charts(tables["machine_confusion"]):
        parts.append(SideBySide(charts))
    return Section("machines", "Machines", parts)


def _bias_table(rows: Sequence[Row]) -> list[Part]:
    """Return what sways machines that compare pairs, if they do."""
    if "consistency" not in rows[0]:
        return []
    # Effects have the names of columns, which may be anything.
    names = {key: f"c{k}" for k, key in enumerate(rows[0])}
    named = [{names[key]: value for key, value in row.items()} for row in rows]
    columns = {"Machine": f"{{{names['machine']}}}"}
    for key in rows[0]:
        effect = key.removesuffix("_effect")
        if key.startswith("people_") or (key != "side_bias" and effect == key):
            continue
        heading = "Side bias" if key == "side_bias" else f"Effect of {effect}"
        value, low, high, people = (
            f"{{{names[each]}:+.2f}}"
            for each in (key, f"{key}_low", f"{key}_high", f"people_{key}")
        )
        columns |= {heading: f"{value} ({low} to {high})", f"{heading} of people": people}
    columns["Same in both orders"] = f"{{{names['consistency']}:.0%}}"
    columns["Pairs in both orders"] = f"{{{names['n_both_orders']}:,}}"
    note = "Biases are log-odds of left over right for items of equal score; above 0 is left."
    return [*rows_table(named, columns), Text(note, "quiet")]


def _machine_pairs(rows: Sequence[Row]) -> list[Part]:
    """Return the table of pairs of machines, strongest correlation first."""
    if not rows:
        return []
    ordered = sorted(rows, key=lambda row: -(row["correlation"] or 0.0))
    columns = {
        "Pair": "{annotator} and {other}",
        **_PAIR,
        "Correlation": "{correlation:.2f} ({low:.2f} to {high:.2f})",
        "p": "{p_value:.2g}",
        "Dependent": "{dependent}",
    }
    see = ": see dependence.csv of --out"
    shown = rows_table(ordered, columns, _MAX_PAIRS, "further pair", see)
    return [Heading("Machines that err together"), Text(_TOGETHER), *shown]


_TIP = "consensus {consensus}, label {label}: {share:.0%} ({low:.0%} to {high:.0%})"


def _confusion_charts(rows: Sequence[Row]) -> list[Chart]:
    """Return the confusion matrix of each machine, of the first ones."""
    names = list(dict.fromkeys(str(row["consensus"]) for row in rows))
    if not 1 < len(names) <= _MAX_CATEGORIES:
        return []
    charts = []
    by_machine = groupby(rows, key=lambda row: row["machine"])
    for k, (machine, found) in enumerate(islice(by_machine, _MAX_MATRICES)):
        grouped = list(found)
        charts.append(
            matrix_chart(
                f"machine-{k + 1}",
                f"Confusion of {shorten(str(machine))}",
                "Labels of the machine (columns) by the people's consensus (rows), expected counts. "
                "A stronger color is a larger share of the row.",
                names,
                np.array([row["n"] or 0.0 for row in grouped]).reshape(len(names), len(names)),
                ("consensus", "label", "n"),
                ("consensus ↓", "label →"),
                tips=[fill(_TIP, row) for row in grouped],
            )
        )
    return charts


SECTIONS: Mapping[str, Callable[[Any, FurtherResults], Section]] = {
    "dependent_annotators": dependent_annotators,
    "boards": _boards,
    "groups": _groups,
    "machines": _machines,
    "over_time": time_section,
}
