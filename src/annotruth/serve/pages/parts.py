"""Parts of pages: cells, tables, forms; each is shown by the macro of its class's name.

`Frame` is what surrounds the content of a page, and `render` returns a whole page. A cell of a table
follows from the name of its column, which is the same in all tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup

from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.report.charts.drawing import Axis, Drawing
from annotruth.report.charts.over_time import short_day
from annotruth.report.render import Part, Renderer
from annotruth.serve.pages.static import SCRIPT, STYLE, static_path

PROJECTS = "/projects"
"""The address of the list of projects."""

_TABS = {
    "": "Overview",
    "annotators": "Annotators",
    "items": "Items",
    "queue": "Queue",
    "alerts": "Alerts",
    "settings": "Settings",
    "audit": "Audit log",
}
_RANKED_TABS = {**_TABS, "items": "Ranking"}
_GOOD = {"keep", "needs no more labels", "known truth", "serious", "delivered"}
_BAD = re.compile(
    r"(drop|divided|irregular|random|repeated|inverted|mixed|always|favours|failed|careless|consistently"
    r"|new$)"
)

_MARK_WIDTH, _MARK_HEIGHT = 96.0, 16.0
_BARS_HEIGHT = 30.0
_DIGITS = {"entropy": 2, "expectation": 2, "p_serious": 2, "agreement": 2, "gain": 3, "seconds": 1}


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What surrounds the content of a page: who looks at it, and at which project."""

    csrf: str = ""  # the token that forms carry; empty before the login
    project: str = ""  # empty on pages of no project
    kind: str = "labels"
    scope: str = "read"  # what the visitor's token allows
    n_alerts: int = 0  # of the project that nobody has seen
    colors: str = ""  # the style sheet with the colors of the project's categories

    @property
    def is_admin(self) -> bool:
        """Whether the visitor may change settings."""
        return self.scope == "admin"

    @property
    def is_ranking(self) -> bool:
        """Whether the project has comparisons instead of labels."""
        return self.kind == "comparisons"

    @property
    def unit(self) -> str:
        """What annotators give: labels or comparisons."""
        return "comparison" if self.is_ranking else "label"

    def address(self, tab: str = "", **query: Any) -> str:
        """Return the address of one of the project's pages."""
        path = f"{PROJECTS}/{quote(self.project)}" + (f"/{tab}" if tab else "")
        return f"{path}?{urlencode(query)}" if query else path

    def item(self, item: Any) -> PageLink:
        """Return a link to the page of an item."""
        return PageLink(self.address("item", id=item), str(item), 40)

    def annotator(self, annotator: Any, text: str = "", max_length: int = 40) -> PageLink:
        """Return a link to the page of an annotator."""
        address = self.address("annotator", id=annotator)
        return PageLink(address, text or str(annotator), max_length)

    def form(self, tab: str, *fields: Part, **options: Any) -> Form:
        """Return a form that posts its fields, with the CSRF token, to one of the project's pages."""
        return Form(self.address(tab), fields, csrf=self.csrf, **options)


@cache
def renderer() -> Renderer:
    """Return the renderer of pages."""
    return Renderer("annotruth.serve.pages")


def render(
    frame: Frame,
    title: str,
    *parts: Part,
    tab: str | None = None,
    under: str = "",
    notice: str = "",
    live: bool = False,
    every_label: bool = False,
) -> str:
    """Return a page: its parts under a heading.

    A live page follows the project, snapshot by snapshot; with ``every_label``, label by label.
    """
    styles = [STYLE, *([frame.colors] if frame.colors else [])]
    has_login = frame.csrf and frame.scope
    return renderer().page(
        "frame.html",
        frame=frame,
        title=title,
        parts=parts,
        tab=tab,
        tabs={} if not frame.project else _RANKED_TABS if frame.is_ranking else _TABS,
        under=under,
        notice=notice,
        live=live,
        every_label=every_label,
        home=PROJECTS,
        styles=[static_path(name) for name in styles],
        script=static_path(SCRIPT),
        log_out=[Form("/logout", csrf=frame.csrf, button="Log out")] if has_login else [],
    )


@dataclass(frozen=True)
class First:
    """A section without a heading of its own, such as the first one."""

    parts: Sequence[Part]
    style: str = "first"


@dataclass(frozen=True)
class Joined:
    """Parts with a text between them."""

    parts: Sequence[Part]
    between: str = " "


