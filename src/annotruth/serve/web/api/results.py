"""Results of the latest snapshot: items, annotators, advice, changes; and earlier snapshots."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Query
from sqlalchemy import Connection

from annotruth.serve.store.content import get_content, get_gold, get_traits
from annotruth.serve.store.events import current_labels, slots_changed_since
from annotruth.serve.store.records import StoredEvent
from annotruth.serve.store.snapshots import annotator_history, get_snapshot, snapshot_history
from annotruth.serve.web.api.parameters import (
    Context,
    Limit,
    Reader,
    SinceVersion,
    Start,
    make_router,
)
from annotruth.serve.web.results import Order, TableName, row_of, rows_of, table_part, to_rows
from annotruth.serve.web.snapshot_cache import LoadedSnapshot

router = make_router("results")

Sort = Annotated[str | None, Query(max_length=200, description="A column of the rows.")]
Status = Annotated[str | None, Query(max_length=100)]

_MOST_LABELS = 1000


@router.get("/projects/{project}/items")
def items(
    context: Context,
    access: Reader,
    *,
    sort: Sort = None,
    order: Order = "asc",
    status: Status = None,
    start: Start = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """Return items with their label, confidence and status; ``next`` is the next ``cursor``."""
    loaded = context.snapshots.get(access.project.id)
    return _part(loaded, "items", sort, order, status, start, limit)


@router.get("/projects/{project}/annotators")
def annotators(
    context: Context,
    access: Reader,
    *,
    sort: Sort = None,
    order: Order = "asc",
    verdict: Status = None,
    start: Start = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """Return annotators with their reliability, behavior and verdict."""
    loaded = context.snapshots.get(access.project.id)
    return _part(loaded, "annotators", sort, order, verdict, start, limit)


def _part(
    loaded: LoadedSnapshot | None,
    name: TableName,
    sort: str | None,
    order: Order,
    status: str | None,
    start: int,
    limit: int,
) -> dict[str, Any]:
    if loaded is None:
        return {"version": None, "total": 0, name: [], "next": None}
    part = table_part(loaded, name, sort=sort, order=order, status=status, start=start, limit=limit)
    return {
        "version": loaded.version,
        "total": part.n_rows,
        name: part.rows,
        "next": part.next_start,
    }


@router.get("/projects/{project}/items/{item:path}")
def item(item: str, context: Context, access: Reader) -> dict[str, Any]:
    """Return an item: its result, its content, its known truth, and who gave which label."""
    loaded = context.snapshots.get(access.project.id)
    result = None if loaded is None else row_of(loaded, "items", item)
    with context.database.connect() as connection:
        labels = _labels(connection, access.project.id, item=item)
        content = get_content(connection, access.project.id, item)
        gold = get_gold(connection, access.project.id, item)
    if result is None and not labels and content is None and gold is None:
        raise HTTPException(404, "there is no such item")
    return {
        "item": item,
        "version": None if loaded is None else loaded.version,
        "result": result,
        "content": content,
        "gold": gold,
        "labels": labels,
    }


@router.get("/projects/{project}/annotators/{annotator:path}")
def annotator(annotator: str, context: Context, access: Reader) -> dict[str, Any]:
    """Return an annotator: result, traits, what earlier snapshots said, and the latest labels."""
    loaded = context.snapshots.get(access.project.id)
    result = None if loaded is None else row_of(loaded, "annotators", annotator)
    with context.database.connect() as connection:
        labels = _labels(connection, access.project.id, annotator=annotator)
        history = annotator_history(connection, access.project.id, annotator)
        traits = get_traits(connection, access.project.id, annotator)
    if result is None and not labels and not traits:
        raise HTTPException(404, "there is no such annotator")
    return {
        "annotator": annotator,
        "version": None if loaded is None else loaded.version,
        "result": result,
        "traits": traits,
        "history": [_without(each._asdict(), "project", "annotator") for each in history],
        "labels": labels[-_MOST_LABELS:],
    }


def _labels(
    connection: Connection, project: int, *, item: str | None = None, annotator: str | None = None
) -> list[dict[str, Any]]:
    found = current_labels(connection, project, item=item, annotator=annotator)
    return [_shown(each) for each in found]


def _shown(label: StoredEvent) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "item": label.item,
        "annotator": label.annotator,
        "label": label.label,
        "submitted": label.submitted,
        "source": label.source,
    }
    return {**shown, "other_item": label.other_item} if label.other_item else shown


def _without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


@router.get("/projects/{project}/advice")
def advice(context: Context, access: Reader, limit: Limit = 100) -> dict[str, Any]:
    """Return how many labels to add, and which item to give whom, the highest gain first."""
    loaded = context.snapshots.get(access.project.id)
    if loaded is None:
        return {"version": None, "counts": None, "assignments": []}
    tables = loaded.keep("tables of advice", loaded.advice.tables)
    table = tables["comparisons" if access.project.kind == "comparisons" else "assignments"]
    return {
        "version": loaded.version,
        "counts": loaded.advice.to_dict(),
        "assignments": to_rows(table.slice(0, limit)),
    }


@router.get("/projects/{project}/changes")
def changes(
    context: Context, access: Reader, since: SinceVersion, start: Start = 0, limit: Limit = 100
) -> dict[str, Any]:
    """Return what changed after a version: items that got labels, and annotators.

    Items are those with new, edited or deleted labels, with their present results; the results of
    other items change little. Annotators are those whose reliability or verdict changed noticeably.
    """
    project = access.project.id
    loaded = context.snapshots.get(project)
    if loaded is None:
        return {"version": None, "items": [], "annotators": [], "next": None}
    with context.database.connect() as connection:
        before = get_snapshot(connection, project, since)
        if since and before is None:
            raise HTTPException(404, f"there is no version {since}")
        slots = slots_changed_since(connection, project, 0 if before is None else before.last_seq)
        history = annotator_history(connection, project)
    ids = sorted({item for item, _ in slots})
    latest = {each.annotator: each for each in history if since < each.version <= loaded.version}
    return {
        "version": loaded.version,
        "items": rows_of(loaded, "items", ids[start : start + limit]),
        "annotators": [_without(each._asdict(), "project") for each in latest.values()],
        "next": start + limit if start + limit < len(ids) else None,
    }


@router.get("/projects/{project}/snapshots")
def snapshots(
    context: Context, access: Reader, since: SinceVersion = 0, limit: Limit = 1000
) -> list[dict[str, Any]]:
    """Return the snapshots after a version, with the figures of each: the project's history."""
    with context.database.connect() as connection:
        found = snapshot_history(connection, access.project.id, since=since, limit=limit)
    return [_without(each._asdict(), "project", "folder") for each in found]
