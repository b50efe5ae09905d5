"""What administrators do: projects, tokens, connections, webhooks, alerts, the audit log; health and metrics."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Response
from sqlalchemy import text
from starlette.responses import JSONResponse

from annotruth.serve.administration import list_tokens
from annotruth.serve.hooks.platforms import check_settings, public_settings
from annotruth.serve.store.database import DatabaseUnavailableError
from annotruth.serve.store.events import last_seq
from annotruth.serve.store.projects import (
    get_project,
    get_worker_state,
    last_deliveries,
    latest_snapshot,
    list_projects,
)
from annotruth.serve.store.rows import change, find, latest, table_of
from annotruth.serve.store.tables import Alert, AuditEntry, PlatformConnection, Project, Webhook
from annotruth.serve.web.auth import Access
from annotruth.serve.web.parameters import (
    Admin,
    Context,
    Limit,
    Number,
    Reader,
    ServeContext,
    ServerAdmin,
    ServerReader,
    Start,
    Writer,
    json_body,
    make_router,
)
from annotruth.serve.web.results import without
from annotruth.serve.web.schemas import (
    NewConnection,
    NewProject,
    NewToken,
    NewWebhook,
    ProjectSettings,
)

project_router, alert_router = make_router("projects"), make_router("alerts")
connection_router, token_router = make_router("connections"), make_router("tokens")

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

OPEN_PATHS = ("/healthz", "/openapi.json")
"""What needs no token: it shows nothing of any project."""


router = APIRouter(include_in_schema=False)


@project_router.post("/projects", status_code=201)
def create(
    context: Context, access: ServerAdmin, sent: Annotated[NewProject, json_body(NewProject)]
) -> dict[str, Any]:
    """Create a project."""
    settings = {k: v for k, v in sent.settings.to_changes().items() if v is not None}
    with context.administer(access.actor) as admin:
        if get_project(admin.connection, sent.name) is not None:
            raise HTTPException(409, f"there is a project {sent.name} already: choose another name")
        return _info(admin.create_project(sent.name, sent.kind, settings))


@project_router.get("/projects")
def list_(context: Context, access: Reader) -> list[dict[str, Any]]:
    """List the projects that the token is for."""
    with context.database.connect() as connection:
        projects = list_projects(connection)
    own = access.token.project
    return [_info(each) for each in projects if own is None or each.id == own]


@project_router.get("/projects/{project}")
def show(context: Context, access: Reader) -> dict[str, Any]:
    """Return a project: its settings, how many events it has, and its latest snapshot."""
    project = access.project
    with context.database.connect() as connection:
        snapshot = latest_snapshot(connection, project.id)
        state = get_worker_state(connection, project.id)
        last = last_seq(connection, project.id)
    return {
        **_info(project),
        "last_seq": last,
        "version": None if snapshot is None else snapshot.version,
        "summary": None if snapshot is None else snapshot.summary,
        "worker": without(state, "project"),
    }


@project_router.patch("/projects/{project}", name="change")
def change_project(
    context: Context,
    access: Admin,
    sent: Annotated[ProjectSettings, json_body(ProjectSettings)],
) -> dict[str, Any]:
    """Change some settings of a project; null removes one."""
    with context.administer(access.actor) as admin:
        changed = admin.change_settings(access.project, sent.to_changes())
    context.access.forget()
    return _info(changed)


def _info(project: Project) -> dict[str, Any]:
    return without(project, "id", "erasures")


@alert_router.get("/projects/{project}/alerts")
def alerts(
    context: Context, access: Reader, start: Start = 0, limit: Limit = 100
) -> list[dict[str, Any]]:
    """Return the latest alerts, the last first."""
    return _latest(context, access, Alert, start, limit)


@alert_router.post("/projects/{project}/alerts/seen", status_code=204)
def alerts_seen(context: Context, access: Writer) -> Response:
    """Mark all alerts as seen."""
    with context.database.begin() as connection:
        change(connection, Alert, {"seen": True}, project=access.project.id, seen=False)
    return Response(status_code=204)


@alert_router.get("/projects/{project}/audit")
def audit(
    context: Context, access: Admin, start: Start = 0, limit: Limit = 100
) -> list[dict[str, Any]]:
    """Return who changed what, the last first."""
    return _latest(context, access, AuditEntry, start, limit)


def _latest(
    context: ServeContext, access: Access, row: type[Any], start: int, limit: int
) -> list[dict[str, Any]]:
    with context.database.connect() as connection:
        found = latest(connection, row, limit=limit, offset=start, project=access.project.id)
    return [without(each, "project") for each in found]


@alert_router.post("/projects/{project}/webhooks", status_code=201)
def create_webhook(
    context: Context, access: Admin, sent: Annotated[NewWebhook, json_body(NewWebhook)]
) -> dict[str, Any]:
    """Send alerts to an address; the secret that signs them is in the answer, and nowhere else."""
    with context.administer(access.actor) as admin:
        return without(admin.add_webhook(access.project, sent.url, sent.kinds), "project")


@alert_router.get("/projects/{project}/webhooks")
def webhooks(context: Context, access: Admin) -> list[dict[str, Any]]:
    """List the webhooks, without their secrets, with the outcome of the last delivery."""
    with context.database.connect() as connection:
        webhooks = find(connection, Webhook, project=access.project.id)
        last = last_deliveries(connection, webhooks)
    outcome = {
        number: {"status": each.status, "error": each.last_error} for number, each in last.items()
    }
    return [
        {**without(each, "project", "secret"), "last_delivery": outcome.get(each.id)}
        for each in webhooks
    ]


@alert_router.delete("/projects/{project}/webhooks/{number}", status_code=204)
def delete_webhook(number: Number, context: Context, access: Admin) -> Response:
    """Remove a webhook."""
    return _remove(context, access, Webhook, number)


@connection_router.post("/projects/{project}/connections", status_code=201)
def create_connection(
    context: Context, access: Admin, sent: Annotated[NewConnection, json_body(NewConnection)]
) -> dict[str, Any]:
    """Connect a labelling tool; the secret that it must send is in the answer, and nowhere else."""
    settings = check_settings(sent.kind, sent.settings)
    with context.administer(access.actor) as admin:
        made = admin.add_connection(access.project, sent.kind, settings, sent.secret)
    return {**_shown_connection(made), "secret": made.secret}


@connection_router.get("/projects/{project}/connections")
def connections(context: Context, access: Admin) -> list[dict[str, Any]]:
    """List the connections, without their secrets."""
    with context.database.connect() as connection:
        found = find(connection, PlatformConnection, project=access.project.id)
    return [_shown_connection(each) for each in found]


@connection_router.delete("/projects/{project}/connections/{number}", status_code=204)
def delete_connection(number: Number, context: Context, access: Admin) -> Response:
    """Remove a connection; its labels stay."""
    return _remove(context, access, PlatformConnection, number)


def _remove(
    context: ServeContext, access: Access, row: type[Webhook | PlatformConnection], number: int
) -> Response:
    with context.administer(access.actor) as admin:
        if not admin.remove(access.project, row, number):
            raise HTTPException(404, f"there is no such {table_of(row).name}")
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


@token_router.post("/projects/{project}/tokens", status_code=201, name="create")
def create_token(
    context: Context, access: Admin, sent: Annotated[NewToken, json_body(NewToken)]
) -> dict[str, Any]:
    """Create a token for the project; its text is in the answer, and nowhere else."""
    with context.administer(access.actor) as admin:
        token, text = admin.create_token(access.project.id, sent.name, sent.scope, sent.expires)
    return {**without(token, "project"), "token": text}


@token_router.get("/projects/{project}/tokens", name="list_")
def tokens(context: Context, access: Admin) -> list[dict[str, Any]]:
    """List the project's tokens, without their secrets."""
    with context.database.connect() as connection:
        found = list_tokens(connection, access.project.id)
    return [without(each, "project") for each in found]


@token_router.delete("/projects/{project}/tokens/{token_id}", status_code=204)
def revoke(token_id: str, context: Context, access: Admin) -> Response:
    """Revoke a token of the project."""
    with context.administer(access.actor) as admin:
        if not admin.revoke_token(access.project.id, token_id):
            raise HTTPException(404, "there is no such token, or it is revoked already")
    context.access.forget()
    return Response(status_code=204)


@router.get("/healthz")
def healthz(context: Context) -> Response:
    """Return whether the server works and the database answers."""
    try:
        with context.database.connect() as connection:
            connection.execute(text("select 1"))
    except DatabaseUnavailableError as error:
        return JSONResponse({"status": error.public_reason}, 503)
    return JSONResponse({"status": "ok"})


@router.get("/metrics")
async def metrics(context: Context, access: ServerReader) -> Response:
    """Return the metrics of the web server for Prometheus."""
    return Response(context.metrics.text(), headers={"Content-Type": _METRICS_TYPE})
