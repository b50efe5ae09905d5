"""Events of labels: appended once, read in order, and the current labels that follow from them."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Integer, Text, column, func, select, text

from annotruth.errors import InputError, shown
from annotruth.observations.validate import check_value
from annotruth.serve.store.current import keep_current, read_events, stored_events
from annotruth.serve.store.rows import MAX_ID_LENGTH, check_text, find, to_microseconds
from annotruth.serve.store.tables import (
    AppendedEvents,
    Batch,
    LabelEvent,
    ProjectKind,
    StoredEvent,
    event,
    project,
)

MAX_LABEL_LENGTH = 10_000
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)

_APPEND_LOCK = 0x616E6E70
# What an event is inserted with: all but its number.
_INSERTED = [each for each in event.columns if each.name != "seq"]

# Pairs as a table, whose rows a database looks up in an index of events. The project is a column and
# SQLite's rows are distinct, because SQLite would else look for each of the project's events in the
# pairs; PostgreSQL does so with distinct rows, until it has statistics.
_PAIRS = {
    "sqlite": """
        select distinct cast(:project as integer) as project,
            json_extract(value, '$[0]') as a, json_extract(value, '$[1]') as b
        from json_each(:pairs)
        """,
    "postgresql": """
        select cast(:project as integer) as project, value->>0 as a, value->>1 as b
        from json_array_elements(cast(:pairs as json))
        """,
}

EventKey = tuple[int, str, str]  # project, source and id of an event
Annotation = tuple[str, str]  # a source and its name for the annotation


def check_event(given: LabelEvent, kind: ProjectKind) -> None:
    """Refuse an event that lacks something, or has text that cannot be stored."""
    named = {
        "item": given.item,
        "annotator": given.annotator,
        "label": given.label,
        "right item": given.other_item,
        "event id": given.event_id,
        "annotation": given.annotation,
    }
    for what, value in named.items():
        if value:
            check_text(what, value, MAX_LABEL_LENGTH if what == "label" else MAX_ID_LENGTH)
    for what, value in (("event id", given.event_id), ("annotation", given.annotation)):
        if value == "":
            raise InputError(f"the {what} is empty: leave it out or give one")
    for time in (given.started, given.submitted):
        if time is not None and time.tzinfo is None:
            raise InputError(f"the time {time} has no time zone: write it as 2026-01-31T12:00:00Z")
        if time is not None and time < _EARLIEST:
            raise InputError(
                f"the time {time.isoformat()} is before {_EARLIEST.year}: correct it, or leave it out"
            )
    if given.deleted and given.annotation is not None:
        return
    needed = ["item", "annotator"] if kind == "labels" else ["item", "right item", "annotator"]
    missing = [what for what in needed if not named[what]]
    if not given.deleted and not given.label:
        missing.append("label" if kind == "labels" else "outcome")
    elif given.deleted and kind == "comparisons":
        missing = ["annotation"]
    if missing:
        raise InputError(f"the event has no {missing[0]}")
    if not given.deleted:  # what an earlier version stored can be deleted
        for what in (*needed, *(["label"] if kind == "labels" else [])):
            check_value(what, str(named[what]))
        if kind == "comparisons" and given.item == given.other_item:
            raise InputError(
                f"item {shown(given.item)} is compared with itself: leave the comparison out, or "
                "correct one of its items"
            )


def annotation_of_slot(item: str, annotator: str) -> str:
    """Return the default name of an annotator's annotation of an item; it shows neither id."""
    digest = hashlib.blake2b(f"{len(item)}:{item}{annotator}".encode(), digest_size=15).digest()
    return f"~{base64.urlsafe_b64encode(digest).decode()}"


def append_events(
    connection: Connection,
    project_id: int,
    source: str,
    events: Iterable[LabelEvent],
    received: datetime,
) -> AppendedEvents:
    """Append events, except those that the source has sent before; return how many were new."""
    kind, events = _kind_of(connection, project_id), list(events)
    for each in events:
        check_event(each, kind)
    return append_batches(connection, [Batch(project_id, source, events)], received)[0]


