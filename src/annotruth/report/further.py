"""The sections on further results: pairs and groups of annotators, boards, machines, over time.

A kind has a function of its name in `SECTIONS`, or is shown as its lines and tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from annotruth.errors import counted, shorten
from annotruth.kernels.arrays import Floats
from annotruth.models.fits.further import FurtherResults, further_kinds
from annotruth.report.charts.chart import Chart, color_indices
from annotruth.report.charts.drawing import Drawing
from annotruth.report.charts.matrices import matrix_chart
from annotruth.report.over_time import time_section
from annotruth.report.render import (
    DASH,
    Cell,
    Chips,
    Heading,
    Opener,
    Part,
    Section,
    SideBySide,
    SmallTable,
    Text,
    as_sentence,
    first_rows,
    number,
    records_table,
)

Row: TypeAlias = Mapping[str, Any]

_MAX_PAIRS, _MAX_ROWS = 20, 30
_MAX_BOARDS = 12
_MAX_ITEMS = 25  # on which groups differ
_MAX_GROUPS = 4  # of more groups, an item shows the two that differ most
_MAX_MATRICES, _MAX_CATEGORIES = 6, 12
_BAR_WIDTH, _BAR_HEIGHT = 120.0, 12.0  # of a distribution


def make_sections(fit: Any) -> list[Section]:
    """Return the section of each kind of further results that a fit has."""
    return [
        SECTIONS[kind](fit, results) if kind in SECTIONS else _plain_section(kind, results)
        for kind, results in fit.further.items()
    ]


def _name(key: str, max_length: int = 60) -> Cell:
    return lambda row: shorten(str(row[key]), max_length)


def _interval(key: str, template: str) -> Cell:
    """Return a cell with a value and its interval; the columns of its ends may have no prefix."""

    def cell(row: Row) -> Part:
        ends = [row.get(f"{key}_{end}", row.get(end)) for end in ("low", "high")]
        if row[key] is None or None in ends:
            return number(key, template)(row)
        low, high = (template.format(end) for end in ends)
        return f"{template.format(row[key])} ({low} to {high})"

    return cell


def _yes(key: str) -> Cell:
    return lambda row: "yes" if row[key] else "no"


def _plain_section(kind: str, results: FurtherResults) -> Section:
    described = further_kinds()[kind]
    parts: list[Part] = [Text(described.meaning, "lead")]
    parts += [Text(as_sentence(line)) for line in results.lines]
    for table in results.tables.values():
        columns = {
            name.replace("_", " ").capitalize(): lambda row, name=name: _plain(row[name])
            for name in table.column_names
        }
        parts += first_rows(table.to_pylist(), columns, _MAX_ROWS, "further row")
    return Section(kind, described.title, parts)


def _plain(value: object) -> str:
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else shorten(str(value), 40)


_MATCHING = (
    "These annotators gave equal labels to more of their common items than independent annotators would "
    "(expected). {n_tested} were tested, at a significance of {significance:.0%} over all of them: in up to "
    "{significance:.0%} of crowds, a pair is listed by chance. One may have copied from the other, they may "
    "have worked together or have had the same training, or one person may have two accounts; the labels do "
    "not say which. The correlation is the share of their labels that depend on one another. Estimates do "
    "not take it into account: their reliabilities may be too high."
)


def dependent_annotators(fit: object, results: FurtherResults) -> Section:
    """Return the section on annotators with matching labels; it is empty if there are none."""
    rows = results.tables["dependent_annotators"].to_pylist()
    title = "Annotators with matching labels"
    if not rows:
        return Section("dependent_annotators", title, [])
    tested, significance = (results.facts[name] for name in ("n_tested", "significance"))
    meaning = _MATCHING.format(n_tested=counted(tested, "pair"), significance=significance)
    columns = {
        "Annotator": _name("annotator"),
        "Other": _name("other"),
        "Common items": number("n_items", "{:,}"),
        "Same label": number("agreement", "{:.0%}"),
        "Expected": number("expected", "{:.0%}"),
        "Correlation": number("correlation", "{:.2f}"),
        "p": number("p_value", "{:.2g}"),
    }
    see = ": see dependent_annotators.csv of --out"
    parts = [Text(meaning), *first_rows(rows, columns, _MAX_PAIRS, "further pair", see, "note")]
    return Section("dependent_annotators", title, parts, link="Matching labels")


_BOARDS = (
    "One column per value of {by}: the rank of each item there, and its score with its 95% interval. Boards with "
    "few votes are drawn towards the ranking of all; a dash is an item that was not compared there."
)


def _boards(fit: object, results: FurtherResults) -> Section:
    """Return the section on boards: side by side, and where the order differs."""
    column = shorten(str(results.facts["by"]), 40)
    title = f"Boards by {column}"
    parts: list[Part] = [Text(_BOARDS.format(by=column), "lead")]
    parts += _board_matrix(results.tables["boards"].to_pylist())
    different = results.tables["board_differences"].to_pylist()
    if not different:
        parts.append(Text(f"The order of no two items clearly differs by {column}."))
        return Section("boards", title, parts, link="Boards")
    columns = {
        "Board": _name("board", 40),
        "Better there": _name("item", 40),
        "Better over all": _name("other", 40),
        "Difference there": _interval("difference", "{:.2f}"),
        "Over all": number("overall", "{:.2f}"),
        "q": number("q_value", "{:.2g}"),
    }
    parts.append(Heading("Where the order differs"))
    parts += first_rows(different, columns, _MAX_PAIRS, "further pair")
    return Section("boards", title, parts, link="Boards")


def _board_matrix(rows: Sequence[Row]) -> list[Part]:
    """Return one row per item, best first, and one column per board, the largest first."""
    sizes = {row["board"]: row["n_comparisons"] for row in rows}
    boards = sorted(sizes, key=lambda name: -sizes[name])[:_MAX_BOARDS]
    cells = {(row["item"], row["board"]): row for row in rows}
    overall = {row["item"]: row["score"] - row["difference"] for row in rows}
    items = sorted(overall, key=lambda item: -overall[item])[:_MAX_ROWS]
    header = ["Item", *(f"{shorten(name, 24)} ({sizes[name]:,})" for name in boards)]
    lines = [
        [shorten(str(item), 40), *(_on_board(cells[item, board]) for board in boards)]
        for item in items
    ]
    left_out = [
        f"{counted(n, what)} more in boards.csv of --out"
        for n, what in ((len(sizes) - len(boards), "board"), (len(overall) - len(items), "item"))
        if n > 0
    ]
    note = Text(f"{'; '.join(left_out)}.", "quiet") if left_out else ""
    return [SmallTable(header, lines), note]


def _on_board(row: Row) -> str:
    return f"{row['rank']}: {_interval('score', '{:.2f}')(row)}" if row["compared"] else DASH


def _groups(fit: Any, results: FurtherResults) -> Section:
    """Return the section on groups: overall, and the items on which they differ most."""
    summary = results.tables["group_summary"]
    columns: dict[str, tuple[str, Cell]] = {
        "n_annotators": ("Annotators", number("n_annotators", "{:,}", DASH)),
        "n_labels": ("Labels", number("n_labels", "{:,}", DASH)),
        "reliability": ("Median reliability", number("reliability", "{:.2f}", DASH)),
        "n_spammers": ("Spammers", number("n_spammers", "{:,}", DASH)),
        "level": ("Above the others", number("level", "{:+.2f}", DASH)),
        "p_value": ("P-value", lambda row: _p(row["p_value"])),
        "q_value": ("Q-value", lambda row: _p(row["q_value"])),
        "differs": ("Differs", _yes("differs")),
    }
    shown = dict(columns[key] for key in columns if key in summary.column_names)
    table = records_table(summary.to_pylist(), {"Group": _name("group"), **shown})
    parts: list[Part] = [Text(as_sentence(line)) for line in results.lines]
    parts += [Heading("Groups overall"), table, *_group_items(fit, results.tables)]
    return Section("groups", "Groups", parts)


def _p(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _group_items(fit: Any, tables: Mapping[str, pa.Table]) -> list[Part]:
    """Return the table of items with the groups' distributions side by side, under its heading."""
    found, opinions = tables["group_differences"], tables["groups"]
    shares = [f"p_{name}" for name in fit.data.scale.names]
    types = {name: opinions.schema.field(name).type for name in opinions.column_names}
    if not len(found) or not all(
        name in types and pa.types.is_floating(types[name]) for name in shares
    ):
        return []
    found = found.take(pc.sort_indices(found, [("p_value", "ascending")])[:_MAX_ITEMS])
    groups = tables["group_summary"]["group"].to_pylist()
    side_by_side = groups if len(groups) <= _MAX_GROUPS else []
    rows = []
    for row in found.to_pylist():
        of_item = opinions.filter(pc.equal(opinions["item"], pa.scalar(row["item"])))
        of_group = {
            each.pop("group"): np.array(list(each.values()))
            for each in of_item.select(["group", *shares]).to_pylist()
        }
        bars = [
            _bar(fit, name, of_group.get(name), named=not side_by_side)
            for name in side_by_side or (row["group"], row["other"])
        ]
        item = Opener(shorten(str(row["item"]), 40), "items", str(row["item"]))
        rows.append([item, *bars, _p(row["p_value"]), _p(row["q_value"]), _yes("differs")(row)])
    header = [shorten(name) for name in side_by_side] or ["Group", "Other group"]
    is_any = found["differs"][0].as_py()
    title = "Items on which groups differ most" if is_any else "Items with the smallest p-values"
    names = Chips(fit.data.scale.names, color_indices(fit.data.scale))
    table = SmallTable(["Item", *header, "P-value", "Q-value", "Differs"], rows)
    return [Heading(title), names, table]


