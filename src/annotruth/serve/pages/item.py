"""The page of one item: what it is, its distribution, and who said what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotruth.errors import shorten
from annotruth.models.fits.notes import DISPUTED_RULE
from annotruth.report.charts.drawing import escaped
from annotruth.report.content import content_type
from annotruth.report.headings import RANK_HEADINGS
from annotruth.report.html import facts, figure, section, side_by_side
from annotruth.serve.pages import cells
from annotruth.serve.pages.layout import Frame, render
from annotruth.serve.pages.snapshot_tables import LabelTables
from annotruth.serve.pages.table import Column, TableQuery, paged_table
from annotruth.serve.store.records import StoredEvent

MAX_LABELS = 500
"""How many labels of an item the page shows."""

_MAX_TEXT = 20_000


@dataclass(frozen=True, kw_only=True)
class ItemData:
    """What the page of an item shows.

    Attributes
    ----------
    item
        Its id.
    tables
        The tables of the snapshot; None if there is none yet.
    labels
        Its current labels, as the store has them now.
    past
        Events of labels that were changed or deleted since, the latest first.
    content, gold
        What it is; its known truth.
    leases
        Who was given it and has not answered yet.

    Examples
    --------
    >>> ItemData(item="film 1").labels
    ()
    """

    item: str
    tables: LabelTables | None = None
    labels: Sequence[StoredEvent] = ()
    past: Sequence[StoredEvent] = ()
    content: Mapping[str, Any] | None = None
    gold: str | None = None
    leases: Sequence[str] = ()


def item_page(frame: Frame, data: ItemData) -> str:
    """Return the page of an item of a project of labels."""
    code = None if data.tables is None else data.tables.item_code(data.item)
    parts = [section_of_content(data.content)]
    if data.tables is not None and code is not None:
        row = data.tables.items.slice(code, 1).to_pylist()[0]
        chart = data.tables.charts.item(data.tables.fit.data.items[code].as_py())
        about = f'<div class="beside"><p class="lead">{escaped(row["why"])}</p>{facts(_facts(data, row))}</div>'
        parts.append(f'<section class="first">{side_by_side(figure(chart), about)}</section>')
    else:
        parts.append('<section class="first"><p>It is in no snapshot yet.</p></section>')
    parts.append(section("labels", "Who said what", _labels(frame, data, code)))
    if data.past:
        parts.append(section("past", "Changed or deleted since", _past(frame, data.past)))
    return render(frame, data.item, *parts, tab="items", under="Item", live=True)


def section_of_content(content: Mapping[str, Any] | None) -> str:
    """Return what an item is: texts, links, and images, audio and video by URL."""
    if not content:
        return ""
    parts = [
        f"<dt>{escaped(name)}</dt><dd>{_content(str(value))}</dd>"
        for name, value in content.items()
        if value is not None
    ]
    return f'<section class="first"><dl class="item-content">{"".join(parts)}</dl></section>'


def _content(value: str) -> str:
    kind, url = content_type(value.strip()), escaped(value.strip())
    if kind == "image" and _is_address(value):
        return f'<img src="{url}" alt="" loading="lazy" referrerpolicy="no-referrer">'
    if kind in ("audio", "video") and _is_address(value):
        return f'<{kind} src="{url}" controls preload="none"></{kind}>'
    if kind == "link":
        return (
            f'<a href="{url}" rel="noopener noreferrer" target="_blank">'
            f"{escaped(shorten(value.strip(), 300))}</a>"
        )
    cut = value[:_MAX_TEXT] + ("…" if len(value) > _MAX_TEXT else "")
    lines = "\n".join(map(escaped, cut.splitlines()))
    return f'<p class="content">{lines}</p>'


def _is_address(value: str) -> bool:
    """Return whether a browser can load the value: a path would be one of this server's."""
    return value.strip().lower().startswith(("http://", "https://", "data:"))


def content_sources(content: Mapping[str, Any] | None) -> dict[str, str]:
    """Return what a page with this content may load, by directive of its security policy."""
    sources: dict[str, set[str]] = {"img-src": {"'self'", "data:"}}
    for value in (content or {}).values():
        text = str(value).strip()
        kind = content_type(text)
        if kind in ("image", "audio", "video") and text.lower().startswith(("http:", "https:")):
            directive = "img-src" if kind == "image" else "media-src"
            sources.setdefault(directive, set()).add(f"{text.split(':')[0].lower()}:")
    return {name: " ".join(sorted(values)) for name, values in sources.items()}