def append_batches(
    connection: Connection, batches: Sequence[Batch], received: datetime
) -> list[AppendedEvents]:
    """Append the checked events of several requests; return how many were new of each.

    The number of statements does not depend on that of requests and projects: on a server, each
    costs a round trip before the labels are acknowledged.
    """
    kinds = _kinds_of(connection, {batch.project for batch in batches})
    rows = [
        [_row(each, kinds[batch.project], batch, received) for each in batch.events]
        for batch in batches
    ]
    together = [row for of_batch in rows for row in of_batch]
    n_new = _insert_new(connection, together) if together else 0
    new = None if n_new == len(together) else _last_ids(connection, n_new)
    last = _last_seqs(connection, list(kinds))
    return [
        _count_new(of_batch, new, last[batch.project])
        for batch, of_batch in zip(batches, rows, strict=True)
    ]


def _last_ids(connection: Connection, number: int) -> set[EventKey]:
    """Return project, source and id of the last events; nobody else appends meanwhile."""
    columns = event.c.project, event.c.source, event.c.event_id
    query = select(*columns).order_by(event.c.seq.desc()).limit(number)
    return {(project, source, event_id) for project, source, event_id in connection.execute(query)}


def _count_new(rows: list[tuple[Any, ...]], new: set[EventKey] | None, last: int) -> AppendedEvents:
    """Count the rows that are new, and take them from the set: an id is new once."""
    if new is None:
        return AppendedEvents(len(rows), 0, last)
    ids: set[EventKey] = {row[:3] for row in rows} & new
    new -= ids
    return AppendedEvents(len(ids), len(rows) - len(ids), last)


def _kinds_of(connection: Connection, projects: Collection[int]) -> dict[int, ProjectKind]:
    query = select(project.c.id, project.c.kind).where(project.c.id.in_(projects))
    kinds: dict[int, ProjectKind] = {row[0]: row[1] for row in connection.execute(query)}
    if missing := set(projects) - set(kinds):
        raise InputError(f"there is no project {min(missing)}")
    return kinds


def _kind_of(connection: Connection, project_id: int) -> ProjectKind:
    return _kinds_of(connection, [project_id])[project_id]


def _row(given: LabelEvent, kind: ProjectKind, batch: Batch, received: datetime) -> tuple[Any, ...]:
    """Return the values of ``_INSERTED``, with times as they are stored."""
    event_id = given.event_id or uuid.uuid4().hex
    annotation = given.annotation
    if annotation is None:
        by_slot = kind == "labels"
        annotation = annotation_of_slot(given.item, given.annotator) if by_slot else event_id
    started, submitted = _times(given, received)
    return (
        batch.project,
        batch.source,
        event_id,
        annotation,
        given.item,
        given.other_item,
        given.annotator,
        given.label,
        None if started is None else to_microseconds(started),
        to_microseconds(submitted),
        given.deleted,
        to_microseconds(received),
    )


def _times(given: LabelEvent, received: datetime) -> tuple[datetime | None, datetime]:
    """Return when an annotator began and ended.

    An end in the future is the time of receipt; the time between both stays. A start after the end
    is left out.
    """
    started, ended = given.started, given.submitted or received
    if started is not None and started > ended:
        started = None
    if ended <= received:
        return started, ended
    try:
        return None if started is None else received - (ended - started), received
    except OverflowError:  # before the year 1
        return None, received


def _insert_new(connection: Connection, rows: list[tuple[Any, ...]]) -> int:
    """Insert the rows whose event is not there yet; return their number."""
    names = ", ".join(each.name for each in _INSERTED)
    once = "on conflict (project, source, event_id) do nothing"
    if connection.dialect.name == "sqlite":
        values = ", ".join("?" * len(_INSERTED))
        insert = f"insert into event ({names}) values ({values}) {once}"
        return connection.exec_driver_sql(insert, rows).rowcount
    lock_appends(connection)
    # One statement with a list per column: many rows at once, and their number is known.
    lists = {
        each.name: list(column)
        for each, column in zip(_INSERTED, zip(*rows, strict=True), strict=True)
    }
    types = [(each.name, each.type.compile(connection.dialect)) for each in _INSERTED]
    arrays = ", ".join(f"cast(:{name} as {type_}[])" for name, type_ in types)
    insert = f"insert into event ({names}) select * from unnest({arrays}) {once}"
    return connection.execute(text(insert), lists).rowcount


