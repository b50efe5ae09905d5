"""Leases: an item that an annotator was asked to label is reserved for a while."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, func, select

from annotruth.serve.store.checks import check_text
from annotruth.serve.store.records import Lease
from annotruth.serve.store.schema import lease
from annotruth.serve.store.statements import lock_project, upsert


def take_lease(
    connection: Connection,
    project_id: int,
    item: str,
    annotator: str,
    now: datetime,
    expires: datetime,
    *,
    places: int,
) -> bool:
    """Reserve an item for an annotator; return False if others hold all of its places.

    ``places`` is how many more labels the item needs. An annotator's own lease is extended, and leases
    that have expired are removed. Of two annotators who ask for the last place at once, one gets it.
    """
    check_text("item", item)
    check_text("annotator", annotator)
    lock_project(connection, project_id)
    expired = (lease.c.project == project_id) & (lease.c.expires <= now)
    connection.execute(delete(lease).where(expired))
    of_others = (
        (lease.c.project == project_id) & (lease.c.item == item) & (lease.c.annotator != annotator)
    )
    n_others = connection.scalar(select(func.count()).select_from(lease).where(of_others)) or 0
    if n_others >= places:
        return False
    taken = Lease(project_id, item, annotator, expires)
    connection.execute(upsert(connection, lease), [taken._asdict()])
    return True


def active_leases(
    connection: Connection,
    project_id: int,
    now: datetime,
    *,
    item: str | None = None,
    annotator: str | None = None,
) -> list[Lease]:
    """Return the leases that have not expired, all or those of an item or an annotator."""
    query = select(lease).where(lease.c.project == project_id, lease.c.expires > now)
    if item is not None:
        query = query.where(lease.c.item == item)
    if annotator is not None:
        query = query.where(lease.c.annotator == annotator)
    return [Lease(*row) for row in connection.execute(query.order_by(lease.c.expires))]


def release(connection: Connection, project_id: int, item: str, annotator: str) -> bool:
    """Remove a lease, such as after its label was given; return whether there was one."""
    chosen = (
        (lease.c.project == project_id) & (lease.c.item == item) & (lease.c.annotator == annotator)
    )
    return connection.execute(delete(lease).where(chosen)).rowcount > 0