def _facts(data: ItemData, row: Mapping[str, Any]) -> list[tuple[str, object, str]]:
    assert data.tables is not None
    rows: list[tuple[str, object, str]] = []
    if row.get("label") is not None:
        note = f"confidence {cells.percent(row.get('confidence'))}"
        rows.append(("Label", data.tables.names[row["label"]], note))
        if row["disputed"]:
            rows.append(("Disputed", "yes", DISPUTED_RULE))
    if row.get("expectation") is not None:
        rows.append(("Score", cells.number(row["expectation"]), ""))
    if data.gold is not None:
        rows.append(("Known truth", data.gold, ""))
    rows.append(("Status", row["status"], f"add {row['add']:,}" if row["add"] else ""))
    rows.append(("Difficulty", cells.number(row["entropy"]), "entropy"))
    if data.leases:
        rows.append(("Being labelled by", ", ".join(data.leases), ""))
    return rows


def _labels(frame: Frame, data: ItemData, code: int | None) -> str:
    """Return the table of who said what, with what the snapshot says about it."""
    said = _said(data.tables, code) if data.tables is not None and code is not None else {}
    lines = [_label_row(frame, data.tables, said, event) for event in data.labels[:MAX_LABELS]]
    query = TableQuery(path=frame.address("item", id=data.item), sort="")
    return paged_table("Who said what", _columns(data.tables), lines, query, len(lines))


def _said(tables: LabelTables, code: int) -> dict[str, tuple[int, int, float | None]]:
    """Return, by annotator, the codes of the annotator and of the label, and its p serious."""
    data, ids = tables.fit.data, tables.annotators["annotator"]
    said = {}
    for at in tables.labels_of_item(code).tolist():
        person = int(data.annotator[at])
        serious = None if tables.fit.p_serious is None else float(tables.fit.p_serious[at])
        said[ids[person].as_py()] = (person, int(tables.consensus.category[at]), serious)
    return said


def _columns(tables: LabelTables | None) -> list[Column]:
    """Return the columns of the table of an item's labels."""
    estimate = _estimate_of(tables)
    return [
        Column("annotator", "Annotator", sorts=False),
        Column("label", "Label", sorts=False),
        Column(estimate, estimate.capitalize(), "of the annotator", sorts=False, rank=1),
        Column("p_serious", "P serious", RANK_HEADINGS["p_serious"][1], right=True, sorts=False),
        Column("seconds", "Seconds", "from start to submission", right=True, sorts=False, rank=1),
        Column("submitted", "Submitted", "time in UTC", sorts=False, rank=1),
    ]


def _estimate_of(tables: LabelTables | None) -> str:
    has_accuracy = tables is not None and tables.fit.accuracy is not None
    return "accuracy" if has_accuracy else "reliability"


def _label_row(
    frame: Frame,
    tables: LabelTables | None,
    said: Mapping[str, tuple[int, int, float | None]],
    event: StoredEvent,
) -> list[str]:
    label, estimate, serious = escaped(event.label), "", ""
    if tables is not None and event.annotator in said:
        person, category, p_serious = said[event.annotator]
        row = tables.annotators.slice(person, 1).to_pylist()[0]
        estimate = cells.estimate(row, _estimate_of(tables))
        if tables.names[category] == event.label:  # it may have been edited since the snapshot
            label = cells.category(category, tables.colors, tables.names)
            serious = cells.number(p_serious)
    return [
        cells.link(frame.address("annotator", id=event.annotator), event.annotator, 40),
        label,
        estimate,
        serious,
        seconds_of(event),
        cells.moment(event.submitted),
    ]


def seconds_of(event: StoredEvent) -> str:
    """Return how long an annotator took, as a cell; empty if it is not known."""
    if event.started is None:
        return ""
    return cells.number((event.submitted - event.started).total_seconds(), 1)


def _past(frame: Frame, events: Sequence[StoredEvent]) -> str:
    lines = [
        f"<li>{cells.moment(event.submitted)} "
        f"{cells.link(frame.address('annotator', id=event.annotator), event.annotator)}: "
        f"{'deleted' if event.deleted else escaped(event.label)} "
        f'<span class="quiet">({escaped(event.source)})</span></li>'
        for event in events
    ]
    return f'<ul class="tasks">{"".join(lines)}</ul>'