def lock_appends(connection: Connection) -> None:
    """Wait for others that append events, and let them wait until the end of the transaction.

    PostgreSQL numbers rows before they are committed. Without the lock, a reader of all rows after
    some number could miss a row with a lower one that is committed later. SQLite has one writer.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _APPEND_LOCK})


def last_seq(connection: Connection, project_id: int) -> int:
    """Return the number of a project's last event, or 0."""
    return _last_seqs(connection, [project_id]).get(project_id, 0)


def _last_seqs(connection: Connection, projects: Sequence[int]) -> dict[int, int]:
    # By a subquery per project, each database looks up the end of the index, and reads no events.
    last = select(func.max(event.c.seq)).where(event.c.project == project.c.id).scalar_subquery()
    query = select(project.c.id, func.coalesce(last, 0)).where(project.c.id.in_(projects))
    return {row[0]: row[1] for row in connection.execute(query)}


def events_since(
    connection: Connection, project_id: int, seq: int, limit: int
) -> list[StoredEvent]:
    """Return up to ``limit`` events after a number, in order."""
    return find(connection, StoredEvent, event.c.seq > seq, limit=limit, project=project_id)


def current_labels(
    connection: Connection,
    project_id: int,
    *,
    items: Sequence[str] | None = None,
    annotator: str | None = None,
) -> list[StoredEvent]:
    """Return the current labels, all or those of some items or an annotator, in order of ``seq``."""
    conditions = [event.c.project == project_id]
    if items is not None:
        conditions.append(event.c.item.in_(items))
    if annotator is not None:
        conditions.append(event.c.annotator == annotator)
    chosen = conditions[0]
    if len(conditions) > 1:
        chosen = _of_annotations(connection, project_id, _annotations(connection, *conditions))
    events = read_events(connection, StoredEvent._fields, chosen)
    return [
        each
        for each in stored_events(keep_current(events, _kind_of(connection, project_id)))
        if (items is None or each.item in items) and annotator in (None, each.annotator)
    ]


def _annotations(connection: Connection, *conditions: ColumnElement[bool]) -> set[Annotation]:
    query = select(event.c.source, event.c.annotation).where(*conditions)
    return {(source, annotation) for source, annotation in connection.execute(query)}


def _of_annotations(
    connection: Connection, project_id: int, annotations: set[Annotation]
) -> ColumnElement[bool]:
    """Return the condition that chooses all events of some annotations.

    The annotations are found by a query of their own: as a part of this one, PostgreSQL would look
    them up for every event until it has statistics.
    """
    chosen = (
        text(_PAIRS[connection.dialect.name])
        .bindparams(project=project_id, pairs=json.dumps(sorted(annotations)))
        .columns(column("project", Integer), column("a", Text), column("b", Text))
        .cte("pairs")
    )
    return (
        (event.c.project == chosen.c.project)
        & (event.c.source == chosen.c.a)
        & (event.c.annotation == chosen.c.b)
    )


class AnnotationState(NamedTuple):
    """The latest event of an annotation, and whether it is a deletion."""

    event_id: str
    deleted: bool


def annotation_states(
    connection: Connection, project_id: int, source: str
) -> dict[str, AnnotationState]:
    """Return the state of every annotation that a source has sent."""
    latest_first = (event.c.submitted.desc(), event.c.seq.desc())
    place = func.row_number().over(partition_by=event.c.annotation, order_by=latest_first)
    ranked = (
        select(event.c.annotation, event.c.event_id, event.c.deleted, place.label("place"))
        .where(event.c.project == project_id, event.c.source == source)
        .subquery()
    )
    query = select(ranked.c.annotation, ranked.c.event_id, ranked.c.deleted)
    rows = connection.execute(query.where(ranked.c.place == 1))
    return {annotation: AnnotationState(*state) for annotation, *state in rows}
