"""Live events of a project, as server-sent events."""

from __future__ import annotations

from starlette.responses import StreamingResponse

from annotruth.serve.web.api.parameters import Context, Reader, make_router

router = make_router("live")


@router.get(
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
