"""HTML: escaped fragments, and a page in one file that works offline."""

from __future__ import annotations

import gzip
import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from annotruth.errors import shorten
from annotruth.io.atomic import atomic_write
from annotruth.report.charts.chart import NARROW_WIDTH, THEMES, Chart, chart_style, color_rules
from annotruth.report.charts.drawing import escaped

_RIGHT = ' class="right"'
_SCRIPTS = (
    *("data.js", "marks.js", "table.js", "item.js", "detail.js", "ranking.js", "charts.js"),
    *("tips.js", "theme.js", "main.js"),
)


def as_sentence(text: str) -> str:
    """Return text with a capital letter and a full stop; nothing of nothing."""
    return f"{text[0].upper()}{text[1:]}." if text else ""


def facts(rows: Iterable[tuple[str, object, str]]) -> str:
    """Return names with large values, and a note on each."""
    parts = [
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}"
        + (f"<small>{escaped(note)}</small>" if note else "")
        + "</dd></div>"
        for name, value, note in rows
    ]
    return f'<dl class="facts">{"".join(parts)}</dl>'


def settings(options: Mapping[str, object]) -> str:
    """Return names with small values."""
    parts = [f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in options.items()]
    return f'<dl class="settings">{"".join(parts)}</dl>' if parts else ""


