"""Snapshots: the rows of saved fits, their folders, and the histories that they leave."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, func, insert, select, update

from annotruth.serve.store.records import (
    AnnotatorHistory,
    Project,
    Snapshot,
    WorkerState,
)
from annotruth.serve.store.schema import (
    annotator_history as history,
)
from annotruth.serve.store.schema import (
    hourly,
    project,
    snapshot,
    worker_state,
)
from annotruth.serve.store.statements import upsert

_KEPT = 2  # a reader may still load the last but one


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
    connection.execute(insert(snapshot).values(**added._asdict()))
    return True


def latest_snapshot(connection: Connection, project_id: int) -> Snapshot | None:
    """Return the latest snapshot whose folder is there, or None."""
    return next(iter(_saved(connection, project_id, 1)), None)


def get_snapshot(connection: Connection, project_id: int, version: int) -> Snapshot | None:
    """Return the snapshot of a version, whose folder may have been removed."""
    query = select(snapshot).where(snapshot.c.project == project_id, snapshot.c.version == version)
    row = connection.execute(query).one_or_none()
    return None if row is None else Snapshot(*row)


def snapshot_history(
    connection: Connection, project_id: int, *, since: int = 0, limit: int | None = None
) -> list[Snapshot]:
    """Return the snapshots after a version, oldest first; with a limit, the latest of them."""
    query = select(snapshot).where(snapshot.c.project == project_id, snapshot.c.version > since)
    latest_first = query.order_by(snapshot.c.version.desc()).limit(limit)
    return [Snapshot(*row) for row in connection.execute(latest_first)][::-1]


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
    query = select(snapshot).where(snapshot.c.project == project_id, snapshot.c.folder != "")
    latest_first = query.order_by(snapshot.c.version.desc()).limit(limit)
    return [Snapshot(*row) for row in connection.execute(latest_first)]


def add_annotator_history(connection: Connection, rows: Iterable[AnnotatorHistory]) -> None:
    """Add what a snapshot said about annotators."""
    values = [each._asdict() for each in rows]
    if values:
        connection.execute(insert(history), values)


def annotator_history(
    connection: Connection, project_id: int, annotator: str | None = None
) -> list[AnnotatorHistory]:
    """Return the history of an annotator, or of all, in order of the versions."""
    query = select(history).where(history.c.project == project_id)
    if annotator is not None:
        query = query.where(history.c.annotator == annotator)
    ordered = query.order_by(history.c.version, history.c.annotator)
    return [AnnotatorHistory(*row) for row in connection.execute(ordered)]


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
    return {row.annotator: AnnotatorHistory(*row) for row in connection.execute(query)}


def set_hourly_counts(
    connection: Connection, project_id: int, counts: Mapping[datetime, int]
) -> None:
    """Store the number of labels of some hours, each given by its first moment."""
    if not counts:
        return
    rows = [
        {"project": project_id, "hour": hour, "n_labels": number} for hour, number in counts.items()
    ]
    connection.execute(upsert(connection, hourly), rows)


def hourly_counts(
    connection: Connection,
    project_id: int,
    since: datetime | None = None,
    limit: int | None = None,
) -> dict[datetime, int]:
    """Return the number of labels per hour, in order; with a limit, of the last hours."""
    query = select(hourly.c.hour, hourly.c.n_labels).where(hourly.c.project == project_id)
    if since is not None:
        query = query.where(hourly.c.hour >= since)
    latest = connection.execute(query.order_by(hourly.c.hour.desc()).limit(limit)).all()
    return dict(latest[::-1])


def get_worker_state(connection: Connection, project_id: int) -> WorkerState:
    """Return how far the worker is in a project."""
    query = select(worker_state).where(worker_state.c.project == project_id)
    row = connection.execute(query).one_or_none()
    return WorkerState(project_id) if row is None else WorkerState(*row)


def set_worker_state(connection: Connection, state: WorkerState) -> None:
    """Store how far the worker is in a project; there is one worker."""
    connection.execute(upsert(connection, worker_state), [state._asdict()])
