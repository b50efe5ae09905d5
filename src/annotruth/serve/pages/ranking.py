"""The pages of comparisons: the ranking of items, and one item with its opponents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from annotruth.comparisons.table import LEFT, RIGHT, TIE
from annotruth.report.headings import RANK_HEADINGS
from annotruth.report.html import facts, figure, section
from annotruth.serve.pages import cells
from annotruth.serve.pages.item import section_of_content
from annotruth.serve.pages.layout import Frame, render
from annotruth.serve.pages.snapshot_tables import RankTables
from annotruth.serve.pages.table import Column, TableQuery, chosen_rows, paged_table, search_form

MAX_OPPONENTS = 200
"""How many opponents of an item its page shows."""

_COLUMNS = [
    Column("item", "Item"),
    Column("rank", "Rank", RANK_HEADINGS["rank"][1]),
    Column("score", "Score", RANK_HEADINGS["score"][1], right=True),
    Column("p_best", "P best", RANK_HEADINGS["p_best"][1], right=True, rank=1),
    Column("n_comparisons", "Votes", RANK_HEADINGS["n_comparisons"][1], right=True, rank=1),
    Column("won", "Won", RANK_HEADINGS["won"][1], right=True, rank=1),
    Column("lost", "Lost", RANK_HEADINGS["lost"][1], right=True, rank=1),
    Column("tied", "Tied", RANK_HEADINGS["tied"][1], right=True, rank=2),
    Column("part", "Part", RANK_HEADINGS["part"][1], right=True, rank=2),
]
_OPPONENT_COLUMNS = [
    Column("item", "Compared with", sorts=False),
    Column("rank", "Rank", "its rank", right=True, sorts=False),
    Column("won", "Won", "how often this item was preferred", right=True, sorts=False),
    Column("lost", "Lost", "how often the other was", right=True, sorts=False),
    Column("tied", "Tied", "how often neither was", right=True, sorts=False),
]


def ranking_query(path: str, query: Mapping[str, str]) -> TableQuery:
    """Return which items are asked for; the best first, if nothing else."""
    return TableQuery.parse(path, query, [column.key for column in _COLUMNS], "rank")


def ranking_page(frame: Frame, tables: RankTables, query: TableQuery) -> str:
    """Return the ranking of the items."""
    rows, total = chosen_rows(tables.items, query, ids="item")
    columns = [c for c in _COLUMNS if c.key != "part" or tables.fit.n_parts > 1]
    lines = [[_cell(frame, column.key, row) for column in columns] for row in rows.to_pylist()]
    parts = [
        '<section class="first">',
        search_form(query, "items", {}),
        paged_table("Ranking", columns, lines, query, total),
        "</section>",
        f"<section>{figure(tables.fit.plot.ranking())}</section>",
    ]
    return render(frame, "Ranking", *parts, tab="items", live=True)


def ranked_item_page(
    frame: Frame, item: str, tables: RankTables | None, content: Mapping[str, Any] | None
) -> str:
    """Return the page of an item of a project of comparisons."""
    code = None if tables is None else tables.item_code(item)
    parts = [section_of_content(content)]
    if tables is None or code is None:
        parts.append('<section class="first"><p>It is in no snapshot yet.</p></section>')
        return render(frame, item, *parts, tab="items", under="Item", live=True)
    row = tables.items.slice(code, 1).to_pylist()[0]
    known: list[tuple[str, object, str]] = [
        ("Rank", f"{row['rank']:,}", f"95% interval {row['rank_low']:,} to {row['rank_high']:,}"),
        ("Score", f"{row['score']:.2f}", f"95% interval {row['low']:.2f} to {row['high']:.2f}"),
        ("P best", cells.percent(row["p_best"]), "probability that its score is the highest"),
        (
            "Votes",
            f"{row['n_comparisons']:,}",
            f"{row['won']:,} won, {row['lost']:,} lost, {row['tied']:,} tied",
        ),
    ]
    parts.append(f'<section class="first">{facts(known)}</section>')
    query = TableQuery(path=frame.address("item", id=item), sort="")
    lines = _opponents(frame, tables, code)
    table = paged_table("Opponents", _OPPONENT_COLUMNS, lines[:MAX_OPPONENTS], query, len(lines))
    parts.append(section("opponents", "Against whom, best first", table))
    return render(frame, item, *parts, tab="items", under="Item", live=True)


def _opponents(frame: Frame, tables: RankTables, code: int) -> list[list[str]]:
    """Return one row per item that this one was compared with, best first."""
    data, n = tables.fit.data, tables.fit.data.n_items
    is_left, is_right = data.left == code, data.right == code

    def count(left: int, right: int) -> Any:
        """Count opponents by the outcome when this item is on the left and on the right."""
        as_left = data.right[is_left & (data.outcome == left)]
        as_right = data.left[is_right & (data.outcome == right)]
        return np.bincount(as_left, minlength=n) + np.bincount(as_right, minlength=n)

    won, lost, tied = count(LEFT, RIGHT), count(RIGHT, LEFT), count(TIE, TIE)
    rank, ids = tables.fit.ranking.rank, tables.items["item"]
    others = np.flatnonzero(won + lost + tied)
    return [
        [
            cells.link(frame.address("item", id=ids[k].as_py()), ids[k].as_py(), 40),
            f"{rank[k]:,}",
            *(f"{counts[k]:,}" for counts in (won, lost, tied)),
        ]
        for k in others[np.argsort(rank[others], kind="stable")].tolist()
    ]


def _cell(frame: Frame, key: str, row: Mapping[str, Any]) -> str:
    value = row[key]
    match key:
        case "item":
            return cells.link(frame.address("item", id=value), value, 40)
        case "rank":
            return (
                f'{value:,} <span class="quiet">{row["rank_low"]:,} to {row["rank_high"]:,}</span>'
            )
        case "score":
            return f'<span data-tip="95% interval {row["low"]:.2f} to {row["high"]:.2f}">{value:.2f}</span>'
        case "p_best":
            return cells.percent(value)
        case _:
            return f"{value:,}"
