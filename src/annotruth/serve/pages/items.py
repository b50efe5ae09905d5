"""The page of items: labels, how certain they are, and which need more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotruth.advice.items import ITEM_STATUS
from annotruth.report.charts.drawing import escaped
from annotruth.report.headings import HEADINGS, READOUT_TIPS
from annotruth.serve.pages import cells
from annotruth.serve.pages.layout import Frame, render
from annotruth.serve.pages.snapshot_tables import CODE, LabelTables
from annotruth.serve.pages.table import Column, TableQuery, chosen_rows, paged_table, search_form


def item_columns(tables: LabelTables) -> list[Column]:
    """Return the columns of the table of items: what the model estimates."""
    wanted = [
        Column("item", "Item"),
        Column("distribution", "Distribution", HEADINGS["distribution"][1], sorts=False, rank=1),
        Column("label", "Label", HEADINGS["label"][1]),
        Column("disputed", *HEADINGS["disputed"], rank=1),
        Column("expectation", "Score", HEADINGS["expectation"][1], right=True, rank=1),
        Column("confidence", "Confidence", READOUT_TIPS[tables.fit.readout], right=True),
        Column("entropy", "Difficulty", HEADINGS["entropy"][1], right=True, rank=2),
        Column("n_labels", "Labels", HEADINGS["n_labels"][1], right=True, rank=1),
        Column("status", "Status", "whether more labels would help, by the rules below the table"),
        Column("add", "Add", HEADINGS["add"][1], right=True, rank=1),
        Column("why", "Why", HEADINGS["why"][1], sorts=False, rank=2),
    ]
    known = set(tables.items.column_names)
    if tables.fit.disputed is None or not tables.fit.disputed.any():
        known.discard("disputed")
    if tables.fit.distribution is not None:
        known.add("distribution")
    return [column for column in wanted if column.key in known]


def item_query(path: str, query: Mapping[str, str], tables: LabelTables) -> TableQuery:
    """Return which items are asked for; the most difficult first, if nothing else."""
    keys = [column.key for column in item_columns(tables) if column.sorts]
    return TableQuery.parse(path, query, keys, "-entropy")


def items_page(frame: Frame, tables: LabelTables, query: TableQuery) -> str:
    """Return the page of items."""
    rows, total = chosen_rows(tables.items, query, ids="item", picked="status")
    columns = item_columns(tables)
    listed = rows.to_pylist()
    shares = distributions(tables, [row[CODE] for row in listed])
    lines = [
        [_cell(frame, tables, column.key, row, share) for column in columns]
        for row, share in zip(listed, shares, strict=True)
    ]
    rules = "".join(f"<dt>{cells.tag(k)}</dt><dd>{escaped(v)}</dd>" for k, v in ITEM_STATUS.items())
    parts = [
        '<section class="first">',
        search_form(query, "items", {word: word for word in ITEM_STATUS}, "all"),
        paged_table("Items", columns, lines, query, total),
        f'<details class="rules"><summary>Rules of the status</summary><dl>{rules}</dl></details>',
        "</section>",
    ]
    return render(frame, "Items", *parts, tab="items", live=True)


def distributions(tables: LabelTables, codes: Sequence[int]) -> list[list[float]]:
    """Return the recovered distributions of some items, one share per category."""
    theta = tables.fit.distribution
    if theta is None:
        return [[] for _ in codes]
    n = len(tables.names)
    rows = []
    for code in codes:
        entries = slice(theta.ptr[code], theta.ptr[code + 1])
        shares = [0.0] * n
        for category, share in zip(
            theta.category[entries].tolist(), theta.probability[entries].tolist(), strict=True
        ):
            shares[category] = share
        rows.append(shares)
    return rows


def _cell(
    frame: Frame, tables: LabelTables, key: str, row: Mapping[str, Any], shares: Sequence[float]
) -> str:
    value = row.get(key)
    match key:
        case "item":
            return cells.link(frame.address("item", id=value), value, 40)
        case "distribution":
            return cells.bars(shares, tables.colors, tables.names)
        case "label":
            return cells.category(row["label"], tables.colors, tables.names)
        case "expectation" | "entropy":
            return cells.number(value)
        case "confidence":
            return cells.percent(value)
        case "status":
            return cells.tag(value)
        case "disputed":
            return cells.tag("disputed") if value else ""
        case "n_labels" | "add":
            return f"{value:,}"
        case _:
            return f'<span class="wrapped">{escaped(value)}</span>'
