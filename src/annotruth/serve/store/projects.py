"""Projects: their names, kinds and settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import Connection, Row, insert, select, update

from annotruth.errors import InputError, listed, shown
from annotruth.serve.store.records import Project, ProjectKind
from annotruth.serve.store.schema import project

_NAME = re.compile(r"[a-z0-9-]{1,60}")


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
    row = {
        "name": name,
        "kind": kind,
        "settings": dict(settings),
        "created": now,
        "erasures": 0,
    }
    return _project(connection.execute(insert(project).values(row).returning(project)).one())


def check_name(name: str) -> None:
    """Refuse a name that no project can have."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the project's name {shown(name)} must have 1 to 60 lower-case letters, digits and -"
        )


def get_project(connection: Connection, name: str) -> Project | None:
    """Return the project of a name, or None."""
    row = connection.execute(select(project).where(project.c.name == name)).one_or_none()
    return None if row is None else _project(row)


def list_projects(connection: Connection) -> list[Project]:
    """Return all projects in the order of creation."""
    return [_project(row) for row in connection.execute(select(project).order_by(project.c.id))]


def change_settings(connection: Connection, project_id: int, changes: Mapping[str, Any]) -> Project:
    """Change some settings of a project; None removes one. Return the project."""
    # The row is locked, so that of two changes at once none is lost.
    chosen = select(project).where(project.c.id == project_id).with_for_update()
    settings = {**connection.execute(chosen).one().settings, **changes}
    kept = {name: value for name, value in settings.items() if value is not None}
    changed = update(project).where(project.c.id == project_id).values(settings=kept)
    return _project(connection.execute(changed.returning(project)).one())


def _project(row: Row[Any]) -> Project:
    return Project(**row._mapping)
