"""What all pages share: their frame, static files, templates, and small drawings in tables.

What pages have in common is in `templates/components.html`; the content of tables' cells follows there
from the names of the columns. Addresses of static files have a hash of their content: browsers keep them
for a year, and another version of the package has other addresses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from markupsafe import Markup

from annotruth.errors import counted
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.observations import Scale
from annotruth.report.charts.chart import CLASS_COLORS, category_colors, color_rules
from annotruth.report.charts.drawing import Axis, Drawing
from annotruth.report.charts.panels import short_day
from annotruth.report.page import asset, page_style, script_of
from annotruth.report.render import Renderer

STATIC = "/static"
"""Where static files are served."""

STYLE, SCRIPT = "serve.css", "serve.js"

_COLORS = re.compile(r"ordinal-([1-9]\d?)\.css")

PROJECTS = "/projects"
"""The address of the list of projects."""

_TABS = {
    "": "Overview",
    "annotators": "Annotators",
    "items": "Items",
    "queue": "Queue",
    "alerts": "Alerts",
    "settings": "Settings",
}
_GOOD = {"keep", "needs no more labels", "known truth", "serious", "delivered"}
_BAD = re.compile(
    r"(drop|divided|irregular|random|repeated|inverted|mixed|always|favours|failed|careless|consistently"
    r"|new$)"
)
_DIGITS = {"entropy": 2, "expectation": 2, "p_serious": 2, "agreement": 2, "gain": 3, "seconds": 1}
_MARK_WIDTH, _MARK_HEIGHT, _BARS_HEIGHT = 96.0, 16.0, 30.0


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
    def is_ranking(self) -> bool:
        """Whether the project has comparisons instead of labels."""
        return self.kind == "comparisons"

    @property
    def unit(self) -> str:
        """What annotators give: labels or comparisons."""
        return "comparison" if self.is_ranking else "label"

    @property
    def tabs(self) -> dict[str, str]:
        """The names of the project's pages; none on pages of no project."""
        return _TABS | {"items": self.items_title} if self.project else {}

    @property
    def items_title(self) -> str:
        """The heading of the page of items."""
        return "Ranking" if self.is_ranking else "Items"

    def address(self, tab: str = "", **query: Any) -> str:
        """Return the address of one of the project's pages."""
        path = f"{PROJECTS}/{quote(self.project)}" + (f"/{tab}" if tab else "")
        return f"{path}?{urlencode(query)}" if query else path


def render(frame: Frame, template: str, title: str, **values: Any) -> str:
    """Return a page: a template filled with values.

    A page with ``live=True`` follows the project, snapshot by snapshot; with ``every_label=True``,
    label by label.
    """
    styles = [STYLE, *([frame.colors] if frame.colors else [])]
    page = {
        "frame": frame,
        "title": title,
        "styles": [static_path(name) for name in styles],
        "script": static_path(SCRIPT),
    }
    return _renderer().page(template, **page, **values)


def list_page(frame: Frame, title: str, **values: Any) -> str:
    """Return a page with one table, and what is given of that which may belong to it."""
    return render(frame, "list.html", title, **values)


def message_page(title: str, text: str) -> str:
    """Return a page with one message, such as that of an error."""
    return render(Frame(scope=""), "frame.html", title, text=text, with_link=True)


def login_page(*, wrong: bool = False) -> str:
    """Return the form that logs in with a token.

    A link that `annotruth serve` prints has the token behind ``#``, which browsers do not send;
    the page's script puts it into the form.
    """
    notice = "This token is unknown, revoked or expired." if wrong else ""
    return render(Frame(scope=""), "frame.html", "Log in", login=True, notice=notice)


@cache
def _renderer() -> Renderer:
    made = Renderer("annotruth.serve.pages")
    made.environment.globals["digits"] = _DIGITS
    made.environment.filters |= {
        "counted": counted,
        "estimate": estimate,
        "minute": minute,
        "number": number,
        "percent": percent,
        "tone": _tone,
        "without_secrets": _without_secrets,
    }
    return made


def minute(time: datetime) -> str:
    """Return a time in UTC, to the minute; the page's script shows it in the visitor's time zone."""
    return f"{short_day(time)} {time:%Y, %H:%M}"


def number(value: float | None, digits: int = 2) -> str:
    """Return a number; nothing where it is missing."""
    return "" if value is None or not math.isfinite(value) else f"{value:,.{digits}f}"


def percent(value: float | None) -> str:
    """Return a share in percent; nothing where it is missing."""
    return "" if value is None or not math.isfinite(value) else f"{value:.0%}"


def _tone(word: str) -> str:
    return " good" if word in _GOOD else " bad" if _BAD.match(word) else ""


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class PageLink(NamedTuple):
    """A cell that is a link; a text without an address."""

    address: str
    text: str


class Category(NamedTuple):
    """A cell with a category and the index of its color."""

    name: str
    color: int


class Mark(NamedTuple):
    """A cell with a drawing, the number before it, if any, and a tip on it."""

    drawing: Markup
    tip: str
    value: str = ""


def estimate(row: Mapping[str, Any], key: str) -> Mark:
    """Return the accuracy or the reliability in a row of annotators, with its 95% interval.

    Of a model that flags people, the verdict says who is colored as a warning; of others
    `SPAMMER_BELOW`.
    """
    value, prefix = row[key], "accuracy_" if key == "accuracy" else ""
    if value is None or not math.isfinite(value):
        return Mark(Markup(), "")
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
    return Mark(Markup(drawing.svg(text)), text, f"{value:.2f}")


def bars(shares: Sequence[float], colors: Sequence[int], names: Sequence[str]) -> Mark:
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
    return Mark(Markup(drawing.svg("distribution")), tip)


class StaticFile(NamedTuple):
    """The content of a static file and its media type."""

    content: str
    media_type: str


def static_path(name: str) -> str:
    """Return the address of a static file."""
    return f"{STATIC}/{version_hash()}/{name}"


def colors_name(scale: Scale | None) -> str:
    """Return the name of the style sheet with a scale's colors; empty for classes.

    The colors of classes are in the style sheet of all pages.
    """
    if scale is None or not scale.is_ordinal:
        return ""
    return f"ordinal-{len(category_colors(scale))}.css"


@cache
def version_hash() -> str:
    """Return a hash of all static files."""
    text = static_file(STYLE).content + static_file(SCRIPT).content + _ordinal_colors(5)
    return sha256(text.encode()).hexdigest()[:16]


@cache
def static_file(name: str) -> StaticFile:
    """Return a static file; raises KeyError for an unknown one."""
    if name == STYLE:
        return StaticFile(page_style(CLASS_COLORS) + _own("serve.css"), "text/css")
    if name == SCRIPT:
        parts = (asset("theme.js"), _own("serve.js"))
        return StaticFile(script_of(parts), "text/javascript")
    if found := _COLORS.fullmatch(name):
        return StaticFile(_ordinal_colors(int(found[1])), "text/css")
    raise KeyError(name)


def _ordinal_colors(n_colors: int) -> str:
    """Return the colors of an ordinal scale, which depend on their number alone."""
    return "\n".join(color_rules(category_colors(Scale.ordinal(range(n_colors)))))


def _own(name: str) -> str:
    return files("annotruth.serve.pages").joinpath("assets", name).read_text("utf-8")
