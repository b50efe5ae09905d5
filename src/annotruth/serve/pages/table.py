"""Tables of which the server sends one page at a time; headings are links that sort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from annotruth.errors import counted
from annotruth.kernels.arrays import Codes
from annotruth.observations.frames import as_arrow
from annotruth.report.render import Part
from annotruth.serve.pages.parts import Frame, cell

ROWS_PER_PAGE = 50

_MAX_SEARCH = 512


class Column(NamedTuple):
    """A column of a table."""

    key: str  # its key in links that sort, its heading, and a sentence on it
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
    sort: str  # the key of the column to sort by
    descending: bool = False
    page: int = 1  # which page, from 1
    search: str = ""  # a text that ids must contain; a word that one column must have
    pick: str = ""
    id: str = ""  # the id of what the page is about, if anything

    @classmethod
    def parse(
        cls, path: str, query: Mapping[str, str], keys: Iterable[str], default: str
    ) -> TableQuery:
        """Read it from a request; what is not understood is ignored.

        ``default`` is a key, with a minus sign in front for descending order.
        """
        sort = query.get("sort", "")
        if sort.removeprefix("-") not in set(keys):
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
) -> tuple[pa.Table, int]:
    """Return the rows of a table that a page shows, and how many rows the query has in all.

    ``ids`` is the column that is searched, ``picked`` the one that must have the picked word.
    """
    if query.search:
        text = table[ids].cast(pa.string())
        table = table.filter(pc.match_substring(text, query.search, ignore_case=True))
    if query.pick and picked in table.column_names:
        table = table.filter(pc.equal(table[picked], query.pick))
    total = table.num_rows
    rows = _order(table[query.sort], descending=query.descending)
    start = query.within(total).start
    return table.take(as_arrow(rows[start : start + ROWS_PER_PAGE])), total


def _order(column: pa.ChunkedArray, *, descending: bool) -> Codes:
    """Return the order of a column; what is missing comes last."""
    order = "descending" if descending else "ascending"
    indices = pc.sort_indices(column, sort_keys=[("", order)])
    return np.asarray(indices, dtype=np.int64)


@dataclass(frozen=True)
class PagedTable:
    """One page of a table: rows are cells."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Part]]
    query: TableQuery
    total: int

    def sort_link(self, column: Column) -> str:
        """Return the address of the order by a column; a second click on it reverses the order."""
        is_sorted = self.query.sort == column.key
        # Numbers are first sorted from the largest.
        descending = not self.query.descending if is_sorted else column.right
        return self.query.link(sort=("-" if descending else "") + column.key)

    @property
    def css(self) -> list[Markup]:
        """The attributes with the classes of each column's cells."""
        return [column.css for column in self.columns]

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


def paged_table(
    frame: Frame,
    name: str,
    columns: Sequence[Column],
    rows: Iterable[Mapping[str, Any]],
    query: TableQuery,
    total: int,
) -> PagedTable:
    """Return one page of a table; its cells follow from the names of the columns."""
    lines = [[cell(frame, column.key, row) for column in columns] for row in rows]
    return PagedTable(name, columns, lines, query, total)


@dataclass(frozen=True)
class SearchForm:
    """A form that searches ids and picks rows by a word."""

    query: TableQuery
    what: str
    words: Iterable[str] = ()
    all_text: str = "all"

    @property
    def options(self) -> dict[str, str]:
        """The words to pick rows by, and their texts."""
        words = {word: word for word in self.words}
        return {"": self.all_text, **words} if words else {}
