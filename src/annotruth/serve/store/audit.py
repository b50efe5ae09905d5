"""The audit log: who changed what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from annotruth.serve.store.records import AuditEntry
from annotruth.serve.store.schema import audit


def add_audit(
    connection: Connection,
    project_id: int | None,
    actor: str,
    action: str,
    detail: Mapping[str, Any],
    now: datetime,
) -> None:
    """Add an entry; ``detail`` has no secrets."""
    row = {
        "project": project_id,
        "time": now,
        "actor": actor,
        "action": action,
        "detail": dict(detail),
    }
    connection.execute(insert(audit).values(row))


def list_audit(
    connection: Connection, project_id: int | None = None, *, limit: int, offset: int = 0
) -> list[AuditEntry]:
    """Return the latest entries of a project, or of all, the last first."""
    latest_first = select(audit).order_by(audit.c.seq.desc()).limit(limit).offset(offset)
    if project_id is not None:
        latest_first = latest_first.where(audit.c.project == project_id)
    return [AuditEntry(*row) for row in connection.execute(latest_first)]


def count_audit(connection: Connection, project_id: int) -> int:
    """Return the number of entries of a project."""
    query = select(func.count()).select_from(audit).where(audit.c.project == project_id)
    return connection.scalar(query) or 0