@dataclass(frozen=True)
class Tasks:
    """Lines, one under the other."""

    lines: Sequence[Part]


@dataclass(frozen=True)
class Rules:
    """Words of a table and what they mean, folded up."""

    summary: str
    rows: Mapping[Any, str]


@dataclass(frozen=True)
class Contents:
    """What an item is: names and values."""

    rows: Sequence[tuple[str, Part]]


@dataclass(frozen=True)
class Media:
    """An image, audio, video or link by URL."""

    kind: str
    url: str


@dataclass(frozen=True)
class PageLink:
    """A link; long texts are cut."""

    address: str
    text: str
    max_length: int = 60


@dataclass(frozen=True)
class Tag:
    """A word on a background, colored by whether it is good."""

    word: str

    @property
    def tone(self) -> str:
        """The class of the color."""
        return " good" if self.word in _GOOD else " bad" if _BAD.match(self.word) else ""


@dataclass(frozen=True)
class Moment:
    """A time in UTC, which the page's script shows in the visitor's time zone as a tip."""

    moment: datetime

    @property
    def time(self) -> datetime:
        """The time in UTC."""
        return self.moment.astimezone(UTC)

    @property
    def text(self) -> str:
        """The time in UTC, to the minute."""
        return f"{short_day(self.time)} {self.time:%Y, %H:%M}"


@dataclass(frozen=True)
class Category:
    """A category with its color."""

    name: str
    color: int


@dataclass(frozen=True)
class Wrapped:
    """A sentence in a narrow column."""

    text: str


@dataclass(frozen=True)
class Quiet:
    """Text that stands back."""

    text: str


@dataclass(frozen=True)
class Tipped:
    """A part that shows a tip."""

    content: Part
    tip: str


@dataclass(frozen=True)
class Interval:
    """A number, and a drawing of its interval."""

    value: str
    drawing: Markup
    tip: str


