"""One renderer for reports and the service's pages: parts are data, templates show them.

A part is a text, a list of parts, or an object of a class below or of `Chart`. For every class
there is a macro of its name in ``templates/parts.html``. All text is escaped there, so ids and
labels never become markup; only what templates and drawings write is HTML.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from annotruth.errors import counted, shorten
from annotruth.report.charts.chart import NARROW_WIDTH
from annotruth.report.charts.drawing import without_control
from annotruth.report.tables import PageTable

Part: TypeAlias = Any
"""A text, a list of parts, a `Chart`, or an object with a macro of its class's name."""

Fact: TypeAlias = tuple[str, object, str]
"""A name, a large value, and a note on it."""

DASH = "\N{EN DASH}"

_SPACES = re.compile(r"\s+")
_CODE = re.compile("`([^`]+)`")
_MAX_CHIPS = 16
# Of large tables on paper: the kinds of cells that are shown, and how many columns and rows.
_AS_TEXT = ("id", "word", "share", "count", "number", "range")
_MAX_COLUMNS, _MAX_ROWS = 7, 30


@dataclass(frozen=True)
class Tag:
    """Text in an HTML element."""

    name: str
    text: object


Strong = partial(Tag, "b")
"""Text in bold letters."""

CodeText = partial(Tag, "code")
"""Text as one types it."""

Heading = partial(Tag, "h3")
"""A heading within a section."""


@dataclass(frozen=True)
class Link:
    """A link to a section of the page."""

    text: str
    section: str


@dataclass(frozen=True)
class Opener:
    """A text that opens a row of one of the page's tables, by its id."""

    text: str
    table: str
    row: str


@dataclass(frozen=True)
class Text:
    """A paragraph: plain, or of the style "lead", "quiet" or "note"."""

    content: Part
    style: str = ""


@dataclass(frozen=True)
class Bullets:
    """A list of texts."""

    lines: Sequence[Part]


@dataclass(frozen=True)
class Facts:
    """Names with large values, and a note on each."""

    rows: Sequence[Fact]


@dataclass(frozen=True)
class Settings:
    """Names with small values."""

    options: Mapping[str, object]


@dataclass(frozen=True)
class Chips:
    """The first categories with their colors, and how many more there are."""

    names: Sequence[str]
    colors: Sequence[int]

    @property
    def shown(self) -> list[tuple[str, int]]:
        """The names, shortened, and the colors that are shown."""
        names = map(shorten, self.names[:_MAX_CHIPS])
        return list(zip(names, self.colors, strict=False))


@dataclass(frozen=True)
class SideBySide:
    """Figures, or a figure and other parts, side by side where there is room."""

    parts: Sequence[Part]


@dataclass(frozen=True)
class Beside:
    """Several parts in one column of `SideBySide`."""

    parts: Sequence[Part]


@dataclass(frozen=True)
class SmallTable:
    """A small table whole, whose first column names the rows; those of ``minor`` need a large screen."""

    header: Sequence[str]
    rows: Sequence[Sequence[Part]]
    style: str = ""
    minor: Sequence[int] = ()


@dataclass(frozen=True)
class DataTable:
    """A large table, which the page's script sorts, searches, exports and shows a screen at a time."""

    name: str
    title: str
    table: PageTable | None = None


@dataclass(frozen=True)
class CountLine:
    """A count with a button that shows its rows, ``table|column|word``, and what follows it."""

    show: str
    count: int
    rest: Part


