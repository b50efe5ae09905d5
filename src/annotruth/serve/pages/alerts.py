"""The pages of alerts and of the audit log: what happened, the latest first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from annotruth.errors import counted, shorten
from annotruth.report.charts.drawing import escaped
from annotruth.serve.pages import cells
from annotruth.serve.pages.layout import Frame, form, render
from annotruth.serve.pages.table import Column, TableQuery, paged_table
from annotruth.serve.store.records import Alert, AuditEntry
from annotruth.serve.web.schemas import AlertKind

FINISHED_PICK = "finished"
"""What chooses the pages of finished items."""

FINISHED: tuple[AlertKind, ...] = ("finished",)
_ALERT_COLUMNS = [
    Column("created", "Time", "in UTC", sorts=False),
    Column("text", "Alert", sorts=False),
    Column("kind", "Kind", sorts=False, rank=1),
    Column("seen", "Seen", sorts=False),
]
_AUDIT_COLUMNS = [
    Column("time", "Time", "in UTC", sorts=False),
    Column("actor", "Who", "the token's name", sorts=False),
    Column("action", "Action", sorts=False),
    Column("detail", "Detail", sorts=False, rank=1),
]
_MAX_DETAIL = 300


def log_query(path: str, query: Mapping[str, str]) -> TableQuery:
    """Return which page of a log is asked for."""
    return TableQuery.parse(path, query, (), "")


def alerts_page(
    frame: Frame, query: TableQuery, alerts: Sequence[Alert], total: int, n_others: int
) -> str:
    """Return one page of the alerts of a project.

    Those of finished items, which ask for nothing and are many, have pages of their own; ``n_others`` is
    the number of those on the other pages.
    """
    lines = [
        [
            cells.moment(alert.created),
            _subject(frame, alert),
            escaped(alert.kind),
            "yes" if alert.seen else '<span class="tag bad">new</span>',
        ]
        for alert in alerts
    ]
    button = ""
    if frame.n_alerts and frame.scope != "read":
        button = form(frame.address("alerts"), frame.csrf, button="Mark all as seen")
    table = paged_table("Alerts", _ALERT_COLUMNS, lines, query, total)
    under = "When the verdict on an annotator changes, agreement falls, or items are finished."
    is_finished = query.pick == FINISHED_PICK
    other = frame.address("alerts", **({} if is_finished else {"pick": FINISHED_PICK}))
    of = "about annotators and agreement" if is_finished else "of finished items"
    link = cells.link(other, f"{counted(n_others, 'alert')} {of}")
    others = f"<p>{link}</p>" if n_others else ""
    content = f'<section class="first">{button}{others}{table}</section>'
    return render(frame, "Alerts", content, tab="alerts", under=under, live=True)


def _subject(frame: Frame, alert: Alert) -> str:
    """Return the text of an alert, a link to the page of the one annotator or item, if any."""
    if alert.kind == "verdict" and alert.subject:
        return cells.link(frame.address("annotator", id=alert.subject), alert.text, 200)
    items = alert.detail.get("items")
    if isinstance(items, list) and len(items) == 1:
        return cells.link(frame.address("item", id=items[0]), alert.text, 200)
    return escaped(alert.text)


def audit_page(frame: Frame, query: TableQuery, entries: Sequence[AuditEntry], total: int) -> str:
    """Return one page of the audit log."""
    lines = [
        [
            cells.moment(entry.time),
            escaped(shorten(entry.actor)),
            escaped(entry.action),
            f"<code>{escaped(_detail(entry))}</code>" if entry.detail else "",
        ]
        for entry in entries
    ]
    table = paged_table("Audit log", _AUDIT_COLUMNS, lines, query, total)
    under = "Who changed what. Labels are not listed here; they are never overwritten."
    content = f'<section class="first">{table}</section>'
    return render(frame, "Audit log", content, tab="audit", under=under)


def _detail(entry: AuditEntry) -> str:
    return shorten(json.dumps(entry.detail, ensure_ascii=False, default=str), _MAX_DETAIL)
