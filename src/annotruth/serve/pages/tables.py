"""Tables of a snapshot, made once per version, and the page of a table that somebody asks for.

The server sends one page at a time; headings are links that sort.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from annotruth.errors import counted
from annotruth.kernels.arrays import Codes
from annotruth.models.result import Fit
from annotruth.observations.encode import match_ids, to_text
from annotruth.observations.frames import as_arrow
from annotruth.report.charts.chart import color_indices
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.charts.rank_charts import RankCharts, outcome_counts
from annotruth.report.consensus import Consensus
from annotruth.serve.web.results import LoadedSnapshot, sorted_part

ROWS_PER_PAGE = 50

_MAX_SEARCH = 512

CODE = "code"
"""The column with the code of each item or annotator in the fit."""


@dataclass(frozen=True, eq=False)
class _Tables:
    """The tables of a snapshot as pages show them: ids are text, and each row has its code."""

    loaded: LoadedSnapshot

    @property
    def fit(self) -> Fit[Any]:
        """The fit."""
        return self.loaded.fit

    @property
    def advice(self) -> Any:
        """The advice drawn from it."""
        return self.loaded.advice

    @cached_property
    def annotators(self) -> pa.Table:
        """One row per annotator: reliability, behavior and verdict."""
        table = self.loaded.annotators.table
        return _with(table, annotator=to_text(table["annotator"]), code=np.arange(len(table)))

    def item(self, id_: str) -> dict[str, Any] | None:
        """Return the row of an item; None if it is not in the snapshot."""
        return _row(self.items, self.loaded.items.numbers.get(id_))  # type: ignore[attr-defined]

    def annotator(self, id_: str) -> dict[str, Any] | None:
        """Return the row of an annotator; None if they are not in the snapshot."""
        return _row(self.annotators, self.loaded.annotators.numbers.get(id_))


class LabelSnapshotTables(_Tables):
    """The tables of a fit of labels."""

    @cached_property
    def names(self) -> list[str]:
        """The names of the categories."""
        names: list[str] = self.fit.data.scale.names
        return names

    @cached_property
    def colors(self) -> list[int]:
        """The index of each category's color."""
        return color_indices(self.fit.data.scale)

    @cached_property
    def consensus(self) -> Consensus:
        """The labels beside the recovered ones."""
        return Consensus(self.fit)

    @cached_property
    def charts(self) -> FitCharts:
        """The charts of the fit."""
        return FitCharts(self.fit)

    @cached_property
    def items(self) -> pa.Table:
        """One row per item: its results and whether it needs labels."""
        table = self.loaded.items.table
        own: dict[str, Any] = {"entropy": self.consensus.difficulty, "code": np.arange(len(table))}
        if self.fit.label is not None:
            own["label"] = self.fit.label  # their order is that of the scale
        return _with(table, item=to_text(table["item"]), **own)

    @cached_property
    def annotators(self) -> pa.Table:
        """One row per annotator: reliability, behavior, verdict, and matches with recovered labels."""
        return _with(super().annotators, matches=self.consensus.match_rate)

    def labels_of_item(self, code: int) -> Codes:
        """Return the places of an item's labels in the fit."""
        ends = self.fit.data.cell_ptr[self.fit.data.item_ptr[code : code + 2]]
        return np.arange(ends[0], ends[1])


class RankTables(_Tables):
    """The tables of a ranking."""

    @cached_property
    def charts(self) -> RankCharts:
        """The charts of the ranking."""
        return RankCharts(self.fit)

    @cached_property
    def items(self) -> pa.Table:
        """One row per item: score, rank, wins and losses."""
        table = self.loaded.items.table
        code = match_ids(table["item"].combine_chunks(), self.fit.data.items)
        won, lost, tied = (each[code] for each in outcome_counts(self.fit))
        own = {"won": won, "lost": lost, "tied": tied, "part": self.fit.part[code] + 1}
        return _with(table, item=to_text(table["item"]), code=code, **own)


SnapshotTables = LabelSnapshotTables | RankTables


def _with(table: pa.Table, **columns: Any) -> pa.Table:
    """Return a table with further columns, or with others in the place of its own."""
    for name, values in columns.items():
        added = as_arrow(values) if isinstance(values, np.ndarray) else values
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, added)
        else:
            table = table.append_column(name, added)
    return table


def _row(table: pa.Table, number: int | None) -> dict[str, Any] | None:
    return None if number is None else table.slice(number, 1).to_pylist()[0]


