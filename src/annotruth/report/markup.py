"""HTML in small pieces; every word that comes from the data is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from annotruth.labels.formatting import cut
from annotruth.report.drawing import escaped
from annotruth.report.picture import NARROW, Picture


def facts(rows: Iterable[tuple[str, object, str]]) -> str:
    """List names with large values, and a word on each."""
    parts = [
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}"
        + (f"<small>{escaped(note)}</small>" if note else "")
        + "</dd></div>"
        for name, value, note in rows
    ]
    return f'<dl class="facts">{"".join(parts)}</dl>'


def settings(options: Mapping[str, object]) -> str:
    """List names with small values."""
    parts = [f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in options.items()]
    return f'<dl class="settings">{"".join(parts)}</dl>' if parts else ""


def chips(names: Sequence[str], colours: Sequence[int], most: int = 16) -> str:
    """List categories with their colours; of too many, some all along the list."""
    n = len(names)
    shown = range(n) if n <= most else sorted({k * (n - 1) // (most - 1) for k in range(most)})
    parts = [
        f'<li><svg class="chip" width="12" height="12" aria-hidden="true"><rect '
        f'class="at-k{colours[k]}" width="12" height="12" rx="3"/></svg>{escaped(cut(names[k]))}</li>'
        for k in shown
    ]
    if n > most:
        parts.append(f"<li>({most} of {n:,})</li>")
    return f'<ul class="chips" aria-label="Categories">{"".join(parts)}</ul>'


def figure(picture: Picture) -> str:
    """Put a picture on the page, at two widths of which the screen chooses one."""
    head = f'<figcaption><h3>{escaped(picture.title)}</h3><span class="save"></span></figcaption>'
    wide, narrow = picture.inline(), picture.inline(NARROW)
    full = ' class="full"' if picture.width > 2 * NARROW else ""
    return (
        f'<figure{full} data-name="{escaped(picture.name)}">{head}'
        f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'
        f"<p>{escaped(picture.caption)}</p></figure>"
    )


def charts(*parts: str) -> str:
    """Put figures, or a figure and what is said of it, side by side where there is room."""
    return f'<div class="charts">{"".join(parts)}</div>'


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a small table; the first column names its row."""
    heads = "".join(f'<th scope="col"{_right(k)}>{escaped(h)}</th>' for k, h in enumerate(header))
    lines = [
        f'<tr><th scope="row">{escaped(row[0])}</th>'
        + "".join(f'<td class="right">{escaped(value)}</td>' for value in row[1:])
        + "</tr>"
        for row in rows
    ]
    return (
        f'<div class="plain"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def table_place(name: str, title: str) -> str:
    """Leave a place that the page fills with a table."""
    return (
        f'<div data-table="{name}" data-title="{escaped(title)}"><p class="waiting">Loading … '
        "(this table needs JavaScript)</p></div>"
    )


def section(name: str, title: str, *parts: str, long: bool = False) -> str:
    """Wrap parts into a section with a heading."""
    kind = ' class="long"' if long else ""
    return f'<section id="{name}"{kind}><h2>{escaped(title)}</h2>{"".join(parts)}</section>'


def _right(column: int) -> str:
    return ' class="right"' if column else ""
