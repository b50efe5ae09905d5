"""Connections with labelling tools, which send labels to a project."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from annotruth.serve.hooks.settings import check_settings, public_settings
from annotruth.serve.store.connections import PlatformConnection, list_connections
from annotruth.serve.web.api.parameters import Admin, Context, Number, make_router
from annotruth.serve.web.bodies import documented, read_json
from annotruth.serve.web.schemas import NewConnection

router = make_router("connections")


@router.post(
    "/projects/{project}/connections", status_code=201, openapi_extra=documented(NewConnection)
)
async def create_connection(request: Request, context: Context, access: Admin) -> dict[str, Any]:
    """Connect a labelling tool; the secret that it must send is in the answer, and nowhere else."""
    sent = await read_json(request, NewConnection)
    settings = check_settings(sent.kind, sent.settings)

    def store() -> PlatformConnection:
        with context.administer(access.actor) as admin:
            return admin.add_connection(access.project, sent.kind, settings, sent.secret)

    made = await run_in_threadpool(store)
    return {**_shown_connection(made), "secret": made.secret}


@router.get("/projects/{project}/connections")
def connections(context: Context, access: Admin) -> list[dict[str, Any]]:
    """List the connections, without their secrets."""
    with context.database.connect() as connection:
        return [_shown_connection(each) for each in list_connections(connection, access.project.id)]


@router.delete("/projects/{project}/connections/{number}", status_code=204)
def delete_connection(number: Number, context: Context, access: Admin) -> Response:
    """Remove a connection; its labels stay."""
    with context.administer(access.actor) as admin:
        if not admin.remove_connection(access.project, number):
            raise HTTPException(404, "there is no such connection")
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