class Column(NamedTuple):
    """A column of a table."""

    key: str  # its key in rows and in links that sort, its heading, and a sentence on it
    title: str
    tip: str = ""
    right: bool = False  # whether its cells are numbers, which end at the right
    sorts: bool = True  # whether the heading is a link that sorts
    rank: int = 0  # 0: shown on every screen; 1: not on a phone; 2: on a large screen alone

    @property
    def css(self) -> Markup:
        """The attribute with the classes of its cells."""
        names = (["right"] if self.right else []) + ([f"rank{self.rank}"] if self.rank else [])
        return Markup(' class="{}"').format(" ".join(names)) if names else Markup("")


@dataclass(frozen=True, kw_only=True)
class TableQuery:
    """Which page of a table is asked for, and in which order."""

    path: str  # the address of the page
    sort: str = ""  # the key of the column to sort by
    descending: bool = False
    page: int = 1  # which page, from 1
    search: str = ""  # a text that ids must contain; a word that one column must have
    pick: str = ""
    id: str = ""  # the id of what the page is about, if anything

    @classmethod
    def parse(
        cls, path: str, query: Mapping[str, str], columns: Iterable[Column] = (), default: str = ""
    ) -> TableQuery:
        """Read it from a request; what is not understood is ignored.

        ``default`` is a key, with a minus sign in front for descending order.
        """
        sort = query.get("sort", "")
        if sort.removeprefix("-") not in {each.key for each in columns if each.sorts}:
            sort = default
        number = query.get("page", "1")
        page = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 1
        return cls(
            path=path,
            sort=sort.removeprefix("-"),
            descending=sort.startswith("-"),
            page=max(page, 1),
            search=query.get("search", "").replace("\0", "")[:_MAX_SEARCH],
            pick=query.get("pick", "")[:60],
            id=query.get("id", ""),
        )

    @property
    def start(self) -> int:
        """The first row of the page."""
        return (self.page - 1) * ROWS_PER_PAGE

    @property
    def order(self) -> str:
        """The key of the column to sort by, with a minus sign in front for descending order."""
        return ("-" if self.descending else "") + self.sort

    def link(self, *, page: int = 1, sort: str | None = None) -> str:
        """Return the address of another page or order."""
        order = self.order if sort is None else sort
        given = {"id": self.id, "search": self.search, "pick": self.pick, "sort": order}
        kept = {name: text for name, text in given.items() if text}
        return f"{self.path}?{urlencode(kept | ({'page': page} if page > 1 else {}))}"

    def within(self, total: int) -> TableQuery:
        """Return the query with its page among those that exist."""
        return replace(self, page=max(min(self.page, -(-total // ROWS_PER_PAGE)), 1))


def chosen_rows(
    table: pa.Table, query: TableQuery, *, ids: str, picked: str = ""
) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of a table that a page shows, and how many rows the query has in all.

    ``ids`` is the column that is searched, ``picked`` the one that must have the picked word. What is
    missing comes last in either order.
    """
    if query.search:
        text = table[ids].cast(pa.string())
        table = table.filter(pc.match_substring(text, query.search, ignore_case=True))
    if query.pick and picked in table.column_names:
        table = table.filter(pc.equal(table[picked], query.pick))
    start = query.within(table.num_rows).start
    chosen = sorted_part(table, query.sort, start, ROWS_PER_PAGE, descending=query.descending)
    return chosen.to_pylist(), table.num_rows


@dataclass(frozen=True)
class PagedTable:
    """One page of a table; the template makes a cell of each value, by the key of its column."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    query: TableQuery
    total: int

    def sort_link(self, column: Column) -> str:
        """Return the address of the order by a column; a second click on it reverses the order."""
        is_sorted = self.query.sort == column.key
        # Numbers are first sorted from the largest.
        descending = not self.query.descending if is_sorted else column.right
        return self.query.link(sort=("-" if descending else "") + column.key)

    @property
    def range(self) -> str:
        """Which rows are shown."""
        if not self.pages:
            return counted(self.total, "row")
        start = self.query.within(self.total).start
        return f"{start + 1:,} to {min(start + ROWS_PER_PAGE, self.total):,} of {self.total:,}"

    @property
    def pages(self) -> dict[str, str]:
        """The addresses of other pages; none if there is one page."""
        page, n_pages = self.query.within(self.total).page, -(-self.total // ROWS_PER_PAGE)
        pages = {"first": 1, "previous": page - 1, "next": page + 1, "last": n_pages}
        return {
            name: self.query.link(page=number)
            for name, number in pages.items()
            if n_pages > 1 and number != page and 1 <= number <= n_pages
        }