def _bar(fit: Any, name: str, shares: Floats | None, *, named: bool) -> Part:
    """Return a distribution as a bar with one part per category."""
    if shares is None or not np.isfinite(shares).all():
        return DASH
    drawing = Drawing(_BAR_WIDTH, _BAR_HEIGHT)
    colors, left = color_indices(fit.data.scale), 0.0
    for category, color, share in zip(fit.data.scale.names, colors, shares.tolist(), strict=True):
        width = _BAR_WIDTH * min(max(share, 0.0), 1.0)
        tip = f"{shorten(name)}: {shorten(category)} {share:.0%}"
        drawing.rect(left, 0.0, width, _BAR_HEIGHT, f"at-k{color}", tip=tip)
        left += width
    svg = Markup(drawing.svg(f"Opinion of {shorten(name)}"))
    return [f"{shorten(name, 24)} ", svg] if named else svg


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
        "Machine": _name("machine"),
        "Labels": number("n_labels", "{:,}"),
        "Agrees with people": _interval("agreement", "{:.0%}"),
        "People with each other": number("people_agreement", "{:.0%}"),
        "Same as consensus": _interval("accuracy", "{:.0%}"),
        "A label counts": number("weight", "{:.2f}"),
        "May replace a person": lambda row: str(row["may_replace"]),
        "Winning rate": number("winning_rate", "{:.2f}"),
        "Advantage": number("advantage", "{:.2f}"),
        "p": number("p_value", "{:.2g}"),
        "People tested": number("n_people", "{:,}"),
    }
    warnings = [line.removeprefix("WARNING: ") for line in results.lines if "WARNING" in line]
    parts: list[Part] = [
        Text(_MACHINES.format(margin=results.facts.get("margin", 0.1))),
        *(Text(line, "note") for line in warnings),
        records_table(tables["machines"], columns),
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
    header, cells = ["Machine"], [_name("machine")]
    for key in rows[0]:
        effect = key.removesuffix("_effect")
        if key.startswith("people_") or (key != "side_bias" and effect == key):
            continue
        header += ["Side bias" if key == "side_bias" else f"Effect of {effect}", "of people"]
        cells += [_interval(key, "{:+.2f}"), number(f"people_{key}", "{:+.2f}")]
    header += ["Same in both orders", "Pairs in both orders"]
    cells += [number("consistency", "{:.0%}"), number("n_both_orders", "{:,}")]
    note = "Biases are log-odds of left over right for items of equal score; above 0 is left."
    table = SmallTable(header, [[cell(row) for cell in cells] for row in rows])
    return [table, Text(note, "quiet")]


def _machine_pairs(rows: Sequence[Row]) -> list[Part]:
    """Return the table of pairs of machines, strongest correlation first."""
    if not rows:
        return []
    ordered = sorted(rows, key=lambda row: -(row["correlation"] or 0.0))
    columns: dict[str, Cell] = {
        "Pair": lambda row: f"{_name('annotator')(row)} and {_name('other')(row)}",
        "Common items": number("n_items", "{:,}"),
        "Same label": number("agreement", "{:.0%}"),
        "Expected": number("expected", "{:.0%}"),
        "Correlation": _interval("correlation", "{:.2f}"),
        "p": number("p_value", "{:.2g}"),
        "Dependent": _yes("dependent"),
    }
    see = ": see dependence.csv of --out"
    shown = first_rows(ordered, columns, _MAX_PAIRS, "further pair", see, "note")
    return [Heading("Machines that err together"), Text(_TOGETHER), *shown]


def _confusion_charts(rows: Sequence[Row]) -> list[Chart]:
    """Return the confusion matrix of each machine, of the first ones."""
    names = list(dict.fromkeys(str(row["consensus"]) for row in rows))
    if not 1 < len(names) <= _MAX_CATEGORIES:
        return []
    charts = []
    by_machine = groupby(rows, key=lambda row: row["machine"])
    for k, (machine, found) in enumerate(islice(by_machine, _MAX_MATRICES)):
        grouped = list(found)
        share = _interval("share", "{:.0%}")
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
                tips=[
                    f"consensus {r['consensus']}, label {r['label']}: {share(r)}" for r in grouped
                ],
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
