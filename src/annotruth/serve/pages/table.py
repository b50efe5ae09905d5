"""Tables of which the server sends one page at a time; headings are links that sort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import counted
from annotruth.kernels.arrays import Codes
from annotruth.labels.frames import as_arrow
from annotruth.report.charts.drawing import escaped

ROWS_PER_PAGE = 50

_MAX_SEARCH = 512


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    key, title, tip
        Its key in links that sort, its heading, and a sentence on it.
    right
        Whether its cells are numbers, which end at the right.
    sorts
        Whether the heading is a link that sorts.
    rank
        0: shown on every screen; 1: not on a phone; 2: on a large screen alone.

    Examples
    --------
    >>> Column("n_labels", "Labels", right=True).rank
    0
    """

    key: str
    title: str
    tip: str = ""
    right: bool = False
    sorts: bool = True
    rank: int = 0


@dataclass(frozen=True, kw_only=True)
class TableQuery:
    """Which page of a table is asked for, and in which order.

    Attributes
    ----------
    path
        The address of the page.
    sort, descending
        The key of the column to sort by.
    page
        Which page, from 1.
    search, pick
        A text that ids must contain; a word that one column must have.
    id
        The id of what the page is about, if anything.

    Examples
    --------
    >>> query = TableQuery.parse("/items", {"sort": "-add", "page": "2"}, ["item", "add"], "item")
    >>> query.sort, query.descending, query.page
    ('add', True, 2)
    >>> query.link(page=3)
    '/items?sort=-add&page=3'
    """

    path: str
    sort: str
    descending: bool = False
    page: int = 1
    search: str = ""
    pick: str = ""
    id: str = ""

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

    def link(self, *, page: int = 1, sort: str | None = None) -> str:
        """Return the address of another page or order."""
        order = ("-" if self.descending else "") + self.sort if sort is None else sort
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


def paged_table(
    name: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    query: TableQuery,
    total: int,
) -> str:
    """Return one page of a table: rows are cells of HTML, escaped already."""
    heads = "".join(_head(column, query) for column in columns)
    classes = [_classes(column) for column in columns]
    lines = []
    for row in rows:
        first, *rest = (f"{css}>{cell}" for css, cell in zip(classes, row, strict=True))
        lines.append(f'<tr><th scope="row"{first}</th>{"".join(f"<td{c}</td>" for c in rest)}</tr>')
    body = (
        "".join(lines) or f'<tr><td class="empty" colspan="{len(columns)}">nothing here</td></tr>'
    )
    return (
        f'<div class="paged" role="region" aria-label="{escaped(name)}" tabindex="0"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>{_pager(query, total)}"
    )


def _classes(column: Column) -> str:
    names = (["right"] if column.right else []) + ([f"rank{column.rank}"] if column.rank else [])
    return f' class="{" ".join(names)}"' if names else ""


def _head(column: Column, query: TableQuery) -> str:
    """Return a heading; a second click on it reverses the order."""
    tip = f' data-tip="{escaped(column.tip)}"' if column.tip else ""
    classes = _classes(column)
    if not column.sorts:
        return f'<th scope="col"{classes}{tip}>{escaped(column.title)}</th>'
    is_sorted = query.sort == column.key
    direction = "descending" if query.descending else "ascending"
    state = f' aria-sort="{direction}"' if is_sorted else ""
    # Numbers are first sorted from the largest.
    descending = not query.descending if is_sorted else column.right
    link = query.link(sort=("-" if descending else "") + column.key)
    return (
        f'<th scope="col"{classes}{state}><a href="{escaped(link)}"{tip} '
        f'id="sort-{column.key}">{escaped(column.title)}</a></th>'
    )


def _pager(query: TableQuery, total: int) -> str:
    query = query.within(total)
    n_pages = -(-total // ROWS_PER_PAGE)
    if n_pages <= 1:
        return f'<p class="pager">{counted(total, "row")}</p>'
    end = min(query.start + ROWS_PER_PAGE, total)
    parts = [f"<span>{query.start + 1:,} to {end:,} of {total:,}</span>"]
    pages = {"first": 1, "previous": query.page - 1, "next": query.page + 1, "last": n_pages}
    for name, page in pages.items():
        if page != query.page and 1 <= page <= n_pages:
            parts.append(f'<a id="page-{name}" href="{escaped(query.link(page=page))}">{name}</a>')
    return f'<nav class="pager" aria-label="Pages of the table">{"".join(parts)}</nav>'


def search_form(
    query: TableQuery, what: str, picks: Mapping[str, str], all_text: str = "all"
) -> str:
    """Return a form that searches ids and picks rows by a word; it needs no script."""
    options = "".join(
        f'<option value="{escaped(word)}"{" selected" if word == query.pick else ""}>'
        f"{escaped(text)}</option>"
        for word, text in {"": all_text, **picks}.items()
    )
    order = ("-" if query.descending else "") + query.sort
    choice = f'<select name="pick" aria-label="Show">{options}</select>' if picks else ""
    return (
        f'<form class="tools" method="get" action="{escaped(query.path)}" role="search">'
        f'<input type="search" name="search" value="{escaped(query.search)}" '
        f'placeholder="Search" aria-label="Search {escaped(what)}">{choice}'
        f'<input type="hidden" name="sort" value="{escaped(order)}">'
        '<button type="submit">Show</button></form>'
    )


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a small table whole: the header is text, the cells are HTML, escaped already."""
    heads = "".join(f'<th scope="col">{escaped(text)}</th>' for text in header)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="plain"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>'
        "</div>"
    )