def chips(names: Sequence[str], colors: Sequence[int], max_chips: int = 16) -> str:
    """Return categories with their colors; of too many, some evenly from the list."""
    n = len(names)
    shown: Sequence[int] = range(n)
    if n > max_chips:
        shown = sorted({k * (n - 1) // (max_chips - 1) for k in range(max_chips)})
    parts = [
        f'<li><svg class="chip" width="12" height="12" aria-hidden="true"><rect '
        f'class="at-k{colors[k]}" width="12" height="12" rx="3"/></svg>{escaped(shorten(names[k]))}</li>'
        for k in shown
    ]
    if n > max_chips:
        parts.append(f"<li>({max_chips} of {n:,})</li>")
    return f'<ul class="chips" aria-label="Categories">{"".join(parts)}</ul>'


def figure(chart: Chart) -> str:
    """Return a chart as a figure, at two widths of which the screen shows one."""
    head = f'<figcaption><h3>{escaped(chart.title)}</h3><span class="save"></span></figcaption>'
    full = ' class="full"' if chart.width > 2 * NARROW_WIDTH else ""
    return (
        f'<figure{full} data-name="{escaped(chart.name)}">{head}'
        f'<div class="wide">{chart.inline()}</div>'
        f'<div class="narrow">{chart.inline(NARROW_WIDTH)}</div>'
        f"<p>{escaped(chart.caption)}</p></figure>"
    )


def side_by_side(*parts: str) -> str:
    """Return figures, or a figure and a text, side by side where there is room."""
    return f'<div class="charts">{"".join(parts)}</div>'


class Cell(NamedTuple):
    """A cell of `plain_table` that opens a row of one of the page's large tables.

    Examples
    --------
    >>> Cell("item 7", opens="items", row="7").opens
    'items'
    """

    text: str
    opens: str
    row: str


class Markup(NamedTuple):
    """A cell of `plain_table` that is HTML already, with all texts in it escaped.

    Examples
    --------
    >>> Markup("<svg></svg>").html
    '<svg></svg>'
    """

    html: str


class Link(NamedTuple):
    """A cell of `plain_table` that leads to a section of the page.

    Examples
    --------
    >>> Link("tone", section="q1").section
    'q1'
    """

    text: str
    section: str


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str | Cell | Markup | Link]]) -> str:
    """Return a small table whose first column names its rows."""
    heads = "".join(
        f'<th scope="col"{_RIGHT if k else ""}>{escaped(text)}</th>'
        for k, text in enumerate(header)
    )
    lines = [
        f'<tr><th scope="row">{_cell(row[0])}</th>'
        + "".join(f'<td class="right">{_cell(value)}</td>' for value in row[1:])
        + "</tr>"
        for row in rows
    ]
    return (
        f'<div class="plain"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(value: str | Cell | Markup | Link) -> str:
    if isinstance(value, Markup):
        return value.html
    if isinstance(value, Link):
        return f'<a href="#{escaped(value.section)}">{escaped(value.text)}</a>'
    if not isinstance(value, Cell):
        return escaped(value)
    opens = escape(f"{value.opens}|{value.row}")
    return f'<button type="button" class="open" data-open="{opens}">{escaped(value.text)}</button>'


def table_placeholder(name: str, title: str) -> str:
    """Return the place that the page's script fills with a table."""
    return (
        f'<div data-table="{name}" data-title="{escaped(title)}"><p class="waiting">Loading … '
        "(this table needs JavaScript)</p></div>"
    )


def section(name: str, title: str, *parts: str, long: bool = False) -> str:
    """Return parts as a section with a heading."""
    css_class = ' class="long"' if long else ""
    return f'<section id="{name}"{css_class}><h2>{escaped(title)}</h2>{"".join(parts)}</section>'


def make_page(
    *,
    kind: str,
    heading: str,
    subheading: str,
    links: Mapping[str, str],
    sections: Iterable[str],
    data: str,
    footer: str,
    command: str = "",
    notice: str = "",
    colors: Sequence[str] = (),
    sources: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return a page with its style and script in it, which allows no others.

    Parameters
    ----------
    kind, heading, subheading
        What the page is, such as "Annotation report"; its heading and the line under it.
    links
        The ids of sections, in order, and the texts of the links to them.
    sections
        Their HTML, escaped already.
    data
        The numbers behind the page, as `pack` returns them.
    footer
        The text at the end; what stands between backticks is shown as code, here and in ``notice``.
    command
        The command that makes the page, shown under the heading.
    notice
        A warning under the heading; none if empty.
    colors
        The colors of the categories.
    sources
        What the page may load, by directive of its Content-Security-Policy.
    """
    style, script = page_style(colors), script_of(map(asset, _SCRIPTS))
    parts = {
        "policy": _policy(style, script, sources),
        "title": escaped(f"{heading}: {kind.lower()}"),
        "style": style,
        "first": next(iter(links)),
        "kind": escaped(kind),
        "links": "".join(f'<a href="#{key}">{text}</a>' for key, text in links.items()),
        "heading": escaped(heading),
        "under": escaped(subheading)
        + (f" · <code>{escaped(shorten(command, 300))}</code>" if command else ""),
        "notice": f'<p class="notice" role="alert">{with_code(notice)}</p>' if notice else "",
        "sections": "\n".join(sections),
        "footer": with_code(f"Made by annotruth {version('annotruth')}. {footer}"),
        "data": data,
        "script": script,
    }
    # All at once, so that braces in the parts are not filled in.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("page.html"))


def with_code(text: str) -> str:
    """Return text escaped for HTML, in which what stands between backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escaped(text))


def write_page(content: str, path: str | Path) -> None:
    """Write a page, completely or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(content, encoding="utf-8", newline="\n")


def rounded(chart: Chart) -> dict[str, Any]:
    """Return the numbers behind a chart in six digits; nan is null."""
    return {
        key: [
            (float(f"{v:.6g}") if math.isfinite(v) else None) if isinstance(v, float) else v
            for v in column
        ]
        for key, column in chart.data.items()
    }


def pack(data: Any) -> str:
    """Return JSON, compressed and in letters that are safe in HTML; the same data, the same text."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # JSON may hold half of a surrogate pair, which UTF-8 cannot encode.
    return b64encode(gzip.compress(text.encode(errors="replace"), 6, mtime=0)).decode()


def plain_json(data: Any) -> str:
    """Return JSON that is safe in HTML, not compressed: for what is compressed already."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def page_style(colors: Sequence[str]) -> str:
    """Return the style sheet of pages in both themes, with the colors of categories."""
    light, dark = (
        "".join(f"--{name}:{color};" for name, color in THEMES[theme].items())
        for theme in ("light", "dark")
    )
    themes = (
        f":root{{{light}color-scheme:light}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}\n"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}\n"
        f"@media print{{:root:root:root{{{light}color-scheme:light}}}}\n"
    )
    rules = "\n".join(color_rules(colors))
    return f"{themes}{asset('page.css')}{chart_style()}{rules}\n"


def script_of(scripts: Iterable[str]) -> str:
    """Return scripts as one, whose names other scripts do not see."""
    return '"use strict";\n(() => {\n' + "".join(scripts) + "})();\n"


def _policy(style: str, script: str, sources: Mapping[str, str]) -> str:
    """Return a policy that allows this page's own style and script, by their hashes, and sources."""
    style_hash, script_hash = (
        b64encode(sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    allowed = {**sources, "img-src": f"data: {sources.get('img-src', '').replace('data:', '')}"}
    loaded = "; ".join(f"{name} {' '.join(text.split())}" for name, text in allowed.items())
    return (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        f"{loaded}; base-uri 'none'; form-action 'none'"
    )


def asset(name: str) -> str:
    """Return a style sheet, script or template of pages."""
    return files("annotruth.report").joinpath("assets", name).read_text("utf-8")
