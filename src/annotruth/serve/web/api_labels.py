"""Labels and comparisons, sent one by one, in batches or as a stream, and read in order; content.

Content is what is known of items and annotators: known truths, what items are, and traits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import HTTPException, Request, Response
from pydantic import ValidationError
from sqlalchemy import Connection
from starlette.responses import JSONResponse

from annotruth.errors import InputError, counted, shown
from annotruth.serve.store.events import events_since
from annotruth.serve.store.projects import set_content, set_gold, set_traits
from annotruth.serve.store.rows import utc_now
from annotruth.serve.store.tables import (
    AppendedEvents,
    LabelEvent,
    Project,
    ProjectKind,
    StoredEvent,
)
from annotruth.serve.web.auth import Access
from annotruth.serve.web.guard import STREAM_TYPE, UnavailableError, message_of, read_lines
from annotruth.serve.web.ingest import check_events
from annotruth.serve.web.parameters import (
    Context,
    Limit,
    Reader,
    ServeContext,
    Since,
    Writer,
    documented,
    json_body,
    make_router,
    media_type,
    read_list,
)
from annotruth.serve.web.schemas import (
    Accepted,
    NewComparison,
    NewContent,
    NewGold,
    NewLabel,
    NewTraits,
    Stored,
)

router, content_router = make_router("labels"), make_router("content")

SOURCE = "api"
"""The source of events that clients send."""


@router.post(
    "/projects/{project}/labels",
    response_model=Accepted,
    openapi_extra=documented(NewLabel, or_list=True, lines=True),
)
async def post_labels(request: Request, context: Context, access: Writer) -> Response:
    """Send labels: one object, a list, or a stream of JSON lines.

    The answer comes when they are on disk. A list is stored whole or not at all; of a stream, the
    lines before the first wrong one are stored. Labels with an ``event_id`` can be sent again.
    """
    return await _post(request, context, access, "labels", NewLabel)


@router.post(
    "/projects/{project}/comparisons",
    response_model=Accepted,
    openapi_extra=documented(NewComparison, or_list=True, lines=True),
)
async def post_comparisons(request: Request, context: Context, access: Writer) -> Response:
    """Send comparisons of pairs of items, as labels are sent."""
    return await _post(request, context, access, "comparisons", NewComparison)


@router.get("/projects/{project}/labels")
def get_labels(
    context: Context, access: Reader, since: Since = 0, limit: Limit = 100
) -> dict[str, Any]:
    """Return the events after a number, in order, with edits and deletions; ``next`` goes on."""
    return _get(context, access, "labels", since, limit)


@router.get("/projects/{project}/comparisons")
def get_comparisons(
    context: Context, access: Reader, since: Since = 0, limit: Limit = 100
) -> dict[str, Any]:
    """Return comparisons, as labels are returned."""
    return _get(context, access, "comparisons", since, limit)


async def _post(
    request: Request,
    context: ServeContext,
    access: Access,
    kind: ProjectKind,
    model: type[NewLabel | NewComparison],
) -> Response:
    _refuse_kind(access, kind)
    if media_type(request) == STREAM_TYPE:
        return await _post_stream(request, context, access, model)
    events = [each.to_event() for each in await read_list(request, model)]
    return JSONResponse(_accepted(await context.ingest.append(access.project, SOURCE, events)))


async def _post_stream(
    request: Request,
    context: ServeContext,
    access: Access,
    model: type[NewLabel | NewComparison],
) -> Response:
    """Store the lines of a stream as they come; what was stored before an error is said."""
    total, n_lines = AppendedEvents(0, 0, 0), 0
    try:
        async for lines in read_lines(request):
            events, wrong = _parsed(lines, model, access.project, n_lines)
            if events:
                done = await context.ingest.append(access.project, SOURCE, events)
                total = AppendedEvents(
                    total.n_new + done.n_new, total.n_repeated + done.n_repeated, done.last_seq
                )
            if wrong:
                raise InputError(wrong)
            n_lines += len(lines)
    except (InputError, UnavailableError, HTTPException) as error:
        detail = error.detail if isinstance(error, HTTPException) else str(error)
        stored = counted(total.n_new + total.n_repeated, access.project.kind.removesuffix("s"))
        answer = {"detail": f"{detail}; stored before it: {stored}"}
        status = 503 if isinstance(error, UnavailableError) else 422
        status = error.status_code if isinstance(error, HTTPException) else status
        return JSONResponse({**answer, **_accepted(total)}, status)
    return JSONResponse(_accepted(total))


def _parsed(
    lines: list[bytes], model: type[NewLabel | NewComparison], project: Project, n_before: int
) -> tuple[list[LabelEvent], str]:
    """Return the events of lines up to the first wrong one, and what is wrong with that."""
    events: list[LabelEvent] = []
    for number, line in enumerate(lines, n_before + 1):
        if not line.strip():
            continue
        try:
            event = model.model_validate_json(line).to_event()
            check_events(project, [event])
        except InputError as error:
            return events, f"line {number}: {error}"
        except ValidationError as error:
            return events, message_of(error, f"line {number}")
        events.append(event)
    return events, ""


def _refuse_kind(access: Access, kind: ProjectKind) -> None:
    if access.project.kind != kind:
        raise HTTPException(
            409, f"this project has {access.project.kind}: use .../{access.project.kind}"
        )


def _get(
    context: ServeContext, access: Access, kind: ProjectKind, since: int, limit: int
) -> dict[str, Any]:
    _refuse_kind(access, kind)
    with context.database.connect() as connection:
        events = events_since(connection, access.project.id, since, limit)
    shown = [_shown(each, kind) for each in events]
    return {kind: shown, "next": events[-1].seq if len(events) == limit else None}


def _shown(event: StoredEvent, kind: ProjectKind) -> dict[str, Any]:
    values = event._asdict()
    del values["project"]
    if kind == "labels":
        del values["other_item"]
        return values
    pair = {"left": values.pop("item"), "right": values.pop("other_item")}
    return {**pair, "outcome": values.pop("label"), **values}


def _accepted(appended: AppendedEvents) -> dict[str, int]:
    names = Accepted.model_fields
    return dict(zip(names, appended, strict=True))


@content_router.post("/projects/{project}/gold")
def post_gold(
    context: Context,
    access: Writer,
    sent: Annotated[list[NewGold], json_body(NewGold, or_list=True)],
) -> Stored:
    """Set the known truths of items; null removes one."""
    return _store(context, access, "known truths set", set_gold, sent)


@content_router.post("/projects/{project}/annotators")
def post_traits(
    context: Context,
    access: Writer,
    sent: Annotated[list[NewTraits], json_body(NewTraits, or_list=True)],
) -> Stored:
    """Set the traits of annotators."""
    return _store(context, access, "traits set", set_traits, sent)


@content_router.post("/projects/{project}/items")
def post_items(
    context: Context,
    access: Writer,
    sent: Annotated[list[NewContent], json_body(NewContent, or_list=True)],
) -> Stored:
    """Set the content of items; items without labels are given out by ``next``."""
    return _store(context, access, "content set", partial(set_content, now=utc_now()), sent)


def _store(
    context: ServeContext,
    access: Access,
    action: str,
    store: Callable[[Connection, int, Mapping[str, Any]], None],
    sent: Sequence[NewGold | NewTraits | NewContent],
) -> Stored:
    """Store values by the ids before them, and note in the audit log how many."""
    values: dict[str, Any] = {}
    for each in sent:
        (what, id_), (_, value) = each
        if id_ in values:
            raise InputError(f"{what} {shown(id_)} is given twice: give it once")
        values[id_] = value
    with context.administer(access.actor) as admin:
        store(admin.connection, access.project.id, values)
        admin.log(access.project.id, action, {"n": len(values)})
    return Stored(stored=len(values))
