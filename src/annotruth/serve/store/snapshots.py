"""Snapshots: the rows of saved fits, their folders, and the histories that they leave."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, func, select, update

from annotruth.serve.store.rows import add_all, find, find_one, put, rows_of
from annotruth.serve.store.tables import (
    AnnotatorHistory,
    HourlyCount,
    Project,
    Snapshot,
    WorkerState,
    hourly,
    project,
    snapshot,
)
from annotruth.serve.store.tables import annotator_history as history

_KEPT = 2  # a reader may still load the last but one
_LATEST_FIRST = (snapshot.c.version.desc(),)


def snapshots_folder(data_dir: Path) -> Path:
    """Return the folder below which all snapshots are saved."""
    return data_dir / "snapshots"


def next_version(connection: Connection, project_id: int) -> int:
    """Return the version of a project's next snapshot."""
    last = select(func.max(snapshot.c.version)).where(snapshot.c.project == project_id)
    return (connection.scalar(last) or 0) + 1


def folder_name(project_id: int, version: int) -> str:
    """Return the folder of a snapshot, relative to the folder of all."""
    return f"{project_id}/{version}"


def add_snapshot(connection: Connection, added: Snapshot, of: Project) -> bool:
    """Add the row of a saved fit; return False if data were erased from its project meanwhile.

    ``of`` is the project as it was when the labels were read. If data of a person were erased
    since then, the fit may contain them: the row is not added, and the caller removes the folder.
    """
    # The row is locked: an erasure at the same time comes before or after.
    chosen = select(project.c.erasures).where(project.c.id == of.id).with_for_update()
    if connection.scalar(chosen) != of.erasures:
        return False
    add_all(connection, [added])
    return True


def latest_snapshot(connection: Connection, project_id: int) -> Snapshot | None:
    """Return the latest snapshot whose folder is there, or None."""
    return next(iter(_saved(connection, project_id, 1)), None)


def snapshot_history(
    connection: Connection, project_id: int, *, since: int = 0, limit: int | None = None
) -> list[Snapshot]:
    """Return the snapshots after a version, oldest first; with a limit, the latest of them."""
    is_later = snapshot.c.version > since
    return find(
        connection, Snapshot, is_later, order=_LATEST_FIRST, limit=limit, project=project_id
    )[::-1]


def remove_old_snapshots(connection: Connection, data_dir: Path, project_id: int) -> None:
    """Remove the folders of all but the last two snapshots of a project; the rows stay."""
    kept = {each.version for each in _saved(connection, project_id, _KEPT)}
    with_folder = (snapshot.c.project == project_id) & (snapshot.c.folder != "")
    old = with_folder & snapshot.c.version.not_in(kept)
    folders = connection.scalars(select(snapshot.c.folder).where(old)).all()
    for folder in folders:
        shutil.rmtree(snapshots_folder(data_dir) / folder, ignore_errors=True)
    connection.execute(update(snapshot).where(old).values(folder=""))


def remove_orphans(connection: Connection, data_dir: Path) -> None:
    """Remove folders that no snapshot names, such as those of a worker that was killed."""
    named = set(connection.scalars(select(snapshot.c.folder).where(snapshot.c.folder != "")))
    root = snapshots_folder(data_dir)
    for folder in root.glob("*/*"):
        if folder.relative_to(root).as_posix() not in named:
            shutil.rmtree(folder, ignore_errors=True)


def _saved(connection: Connection, project_id: int, limit: int) -> list[Snapshot]:
    """Return the latest snapshots whose folders are there, the last first."""
    has_folder = snapshot.c.folder != ""
    return find(
        connection, Snapshot, has_folder, order=_LATEST_FIRST, limit=limit, project=project_id
    )


def annotator_history(
    connection: Connection, project_id: int, annotator: str | None = None
) -> list[AnnotatorHistory]:
    """Return the history of an annotator, or of all, in order of the versions."""
    conditions = [] if annotator is None else [history.c.annotator == annotator]
    order = [history.c.version, history.c.annotator]
    return find(connection, AnnotatorHistory, *conditions, order=order, project=project_id)


def latest_annotator_history(
    connection: Connection, project_id: int
) -> dict[str, AnnotatorHistory]:
    """Return the latest row of the history of every annotator."""
    last = (
        select(history.c.annotator, func.max(history.c.version).label("version"))
        .where(history.c.project == project_id)
        .group_by(history.c.annotator)
        .subquery()
    )
    query = select(history).join(
        last,
        (history.c.annotator == last.c.annotator)
        & (history.c.version == last.c.version)
        & (history.c.project == project_id),
    )
    return {row.annotator: row for row in rows_of(connection, AnnotatorHistory, query)}


def set_hourly_counts(
    connection: Connection, project_id: int, counts: Mapping[datetime, int]
) -> None:
    """Store the number of labels of some hours, each given by its first moment."""
    put(connection, [HourlyCount(project_id, hour, number) for hour, number in counts.items()])


def hourly_counts(
    connection: Connection,
    project_id: int,
    since: datetime | None = None,
    limit: int | None = None,
) -> dict[datetime, int]:
    """Return the number of labels per hour, in order; with a limit, of the last hours."""
    conditions = [] if since is None else [hourly.c.hour >= since]
    order = [hourly.c.hour.desc()]
    found = find(connection, HourlyCount, *conditions, order=order, limit=limit, project=project_id)
    return {each.hour: each.n_labels for each in reversed(found)}


def get_worker_state(connection: Connection, project_id: int) -> WorkerState:
    """Return how far the worker is in a project."""
    return find_one(connection, WorkerState, project=project_id) or WorkerState(project_id)
