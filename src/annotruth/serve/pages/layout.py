"""The frame of every page: heading, navigation, and where it is live; and forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from annotruth.report.charts.drawing import escaped
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


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What surrounds the content of a page: who looks at it, and at which project.

    Attributes
    ----------
    csrf
        The token that forms carry; empty before the login.
    project, kind
        The project's name, empty on pages of no project; "labels" or "comparisons".
    scope
        What the visitor's token allows: "read", "write" or "admin".
    n_alerts
        How many alerts of the project nobody has seen.
    colors
        The name of the style sheet with the colors of the project's categories.

    Examples
    --------
    >>> Frame(csrf="c", project="news").address("item", id="a/b")
    '/projects/news/item?id=a%2Fb'
    """

    csrf: str = ""
    project: str = ""
    kind: str = "labels"
    scope: str = "read"
    n_alerts: int = 0
    colors: str = ""

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


def render(
    frame: Frame,
    title: str,
    *parts: str,
    tab: str | None = None,
    under: str = "",
    notice: str = "",
    live: bool = False,
    every_label: bool = False,
) -> str:
    """Return a page.

    Parameters
    ----------
    frame
        What surrounds the content.
    title
        The heading.
    *parts
        The content, escaped already.
    tab
        The tab that the page belongs to; None for pages of no project.
    under, notice
        A line under the heading; a warning under it.
    live
        Whether the page follows the project, snapshot by snapshot.
    every_label
        Whether it follows every label, because there is no snapshot yet.
    """
    # With no referrer at all, browsers would not say either where a form comes from.
    styles = [STYLE, *([frame.colors] if frame.colors else [])]
    links = "".join(f'<link rel="stylesheet" href="{static_path(name)}">' for name in styles)
    events = f' data-events="/api/v1{escaped(frame.address("events"))}"' if live else ""
    events += " data-labels" if every_label else ""
    where = f"{title}: {frame.project}" if frame.project else title
    below = f'<p class="under">{escaped(under)}</p>' if under else ""
    warning = f'<p class="notice" role="alert">{escaped(notice)}</p>' if notice else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="same-origin"><meta name="color-scheme" content="light dark">'
        f'<link rel="icon" href="data:,"><title>{escaped(where)} · annotruth</title>{links}'
        f'<script src="{static_path(SCRIPT)}"></script></head>\n'
        f'<body><a class="skip" href="#content">Skip to the content</a>{_header(frame, tab)}'
        f'<p id="connection" role="status" hidden></p>\n<main id="content"{events}>'
        f'<div class="heading"><h1>{escaped(title)}</h1>{below}{warning}</div>\n'
        + "\n".join(parts)
        + '</main>\n<div id="tip" role="status" hidden></div></body></html>\n'
    )


def _header(frame: Frame, tab: str | None) -> str:
    """Return the bar at the top: the project's pages, the theme, and the way out."""
    links = []
    if frame.project:
        tabs = _RANKED_TABS if frame.is_ranking else _TABS
        for name, text in tabs.items():
            here = ' aria-current="page"' if name == tab else ""
            count = f' <span class="count">{frame.n_alerts:,}</span>' if name == "alerts" else ""
            shown = f"{text}{count if frame.n_alerts else ''}"
            links.append(f'<a href="{escaped(frame.address(name))}"{here}>{shown}</a>')
    project = (
        f'<a class="project" href="{escaped(frame.address())}">{escaped(frame.project)}</a>'
        if frame.project
        else ""
    )
    out = form("/logout", frame.csrf, button="Log out") if frame.csrf and frame.scope else ""
    return (
        f'<header class="top"><a class="home" href="{PROJECTS}">annotruth</a>{project}'
        f'<nav aria-label="Pages of the project">{"".join(links)}</nav>{out}'
        '<button type="button" id="theme" aria-label="Switch between light and dark">◐</button>'
        "</header>"
    )


def form(
    action: str,
    csrf: str,
    *fields: str,
    button: str,
    label: str = "",
    hidden: Mapping[str, Any] | None = None,
    confirm: str = "",
) -> str:
    """Return a form that posts its fields with the CSRF token.

    ``label`` is what a screen reader says for the button, where its text is not enough; ``confirm``
    is a question that the browser asks first.
    """
    kept = {"csrf": csrf, **(hidden or {})}
    inputs = "".join(
        f'<input type="hidden" name="{escaped(name)}" value="{escaped(value)}">'
        for name, value in kept.items()
    )
    question = f' data-confirm="{escaped(confirm)}"' if confirm else ""
    named = f' aria-label="{escaped(label)}"' if label else ""
    return (
        f'<form method="post" action="{escaped(action)}"{question}>{inputs}{"".join(fields)}'
        f'<button type="submit"{named}>{escaped(button)}</button></form>'
    )


def field(
    name: str,
    title: str,
    value: object = "",
    *,
    kind: str = "text",
    tip: str = "",
    attributes: str = "",
) -> str:
    """Return a field of a form with its title and a line below it."""
    note = f"<small>{escaped(tip)}</small>" if tip else ""
    shown = "" if value is None else escaped(value)
    return (
        f'<label><span>{escaped(title)}</span><input type="{kind}" name="{name}" '
        f'value="{shown}" {attributes}>{note}</label>'
    )


def text_area(name: str, title: str, lines: Sequence[str], *, tip: str = "") -> str:
    """Return a field of a form for several lines, with its title and a line below it."""
    text = escape("\n".join(lines))  # as it is, since the form sends it back
    # Browsers leave out a line break at the start.
    return (
        f'<label><span>{escaped(title)}</span><textarea name="{name}" rows="{min(len(lines) + 1, 8)}">'
        f"\n{text}</textarea><small>{escaped(tip)}</small></label>"
    )


def select(name: str, title: str, options: Mapping[str, str], chosen: str = "") -> str:
    """Return a choice of a form: values and their texts."""
    listed = "".join(
        f'<option value="{escaped(value)}"{" selected" if value == chosen else ""}>'
        f"{escaped(text)}</option>"
        for value, text in options.items()
    )
    return f'<label><span>{escaped(title)}</span><select name="{name}">{listed}</select></label>'
