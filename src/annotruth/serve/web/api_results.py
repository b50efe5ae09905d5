"""Results of the latest snapshot, earlier snapshots, what to label now, and live events."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Query
from pydantic import BaseModel, Field
from sqlalchemy import Connection
from starlette.responses import StreamingResponse

from annotruth.serve.store.events import current_labels
from annotruth.serve.store.projects import (
    annotator_history,
    get_content,
    get_gold,
    get_traits,
    snapshot_history,
)
from annotruth.serve.store.rows import utc_now
from annotruth.serve.store.tables import StoredEvent
from annotruth.serve.web.auth import Access
from annotruth.serve.web.parameters import (
    MAX_INTEGER,
    Context,
    Limit,
    Reader,
    ServeContext,
    SinceVersion,
    Writer,
    make_router,
)
from annotruth.serve.web.results import Order, TableName, to_rows, without

router, queue_router, live_router = map(make_router, ("results", "queue", "live"))


class _Part(BaseModel):
    sort: str | None = Field(None, max_length=200, description="A column of the rows.")
    order: Order = "asc"
    start: int = Field(0, alias="cursor", ge=0, le=MAX_INTEGER)
    limit: int = Field(100, ge=1, le=1000)


class _ItemsPart(_Part):
    status: str | None = Field(None, max_length=100)


class _AnnotatorsPart(_Part):
    verdict: str | None = Field(None, max_length=100)


Person = Annotated[str, Query(min_length=1, max_length=512)]

_MOST_LABELS = 1000
_ADVICE = ("verdict", "ask", "reason")
_SHOWN = ("item", "annotator", "label", "submitted", "source", "other_item")


@router.get("/projects/{project}/items")
def items(context: Context, access: Reader, part: Annotated[_ItemsPart, Query()]) -> dict[str, Any]:
    """Return items with their label, confidence and status; ``next`` is the next ``cursor``."""
    return _part(context, access, "items", part, part.status)


@router.get("/projects/{project}/annotators")
def annotators(
    context: Context, access: Reader, part: Annotated[_AnnotatorsPart, Query()]
) -> dict[str, Any]:
    """Return annotators with their reliability, behavior and verdict."""
    return _part(context, access, "annotators", part, part.verdict)


def _part(
    context: ServeContext, access: Access, name: TableName, part: _Part, status: str | None
) -> dict[str, Any]:
    loaded = context.snapshots.get(access.project.id)
    if loaded is None:
        return {"version": None, "total": 0, name: [], "next": None}
    table = loaded.items if name == "items" else loaded.annotators
    rows = table.part(part.sort, part.order, status, part.start, part.limit)
    return {"version": loaded.version, **rows}


@router.get("/projects/{project}/items/{item:path}")
def item(item: str, context: Context, access: Reader) -> dict[str, Any]:
    """Return an item: its result, its content, its known truth, and who gave which label."""
    loaded = context.snapshots.get(access.project.id)
    result = None if loaded is None else loaded.items.row(item)
    with context.database.connect() as connection:
        labels = _labels(connection, access.project.id, items=[item])
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
    result = None if loaded is None else loaded.annotators.row(annotator)
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
        "history": [without(each, "project", "annotator") for each in history],
        "labels": labels[-_MOST_LABELS:],
    }


def _labels(connection: Connection, project: int, **of: Any) -> list[dict[str, Any]]:
    hidden = [name for name in StoredEvent._fields if name not in _SHOWN]
    return [
        without(each, *hidden, *(() if each.other_item else ("other_item",)))
        for each in current_labels(connection, project, **of)
    ]


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


@router.get("/projects/{project}/snapshots")
def snapshots(
    context: Context, access: Reader, since: SinceVersion = 0, limit: Limit = 1000
) -> list[dict[str, Any]]:
    """Return the snapshots after a version, with the figures of each: the project's history."""
    with context.database.connect() as connection:
        found = snapshot_history(connection, access.project.id, since=since, limit=limit)
    return [without(each, "project", "folder") for each in found]


@queue_router.get("/projects/{project}/next")
def next_(context: Context, access: Writer, annotator: Person) -> dict[str, Any]:
    """Return the item that this annotator should label now, and reserve it for them.

    The item is reserved until ``expires``; whoever asks again before gets the same one. ``advice``
    is the verdict on the annotator: it is for you to decide whether to ask them.
    """
    project = access.project
    now = utc_now()
    task = context.queue.next_task(project, annotator, now)
    loaded = context.snapshots.get(project.id)
    person = None if loaded is None else loaded.annotators.row(annotator)
    advice = None if person is None else {name: person.get(name) for name in _ADVICE}
    if task is None:
        return {"item": None, "reason": "no item needs a label by this annotator", "advice": advice}
    items = [each for each in task if each]
    with context.database.connect() as connection:
        content = [get_content(connection, project.id, each) for each in items]
    ends: dict[str, Any] = {"expires": now + context.queue.lease, "advice": advice}
    if task.other_item:
        pair = {"left": task.item, "right": task.other_item}
        return {**pair, "left_content": content[0], "right_content": content[1], **ends}
    return {"item": task.item, "content": content[0], **ends}


@live_router.get(
    "/projects/{project}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def events(context: Context, access: Reader) -> StreamingResponse:
    """Return a stream of server-sent events: the state of the project, then its changes.

    Each event is named ``change``; its data is an object with those of ``last_seq`` (the last
    label), ``version`` (the latest snapshot) and ``alert`` (the last alert) that are new.
    """
    stream = context.live.listen(access.project.id)
    headers = {"X-Accel-Buffering": "no"}  # nginx sends each event at once
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