@dataclass(frozen=True)
class WholeTable:
    """A small table, whole; or what is said where it has no rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[Part]]
    empty: str = ""


@dataclass(frozen=True)
class Form:
    """A form that posts its fields, with the CSRF token if there is one."""

    action: str
    fields: Sequence[Part] = ()
    button: str = "Save"
    csrf: str = ""
    do: str = ""  # which of the forms of a page it is
    id: object = ""  # what the form is about
    label: str = ""  # what a screen reader says for the button, where its text is not enough
    confirm: str = ""  # a question that the browser asks first
    name: str = ""

    @property
    def hidden(self) -> dict[str, object]:
        """The fields that nobody sees."""
        fields = {"csrf": self.csrf, "do": self.do, "id": self.id}
        return {name: value for name, value in fields.items() if value != ""}


@dataclass(frozen=True)
class FormBox:
    """A form with one field under the other."""

    form: Form


@dataclass(frozen=True)
class AddForm:
    """A form that is folded up."""

    form: Form


@dataclass(frozen=True)
class Field:
    """A field of a form, with its title and a line below it."""

    name: str
    title: str
    value: object = ""
    kind: str = "text"
    tip: str = ""
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class TextArea:
    """A field of a form for several lines."""

    name: str
    title: str
    lines: Sequence[str]
    tip: str


@dataclass(frozen=True)
class ChoiceField:
    """A choice of a form: values and their texts."""

    name: str
    title: str
    options: Mapping[str, str]
    chosen: str = ""


@dataclass(frozen=True)
class CheckBoxes:
    """Boxes of a form that are ticked."""

    boxes: Mapping[str, str]


@dataclass(frozen=True)
class Secret:
    """What was just created, and its secret, which is shown once."""

    what: str
    text: str


def cell(frame: Frame, key: str, row: Mapping[str, Any]) -> Part:
    """Return a cell of a row, by the name of its column; nothing where it is missing."""
    value = row.get(key)
    if key == "rank":
        return [f"{value:,} ", Quiet(f"{row['rank_low']:,} to {row['rank_high']:,}")]
    if value is None or not isinstance(value, str | int | float):
        return "" if value is None else value  # a part
    match key:
        case "item" | "left" | "right":
            return frame.item(value)
        case "annotator":
            return frame.annotator(value)
        case "accuracy" | "reliability":
            return estimate(row, key)
        case "confidence" | "matches" | "p_best":
            return percent(float(value))
        case "status" | "behavior" | "verdict":
            return Tag(str(value))
        case "disputed":
            return Tag("disputed" if value else "")
        case "ask" | "seen":
            return "yes" if value else "no"
        case "score":
            return Tipped(f"{value:.2f}", f"95% interval {row['low']:.2f} to {row['high']:.2f}")
        case "why" | "reason":
            return Wrapped(str(value))
        case _ if key in _DIGITS:
            return number(float(value), _DIGITS[key])
        case _:
            return f"{value:,}" if isinstance(value, int) else str(value)


def number(value: float | None, digits: int = 2) -> str:
    """Return a number; nothing where it is missing."""
    return "" if value is None or not math.isfinite(value) else f"{value:,.{digits}f}"


def percent(value: float | None) -> str:
    """Return a share in percent; nothing where it is missing."""
    return "" if value is None or not math.isfinite(value) else f"{value:.0%}"


def moment(time: Any) -> Part:
    """Return a time; nothing where it is missing."""
    return "" if time is None else Moment(time)


def estimate(row: Mapping[str, Any], key: str) -> Part:
    """Return the accuracy or the reliability in a row of annotators, with its 95% interval.

    Of a model that flags people, the verdict says who is colored as a warning; of others
    `SPAMMER_BELOW`.
    """
    value, prefix = row[key], "accuracy_" if key == "accuracy" else ""
    if not math.isfinite(value):
        return ""
    low, high = row.get(f"{prefix}low"), row.get(f"{prefix}high")
    drawing = Drawing(_MARK_WIDTH, _MARK_HEIGHT)
    axis, y = Axis(0.0, 1.0, 5.0, _MARK_WIDTH - 5.0), _MARK_HEIGHT / 2
    drawing.line(5, y, _MARK_WIDTH - 5, y, "at-grid")
    known = low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
    is_bad = row["verdict"] == "drop"
    if row.get("accuracy") is None:
        limit = axis(SPAMMER_BELOW)
        drawing.line(limit, 2, limit, _MARK_HEIGHT - 2, "at-grid")
        is_bad = (high if known and high is not None else value) < SPAMMER_BELOW  # the verdict drop
    text = f"{value:.2f}"
    if known and low is not None and high is not None:
        css = "at-warn-range at-thick" if is_bad else "at-range at-thick"
        drawing.line(axis(low), y, axis(high), y, css)
        text += f" (95% interval {low:.2f} to {high:.2f})"
    drawing.circle(axis(value), y, 4, "at-warn" if is_bad else "at-mark")
    return Interval(f"{value:.2f}", Markup(drawing.svg(text)), text)


def bars(shares: Sequence[float], colors: Sequence[int], names: Sequence[str]) -> Part:
    """Return a distribution over the categories as small bars."""
    n = max(len(shares), 1)
    width = min(max(n * 16.0, 64.0), 112.0)
    drawing, step = Drawing(width, _BARS_HEIGHT), width / n
    drawing.line(0, _BARS_HEIGHT - 0.5, width, _BARS_HEIGHT - 0.5, "at-grid")
    for k, share in enumerate(shares):
        if share > 0.0:
            tall = max(share * (_BARS_HEIGHT - 2), 1.0)
            left = k * step + min(1.0, step / 8)
            room = max(step - min(2.0, step / 4), 0.8)
            drawing.rect(left, _BARS_HEIGHT - 1 - tall, room, tall, f"at-k{colors[k]}")
    first = sorted(range(len(shares)), key=lambda k: -shares[k])[:6]
    tip = " · ".join(f"{names[k]}: {shares[k]:.0%}" for k in first if shares[k] >= 0.005)
    return Tipped(Markup(drawing.svg("distribution")), tip)


def trend(values: Sequence[float | None]) -> Part:
    """Return shares from 0 to 1 over time as a small line."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return ""
    drawing = Drawing(_MARK_WIDTH, 24.0)
    x, y = Axis(0, len(known) - 1, 3.0, _MARK_WIDTH - 3.0), Axis(0.0, 1.0, 22.0, 2.0)
    drawing.line(0, y(SPAMMER_BELOW), _MARK_WIDTH, y(SPAMMER_BELOW), "at-limit")
    drawing.path([(x(k), y(value)) for k, value in enumerate(known)], "at-mark-line")
    tip = f"reliability over time: {known[0]:.2f} at first, {known[-1]:.2f} now"
    return Tipped(Markup(drawing.svg(tip)), tip)
