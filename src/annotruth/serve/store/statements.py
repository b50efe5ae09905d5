"""Statements that the two databases write differently."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from annotruth.serve.store.schema import project


def upsert(connection: Connection, table: Table) -> Any:
    """Return a statement that inserts rows, or replaces those with the same primary key."""
    dialect: Any = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table)
    keys = [each.name for each in table.primary_key]
    others = {each.name: statement.excluded[each.name] for each in table.c if each.name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


def lock_project(connection: Connection, project_id: int) -> None:
    """Wait for other transactions that have locked the project; SQLite has one writer anyway."""
    # With key_share, labels can be appended meanwhile.
    chosen = select(project.c.id).where(project.c.id == project_id)
    connection.execute(chosen.with_for_update(key_share=True))
