"""Alerts, and their deliveries to webhooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from annotruth.serve.store.rows import add, change, find, rows_of
from annotruth.serve.store.tables import Alert, Delivery, DeliveryStatus, Webhook, delivery


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
    added = add(
        connection,
        Alert,
        project=project_id,
        created=created,
        kind=kind,
        subject=subject,
        text=text,
        detail=dict(detail),
    )
    first = {"alert": added.id, "attempts": 0, "next_attempt": created, "status": "waiting"}
    deliveries = [
        {"webhook": each.id, **first}
        for each in find(connection, Webhook, project=project_id, active=True)
        if kind in each.kinds
    ]
    if deliveries:
        connection.execute(insert(delivery), deliveries)
    return added


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
    return rows_of(connection, Delivery, first)


def last_deliveries(connection: Connection, webhooks: Iterable[Webhook]) -> dict[int, Delivery]:
    """Return the last delivery of each webhook that has one, by the webhook's number."""
    latest_first = [delivery.c.id.desc()]
    return {
        each.id: last
        for each in webhooks
        for last in find(connection, Delivery, webhook=each.id, order=latest_first, limit=1)
    }


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
    change(connection, Delivery, values, id=attempted.id)
