"""Known truths that platforms send."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, delete, insert

from annotruth.serve.store.schema import gold


def set_gold(connection: Connection, project_id: int, truths: Mapping[str, str]) -> None:
    """Store known truths, instead of those that items had before."""
    for item, label in truths.items():
        connection.execute(delete(gold).where(gold.c.project == project_id, gold.c.item == item))
        connection.execute(insert(gold).values(project=project_id, item=item, label=label))
