"""Projects, and what is known of their items and annotators: known truths, content, traits, leases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import Connection, delete, select, update

from annotruth.errors import InputError, listed, shorten, shown
from annotruth.observations.validate import check_value
from annotruth.serve.store.columns import check_text
from annotruth.serve.store.rows import add, change, count, find, find_one, lock_project, put
from annotruth.serve.store.tables import (
    ContentRow,
    GoldRow,
    Lease,
    PlatformConnection,
    Project,
    ProjectKind,
    TraitRow,
    gold,
    item_content,
    lease,
    platform_connection,
    project,
)

_NAME = re.compile(r"[a-z0-9-]{1,60}")
_MAX_ERROR = 500


def create_project(
    connection: Connection,
    name: str,
    kind: ProjectKind,
    settings: Mapping[str, Any],
    now: datetime,
) -> Project:
    """Create a project and return it."""
    check_name(name)
    if kind not in get_args(ProjectKind):
        raise InputError(f"unknown kind {shown(kind)}: choose {listed(get_args(ProjectKind))}")
    if get_project(connection, name) is not None:
        raise InputError(f"there is a project {name!r} already: choose another name")
    return add(connection, Project, name=name, kind=kind, settings=dict(settings), created=now)


def check_name(name: str) -> None:
    """Refuse a name that no project can have."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the project's name {shown(name)} must have 1 to 60 lower-case letters, digits and -"
        )


def get_project(connection: Connection, name: str) -> Project | None:
    """Return the project of a name, or None."""
    return find_one(connection, Project, name=name)


def list_projects(connection: Connection) -> list[Project]:
    """Return all projects in the order of creation."""
    return find(connection, Project)


def change_settings(connection: Connection, project_id: int, changes: Mapping[str, Any]) -> Project:
    """Change some settings of a project; None removes one. Return the project."""
    # The row is locked, so that of two changes at once none is lost.
    chosen = select(project.c.settings).where(project.c.id == project_id).with_for_update()
    settings = {**connection.execute(chosen).scalar_one(), **changes}
    kept = {name: value for name, value in settings.items() if value is not None}
    changed = update(project).where(project.c.id == project_id).values(settings=kept)
    return Project(*connection.execute(changed.returning(project)).one())


def keep_contact(
    connection: Connection,
    number: int,
    now: datetime,
    *,
    error: str = "",
    cursor: Mapping[str, Any] | None = None,
) -> None:
    """Record when a platform was last in contact, what went wrong, and changes of the cursor."""
    of_connection = platform_connection.c.id == number
    query = select(platform_connection.c.cursor).where(of_connection).with_for_update()
    before = connection.scalar(query)
    if before is None:
        return  # removed meanwhile
    changes = {
        "last_contact": now,
        "last_error": shorten(error, _MAX_ERROR),
        "cursor": {**before, **(cursor or {})},
    }
    change(connection, PlatformConnection, changes, id=number)


def check_gold(labels: Mapping[str, str | None]) -> None:
    """Refuse gold labels that cannot be stored."""
    for item, label in labels.items():
        check_text("item", item)
        if label is not None:
            check_text("label", label)
            check_value("item", item)
            check_value("label", label)


def set_gold(connection: Connection, project_id: int, labels: Mapping[str, str | None]) -> None:
    """Set the gold labels of some items; None removes one."""
    check_gold(labels)
    removed = [item for item, label in labels.items() if label is None]
    if removed:
        of_items = (gold.c.project == project_id) & gold.c.item.in_(removed)
        connection.execute(delete(gold).where(of_items))
    put(connection, [GoldRow(project_id, i, t) for i, t in labels.items() if t is not None])


def get_gold(connection: Connection, project_id: int, item: str) -> str | None:
    """Return the gold label of an item, or None."""
    found = find_one(connection, GoldRow, project=project_id, item=item)
    return None if found is None else found.label


def all_gold(connection: Connection, project_id: int) -> dict[str, str]:
    """Return the gold labels by item."""
    return {each.item: each.label for each in find(connection, GoldRow, project=project_id)}


def set_content(
    connection: Connection, project_id: int, contents: Mapping[str, Any], now: datetime
) -> None:
    """Set the content of some items, which pages show."""
    for item in contents:
        check_text("item", item)
    put(connection, [ContentRow(project_id, i, content, now) for i, content in contents.items()])


def get_content(connection: Connection, project_id: int, item: str) -> Any:
    """Return the content of an item, or None."""
    found = find_one(connection, ContentRow, project=project_id, item=item)
    return None if found is None else found.content


def items_with_content(connection: Connection, project_id: int) -> list[str]:
    """Return the items with content, with or without labels, in the order they were added."""
    query = select(item_content.c.item).where(item_content.c.project == project_id)
    return list(connection.scalars(query.order_by(item_content.c.added, item_content.c.item)))


def set_traits(
    connection: Connection, project_id: int, traits: Mapping[str, Mapping[str, Any]]
) -> None:
    """Set the traits of some annotators, such as their group or language."""
    for annotator in traits:
        check_text("annotator", annotator)
    put(connection, [TraitRow(project_id, name, dict(given)) for name, given in traits.items()])


def get_traits(connection: Connection, project_id: int, annotator: str) -> dict[str, Any]:
    """Return the traits of an annotator."""
    found = find_one(connection, TraitRow, project=project_id, annotator=annotator)
    return {} if found is None else found.traits


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
    is_other = lease.c.annotator != annotator
    if count(connection, Lease, is_other, project=project_id, item=item) >= places:
        return False
    put(connection, [Lease(project_id, item, annotator, expires)])
    return True


def active_leases(
    connection: Connection, project_id: int, now: datetime, **equal: Any
) -> list[Lease]:
    """Return the leases that have not expired, all or those of an ``item`` or an ``annotator``."""
    is_active, order = lease.c.expires > now, [lease.c.expires]
    return find(connection, Lease, is_active, order=order, project=project_id, **equal)
