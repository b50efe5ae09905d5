"""Alerts, and the webhooks that they are sent to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from annotruth.serve.store.records import Alert, Delivery, DeliveryStatus, Webhook
from annotruth.serve.store.schema import alert, delivery, webhook


def add_alert(
    connection: Connection,
    project_id: int,
    kind: str,
    subject: str,
    text: str,
    detail: Mapping[str, Any],
    *,
    created: datetime,
) -> Alert:
    """Add an alert, and its delivery to every active webhook for its kind; return the alert."""
    row = {
        "project": project_id,
        "created": created,
        "kind": kind,
        "subject": subject,
        "text": text,
        "detail": dict(detail),
        "seen": False,
    }
    added = Alert(*connection.execute(insert(alert).values(row).returning(alert)).one())
    deliveries = [
        {
            "webhook": each.id,
            "alert": added.id,
            "attempts": 0,
            "next_attempt": created,
            "status": "waiting",
            "last_error": "",
        }
        for each in list_webhooks(connection, project_id)
        if each.active and kind in each.kinds
    ]
    if deliveries:
        connection.execute(insert(delivery), deliveries)
    return added


def get_alert(connection: Connection, alert_id: int) -> Alert | None:
    """Return an alert, or None."""
    row = connection.execute(select(alert).where(alert.c.id == alert_id)).one_or_none()
    return None if row is None else Alert(*row)


def list_alerts(
    connection: Connection,
    project_id: int,
    *,
    limit: int,
    offset: int = 0,
    seen: bool | None = None,
    kinds: Sequence[str] | None = None,
) -> list[Alert]:
    """Return the latest alerts of a project, the last first.

    All, or only the seen or unseen, and only those of some kinds.
    """
    query = select(alert).where(alert.c.project == project_id)
    if kinds is not None:
        query = query.where(alert.c.kind.in_(kinds))
    if seen is not None:
        query = query.where(alert.c.seen.is_(seen))
    latest_first = query.order_by(alert.c.id.desc()).limit(limit).offset(offset)
    return [Alert(*row) for row in connection.execute(latest_first)]


def count_alerts(connection: Connection, project_id: int, kinds: Sequence[str]) -> int:
    """Return the number of alerts of some kinds of a project."""
    query = select(func.count()).where(alert.c.project == project_id, alert.c.kind.in_(kinds))
    return connection.scalar(query) or 0


def mark_seen(connection: Connection, project_id: int) -> None:
    """Mark all alerts of a project as seen."""
    unseen = (alert.c.project == project_id) & ~alert.c.seen
    connection.execute(update(alert).where(unseen).values(seen=True))


def add_webhook(
    connection: Connection, project_id: int, url: str, kinds: Sequence[str], secret: str
) -> Webhook:
    """Add a webhook for alerts of some kinds and return it; the caller has checked the URL."""
    row = {
        "project": project_id,
        "url": url,
        "secret": secret,
        "kinds": list(kinds),
        "active": True,
    }
    return _webhook(connection.execute(insert(webhook).values(row).returning(webhook)).one())


def get_webhook(connection: Connection, webhook_id: int) -> Webhook | None:
    """Return a webhook, or None."""
    row = connection.execute(select(webhook).where(webhook.c.id == webhook_id)).one_or_none()
    return None if row is None else _webhook(row)


def list_webhooks(connection: Connection, project_id: int) -> list[Webhook]:
    """Return the webhooks of a project."""
    query = select(webhook).where(webhook.c.project == project_id).order_by(webhook.c.id)
    return [_webhook(row) for row in connection.execute(query)]


def set_webhook_active(
    connection: Connection, project_id: int, webhook_id: int, active: bool
) -> bool:
    """Switch a webhook on or off; return whether there is one."""
    chosen = (webhook.c.project == project_id) & (webhook.c.id == webhook_id)
    return connection.execute(update(webhook).where(chosen).values(active=active)).rowcount > 0


def remove_webhook(connection: Connection, project_id: int, webhook_id: int) -> bool:
    """Remove a webhook and its deliveries; return whether there was one."""
    chosen = (webhook.c.project == project_id) & (webhook.c.id == webhook_id)
    return connection.execute(delete(webhook).where(chosen)).rowcount > 0


def _webhook(row: Any) -> Webhook:
    return Webhook(*row)._replace(kinds=tuple(row.kinds))


def due_deliveries(
    connection: Connection, now: datetime, *, limit_per_webhook: int
) -> list[Delivery]:
    """Return deliveries that wait and whose next attempt is due, the earliest first.

    The limit is of each webhook: one that does not answer must not keep the others waiting.
    """
    earliest_first = (delivery.c.next_attempt, delivery.c.id)
    place = func.row_number().over(partition_by=delivery.c.webhook, order_by=earliest_first)
    ranked = (
        select(delivery.c.id, place.label("place"))
        .where(delivery.c.status == "waiting", delivery.c.next_attempt <= now)
        .subquery()
    )
    query = select(delivery).join(ranked, ranked.c.id == delivery.c.id)
    first = query.where(ranked.c.place <= limit_per_webhook).order_by(*earliest_first)
    return [Delivery(*row) for row in connection.execute(first)]


def list_deliveries(connection: Connection, webhook_id: int, limit: int) -> list[Delivery]:
    """Return the latest deliveries of a webhook, the last first."""
    query = select(delivery).where(delivery.c.webhook == webhook_id)
    return [
        Delivery(*row)
        for row in connection.execute(query.order_by(delivery.c.id.desc()).limit(limit))
    ]


def last_deliveries(connection: Connection, webhooks: Iterable[Webhook]) -> dict[int, Delivery]:
    """Return the last delivery of each webhook that has one, by the webhook's number."""
    latest = {each.id: list_deliveries(connection, each.id, limit=1) for each in webhooks}
    return {number: found[0] for number, found in latest.items() if found}


def note_attempt(
    connection: Connection,
    attempted: Delivery,
    status: DeliveryStatus,
    *,
    next_attempt: datetime | None = None,
    error: str = "",
) -> None:
    """Store the outcome of an attempt to deliver, and when to try again."""
    values = {
        "attempts": attempted.attempts + 1,
        "status": status,
        "next_attempt": next_attempt or attempted.next_attempt,
        "last_error": error,
    }
    connection.execute(update(delivery).where(delivery.c.id == attempted.id).values(values))
