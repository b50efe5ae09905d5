"""Connections: labelling tools that send labels to a project."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from annotruth.errors import shorten
from annotruth.serve.store.schema import connection as table

_MAX_ERROR = 500


class PlatformConnection(NamedTuple):
    """A labelling tool that sends labels to a project.

    Attributes
    ----------
    id
        Its number, which is part of the address of its webhook.
    project
        The project that the labels go to.
    kind
        The platform: "label-studio", "argilla", "potato", "cvat" or "generic".
    settings
        Which question is read, and how the platform's API is reached.
    secret
        What signs the platform's messages.
    cursor
        What polling and predictions remember.
    last_contact
        When the platform last sent something, or was last polled.
    last_error
        What went wrong last; an empty text since something went well.

    Examples
    --------
    >>> PlatformConnection(3, 1, "label-studio", {}, "secret", {}, None, "").source
    'label-studio:3'
    """

    id: int
    project: int
    kind: str
    settings: dict[str, Any]
    secret: str
    cursor: dict[str, Any]
    last_contact: datetime | None
    last_error: str

    @property
    def source(self) -> str:
        """The source of its events."""
        return f"{self.kind}:{self.id}"


def add_connection(
    connection: Connection, project_id: int, kind: str, settings: Mapping[str, Any], secret: str
) -> PlatformConnection:
    """Add a connection to a project and return it."""
    row = {
        "project": project_id,
        "kind": kind,
        "settings": dict(settings),
        "secret": secret,
        "cursor": {},
        "last_error": "",
    }
    number = connection.execute(insert(table).values(row)).inserted_primary_key
    assert number is not None
    found = get_connection(connection, number[0])
    assert found is not None
    return found


def get_connection(connection: Connection, number: int) -> PlatformConnection | None:
    """Return a connection by its number, None if there is none."""
    row = connection.execute(select(table).where(table.c.id == number)).one_or_none()
    return None if row is None else PlatformConnection(*row)


def list_connections(
    connection: Connection, project_id: int | None = None
) -> list[PlatformConnection]:
    """Return the connections of a project, or of all projects."""
    query = select(table).order_by(table.c.id)
    if project_id is not None:
        query = query.where(table.c.project == project_id)
    return [PlatformConnection(*row) for row in connection.execute(query)]


def remove_connection(connection: Connection, project_id: int, number: int) -> bool:
    """Remove a connection of a project, and return whether there was one; its labels stay."""
    query = delete(table).where(table.c.project == project_id, table.c.id == number)
    return connection.execute(query).rowcount > 0


def keep_contact(
    connection: Connection,
    number: int,
    now: datetime,
    *,
    error: str = "",
    cursor: Mapping[str, Any] | None = None,
) -> None:
    """Record when a platform was last in contact, what went wrong, and changes of the cursor."""
    query = select(table.c.cursor).where(table.c.id == number).with_for_update()
    before = connection.scalar(query)
    if before is None:
        return  # removed meanwhile
    changes = {
        "last_contact": now,
        "last_error": shorten(error, _MAX_ERROR),
        "cursor": {**before, **(cursor or {})},
    }
    connection.execute(update(table).where(table.c.id == number).values(changes))
