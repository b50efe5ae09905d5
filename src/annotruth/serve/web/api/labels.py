"""Labels and comparisons: sent one by one, in batches or as a stream; and read in order."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request, Response
from pydantic import ValidationError
from starlette.responses import JSONResponse

from annotruth.errors import InputError, counted
from annotruth.serve.store.events import events_since
from annotruth.serve.store.records import Appended, LabelEvent, Project, ProjectKind, StoredEvent
from annotruth.serve.web.access import Access
from annotruth.serve.web.api.parameters import Context, Limit, Reader, Since, Writer, make_router
from annotruth.serve.web.bodies import documented, media_type, read_list
from annotruth.serve.web.context import ServeContext
from annotruth.serve.web.errors import UnavailableError, message_of
from annotruth.serve.web.ingest import MAX_BATCH, check_events
from annotruth.serve.web.limits import STREAM_TYPE, read_lines
from annotruth.serve.web.schemas import Accepted, NewComparison, NewLabel

router = make_router("labels")

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
    sent = await read_list(request, model, MAX_BATCH)
    events = [each.to_event() for each in sent]
    return _accepted(await context.ingest.append(access.project, SOURCE, events))


async def _post_stream(
    request: Request,
    context: ServeContext,
    access: Access,
    model: type[NewLabel | NewComparison],
) -> Response:
    """Store the lines of a stream as they come; what was stored before an error is said."""
    total, n_lines = Appended(0, 0, 0), 0
    try:
        async for lines in read_lines(request):
            events, wrong = _parsed(lines, model, access.project, n_lines)
            if events:
                done = await context.ingest.append(access.project, SOURCE, events)
                total = Appended(
                    total.n_new + done.n_new, total.n_repeated + done.n_repeated, done.last_seq
                )
            if wrong:
                raise InputError(wrong)
            n_lines += len(lines)
    except (InputError, UnavailableError, HTTPException) as error:
        detail = error.detail if isinstance(error, HTTPException) else str(error)
        unit = access.project.kind.removesuffix("s")
        stored = counted(total.n_new + total.n_repeated, unit)
        answer = {"detail": f"{detail}; stored before it: {stored}"}
        return JSONResponse({**answer, **_to_dict(total)}, _status_of(error))
    return _accepted(total)


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
            found = error.errors(include_url=False, include_context=False, include_input=False)
            return events, message_of(found, f"line {number}")
        events.append(event)
    return events, ""


def _status_of(error: Exception) -> int:
    if isinstance(error, HTTPException):
        return error.status_code
    return 503 if isinstance(error, UnavailableError) else 422


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
    what: dict[str, Any] = (
        {"item": event.item, "annotator": event.annotator, "label": event.label}
        if kind == "labels"
        else {
            "left": event.item,
            "right": event.other_item,
            "annotator": event.annotator,
            "outcome": event.label,
        }
    )
    return {
        "seq": event.seq,
        **what,
        "source": event.source,
        "event_id": event.event_id,
        "annotation": event.annotation,
        "started": event.started,
        "submitted": event.submitted,
        "deleted": event.deleted,
        "received": event.received,
    }


def _to_dict(appended: Appended) -> dict[str, int]:
    return {
        "accepted": appended.n_new,
        "repeated": appended.n_repeated,
        "last_seq": appended.last_seq,
    }


def _accepted(appended: Appended) -> Response:
    return JSONResponse(_to_dict(appended))
