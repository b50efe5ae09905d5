"""Rows that name a person: removed, or without the name."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, exists, select, update

from annotruth.errors import InputError, shown
from annotruth.serve.store.events import lock_appends
from annotruth.serve.store.records import Project
from annotruth.serve.store.schema import (
    alert,
    annotator_history,
    audit,
    event,
    lease,
    project,
    snapshot,
    trait,
)
from annotruth.serve.store.schema import connection as platform_connection
from annotruth.serve.store.statements import lock_project

_ERASED = "(erased)"
_TABLES_BY_ANNOTATOR = (event, annotator_history, trait, lease)


def erase_rows(connection: Connection, of: Project, annotator: str) -> int:
    """Erase what names an annotator of a project from all tables; return the number of events."""
    lock_project(connection, of.id)
    lock_appends(connection)
    if not any(_is_named(connection, table, of, annotator) for table in _TABLES_BY_ANNOTATOR):
        raise InputError(f"there is no annotator {shown(annotator)} in project {of.name!r}")
    _remove_anonymous_deletions(connection, of.id, annotator)
    removed = [
        connection.execute(delete(table).where(*_about(table, of, annotator))).rowcount
        for table in _TABLES_BY_ANNOTATOR
    ]
    _remove_alerts(connection, of.id, annotator)
    for table, name in (
        (audit, "actor"),
        (audit, "detail"),
        (snapshot, "summary"),
        (platform_connection, "cursor"),
    ):
        _replace_names(connection, table, name, of.id, annotator)
    connection.execute(update(snapshot).where(snapshot.c.project == of.id).values(folder=""))
    count_erasure(connection, of)
    return removed[0]


def count_erasure(connection: Connection, of: Project) -> None:
    """Count that events of a project were removed: who keeps labels in memory reads them again."""
    counted = update(project).where(project.c.id == of.id)
    connection.execute(counted.values(erasures=project.c.erasures + 1))


def _about(table: Table, of: Project, annotator: str) -> tuple[ColumnElement[bool], ...]:
    return table.c.project == of.id, table.c.annotator == annotator


def _is_named(connection: Connection, table: Table, of: Project, annotator: str) -> bool:
    named = select(exists().where(*_about(table, of, annotator)))
    return bool(connection.scalar(named))


def _remove_anonymous_deletions(connection: Connection, project_id: int, annotator: str) -> None:
    """Remove deletions that name no annotator, of annotations of this one only."""
    other = event.alias("other")
    same = (
        (other.c.project == event.c.project)
        & (other.c.source == event.c.source)
        & (other.c.annotation == event.c.annotation)
    )
    own = exists().where(same, other.c.annotator == annotator)
    of_others = exists().where(same, other.c.annotator.not_in([annotator, ""]))
    anonymous = (event.c.project == project_id) & (event.c.annotator == "")
    connection.execute(delete(event).where(anonymous, own, ~of_others))


def _remove_alerts(connection: Connection, project_id: int, annotator: str) -> None:
    """Remove alerts about the annotator, and those whose text has the name; also deliveries."""
    # Not a part of a longer word: the annotator "a" is not in every text.
    name = re.compile(rf"(?<!\w){re.escape(annotator)}(?!\w)")
    rows = connection.execute(select(alert).where(alert.c.project == project_id))
    removed = [
        row.id
        for row in rows
        if row.subject == annotator
        or name.search(row.text)
        or _without(row.detail, annotator) != row.detail
    ]
    for each in removed:
        connection.execute(delete(alert).where(alert.c.id == each))


def _replace_names(
    connection: Connection, table: Table, name: str, project_id: int, annotator: str
) -> None:
    """Replace the annotator in a column of text or JSON."""
    keys = list(table.primary_key)
    query = select(table.c[name], *keys).where(table.c.project == project_id)
    for value, *key in connection.execute(query).all():
        replaced = _without(value, annotator)
        if replaced != value:
            row = [column == part for column, part in zip(keys, key, strict=True)]
            connection.execute(update(table).where(*row).values({name: replaced}))


def _without(value: Any, annotator: str) -> Any:
    """Return a value of JSON with the annotator replaced, as text or as the key of an object."""
    if isinstance(value, dict):
        return {_without(key, annotator): _without(each, annotator) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each, annotator) for each in value]
    return _ERASED if value == annotator else value
