"""Projects, what is known of their items and annotators, their snapshots, and alerts with deliveries."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from sqlalchemy import Connection, delete, func, insert, select, update

from annotruth.errors import InputError, listed, shorten, shown
from annotruth.observations.validate import check_value
from annotruth.serve.store.rows import (
    add,
    add_all,
    change,
    check_text,
    count,
    find,
    find_one,
    latest,
    put,
    rows_of,
)
from annotruth.serve.store.tables import (
    Alert,
    AnnotatorHistory,
    ContentRow,
    Delivery,
    GoldRow,
    HourlyCount,
    Lease,
    PlatformConnection,
    Project,
    ProjectKind,
    Snapshot,
    TraitRow,
    Webhook,
    WorkerState,
    delivery,
    gold,
    hourly,
    item_content,
    lease,
    platform_connection,
    project,
    snapshot,
)
from annotruth.serve.store.tables import annotator_history as history

_NAME = re.compile(r"[a-z0-9-]{1,60}")
_MAX_ERROR = 500

_KEPT = 2  # a reader may still load the last but one


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


def lock_project(connection: Connection, project_id: int) -> None:
    """Wait for other transactions that have locked the project; SQLite has one writer anyway."""
    # With key_share, labels can be appended meanwhile.
    chosen = select(project.c.id).where(project.c.id == project_id)
    connection.execute(chosen.with_for_update(key_share=True))


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
    return latest(connection, Snapshot, is_later, limit=limit, project=project_id)[::-1]


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
    return latest(connection, Snapshot, snapshot.c.folder != "", limit=limit, project=project_id)


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


def add_alert(
    connection: Connection,
    project_id: int,
    kind: str,
    subject: str,
    text: str,
    detail: Mapping[str, Any],
    *,
    created: datetime,
) -> Alert:
    """Add an alert, and its delivery to every active webhook for its kind; return the alert."""
    values = {"kind": kind, "subject": subject, "text": text, "detail": dict(detail)}
    added = add(connection, Alert, project=project_id, created=created, **values)
    first = {"alert": added.id, "attempts": 0, "next_attempt": created, "status": "waiting"}
    deliveries = [
        {"webhook": each.id, **first}
        for each in find(connection, Webhook, project=project_id, active=True)
        if kind in each.kinds
    ]
    if deliveries:
        connection.execute(insert(delivery), deliveries)
    return added


def due_deliveries(
    connection: Connection, now: datetime, *, limit_per_webhook: int
) -> list[Delivery]:
    """Return deliveries that wait and whose next attempt is due, the earliest first.

    The limit is of each webhook: one that does not answer must not keep the others waiting.
    """
    earliest_first = (delivery.c.next_attempt, delivery.c.id)
    place = func.row_number().over(partition_by=delivery.c.webhook, order_by=earliest_first)
    ranked = (
        select(delivery.c.id, place.label("place"))
        .where(delivery.c.status == "waiting", delivery.c.next_attempt <= now)
        .subquery()
    )
    query = select(delivery).join(ranked, ranked.c.id == delivery.c.id)
    first = query.where(ranked.c.place <= limit_per_webhook).order_by(*earliest_first)
    return rows_of(connection, Delivery, first)


def last_deliveries(connection: Connection, webhooks: Iterable[Webhook]) -> dict[int, Delivery]:
    """Return the last delivery of each webhook that has one, by the webhook's number."""
    return {
        each.id: last
        for each in webhooks
        for last in latest(connection, Delivery, webhook=each.id, limit=1)
    }