@dataclass(frozen=True)
class NamedRows:
    """Names, one per line, with what is said of each; long names are cut, with the whole as a tip."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """A question of the first screen with its answer in lines; empty lines are left out."""

    question: str
    lines: Sequence[Part]


@dataclass(frozen=True)
class FirstScreen:
    """Whether to trust the results, facts, what to do, and the rules behind them."""

    question: str
    trust: Part
    facts: Facts
    blocks: Sequence[Answer]
    rules: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Section:
    """A section of a page: its id, its heading, its parts, and the text of the link to it.

    ``long`` sections may break across sheets of paper.
    """

    name: str
    title: str
    parts: Sequence[Part]
    link: str = ""
    long: bool = False

    def find(self, kind: type) -> Iterator[Any]:
        """Return the parts of a kind, wherever they stand in the section."""
        return _find(self.parts, kind)


def _find(part: Part, kind: type) -> Iterator[Any]:
    if isinstance(part, kind):
        yield part
    if isinstance(part, (list, tuple)):
        for each in part:
            yield from _find(each, kind)
    elif isinstance(part, (SideBySide, Beside)):
        yield from _find(part.parts, kind)


class Renderer:
    """Templates of the report, and of further packages with a folder ``templates``.

    A package adds macros for parts of its own in a template ``parts.html``; ``plain`` chooses those
    of the report for programs that run no scripts.
    """

    def __init__(self, *packages: str, plain: bool = False) -> None:
        names = [*packages, "annotruth.report"]
        loaders = [PackageLoader(name) for name in names]
        self.environment = Environment(
            loader=ChoiceLoader(loaders),
            autoescape=True,
            finalize=_on_one_line,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.globals |= {"show": self.show, "narrow_width": NARROW_WIDTH}
        self.environment.globals |= {"first_rows": first_rows}
        self.environment.filters |= {"with_code": with_code, "shorten": shorten}
        self._macros: dict[str, Any] = {}
        for loader in reversed(loaders):
            if "parts.html" in loader.list_templates():
                template = loader.load(self.environment, "parts.html", self.environment.globals)
                self._macros |= vars(template.module)
        if plain:
            self._macros |= vars(self.environment.get_template("plain.html").module)

    def show(self, part: Part) -> Markup:
        """Return a part as HTML."""
        shown, left = Markup(""), [part]
        while left:
            one = left.pop()
            if isinstance(one, (list, tuple)):
                left.extend(reversed(one))
            elif isinstance(one, str) or hasattr(one, "__html__"):
                shown += escape(_on_one_line(one))
            else:
                shown += self._macros[type(one).__name__](one)
        return shown

    def page(self, template: str, **values: Any) -> str:
        """Return a page: a template filled with values."""
        return self.environment.get_template(template).render(**values)


@cache
def renderer() -> Renderer:
    """Return the renderer of reports."""
    return Renderer()


@cache
def plain_renderer() -> Renderer:
    """Return the renderer of reports for programs that run no scripts."""
    return Renderer(plain=True)


def with_code(text: str) -> Markup:
    """Return text escaped, in which what stands between backticks is code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(_on_one_line(text)))))


def _on_one_line(value: object) -> object:
    """Return text on one line, without what XML cannot hold; HTML as it is."""
    if hasattr(value, "__html__"):
        return value
    return without_control(_SPACES.sub(" ", str(value)))


def as_sentence(text: str) -> str:
    """Return text with a capital letter and a full stop; nothing of nothing."""
    return f"{text[0].upper()}{text[1:]}." if text else ""


def figure(value: float | None, digits: int = 2) -> str:
    """Return a number; a dash where there is none."""
    return DASH if value is None or math.isnan(value) else f"{value:.{digits}f}"


def rows_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    most: int = 10**6,
    unit: str = "further row",
    see: str = "",
) -> list[Part]:
    """Return the first rows as a small table, and how many more there are.

    ``columns``: templates of a row's values by heading, such as "{share:.0%} ({low:.0%} to {high:.0%})".
    """
    cells = [[fill(template, row) for template in columns.values()] for row in rows[:most]]
    table, more = SmallTable(list(columns), cells), len(rows) - most
    return [table, Text(f"And {counted(more, unit)}{see}.", "quiet")] if more > 0 else [table]


def first_rows(table: PageTable) -> list[Part]:
    """Return the first rows of a large table, with the columns that a sheet of paper has room for."""
    shown = [
        each
        for each in table.columns
        if not each["hidden"] and each["kind"] in _AS_TEXT and each["key"] not in ("reason", "why")
    ]
    kept = sorted(shown, key=lambda column: column["rank"])[:_MAX_COLUMNS]
    values = next((c["values"] for c in table.columns if c["key"] == table.sort_by), None)
    order = list(range(table.rows))
    if values is not None:
        sign = -1 if table.descending else 1
        order.sort(key=lambda row: (values[row] is None, sign * (values[row] or 0)))
    columns = [each for each in shown if each in kept]
    rows = [[_as_text(each, row) for each in columns] for row in order[:_MAX_ROWS]]
    parts: list[Part] = [SmallTable([each["title"] for each in columns], rows)]
    if table.total > len(rows):
        parts.append(Text(f"The first {len(rows)} of {counted(table.total, 'row')}.", "quiet"))
    return parts


def _as_text(column: Mapping[str, Any], row: int) -> str:
    """Return a cell of a large table as text."""
    value = column["values"][row]
    if value is None:
        return DASH
    if column["kind"] == "word":
        return shorten(column["names"][value], 40)
    if column["kind"] == "share":
        return f"{value:.0%}"
    if isinstance(value, str):
        return shorten(value, 40)
    return f"{value:,.{column.get('digits', 0)}f}" if column["kind"] != "id" else str(value)


def fill(template: str, row: Mapping[str, Any]) -> str:
    """Return a template filled with a row; a dash where its value is missing.

    Where the ends of an interval are missing, what stands in brackets is left out.
    """
    shown = {key: _as_shown(value) for key, value in row.items()}
    for some in (template, template.partition(" (")[0]):
        try:
            return some.format(**shown)
        except (KeyError, TypeError):  # None has no format
            continue
    return DASH


def _as_shown(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return shorten(value, 60) if isinstance(value, str) else value
