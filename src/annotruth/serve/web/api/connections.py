"""Connections with labelling tools, which send labels to a project."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from annotruth.serve.hooks.settings import check_settings, public_settings
from annotruth.serve.hooks.signatures import new_secret
from annotruth.serve.store.audit import add_audit
from annotruth.serve.store.connections import (
    PlatformConnection,
    add_connection,
    list_connections,
    remove_connection,
)
from annotruth.serve.store.schema import utc_now
from annotruth.serve.web.access import Access
from annotruth.serve.web.api.parameters import Admin, Context, Number, make_router
from annotruth.serve.web.bodies import documented, read_json
from annotruth.serve.web.context import ServeContext
from annotruth.serve.web.schemas import NewConnection

router = make_router("connections")


@router.post(
    "/projects/{project}/connections", status_code=201, openapi_extra=documented(NewConnection)
)
async def create_connection(request: Request, context: Context, access: Admin) -> dict[str, Any]:
    """Connect a labelling tool; the secret that it must send is in the answer, and nowhere else."""
    sent = await read_json(request, NewConnection)
    settings = check_settings(sent.kind, sent.settings)
    secret = sent.secret or new_secret()
    made = await run_in_threadpool(_store_connection, context, access, sent.kind, settings, secret)
    return {**_shown_connection(made), "secret": made.secret}


def _store_connection(
    context: ServeContext, access: Access, kind: str, settings: dict[str, Any], secret: str
) -> PlatformConnection:
    with context.database.begin() as connection:
        made = add_connection(connection, access.project.id, kind, settings, secret)
        detail = {"connection": made.id, "kind": kind}
        now = utc_now()
        add_audit(connection, access.project.id, access.actor, "connection created", detail, now)
    return made


@router.get("/projects/{project}/connections")
def connections(context: Context, access: Admin) -> list[dict[str, Any]]:
    """List the connections, without their secrets."""
    with context.database.connect() as connection:
        return [_shown_connection(each) for each in list_connections(connection, access.project.id)]


@router.delete("/projects/{project}/connections/{number}", status_code=204)
def delete_connection(number: Number, context: Context, access: Admin) -> Response:
    """Remove a connection; its labels stay."""
    with context.database.begin() as connection:
        if not remove_connection(connection, access.project.id, number):
            raise HTTPException(404, "there is no such connection")
        detail = {"connection": number}
        now = utc_now()
        add_audit(connection, access.project.id, access.actor, "connection removed", detail, now)
    return Response(status_code=204)


def _shown_connection(connection: PlatformConnection) -> dict[str, Any]:
    return {
        "id": connection.id,
        "kind": connection.kind,
        "settings": public_settings(connection.settings),
        "hook": f"/hooks/{connection.id}",
        "last_contact": connection.last_contact,
        "last_error": connection.last_error,
    }
