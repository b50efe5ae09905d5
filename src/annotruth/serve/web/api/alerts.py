"""Alerts, the webhooks they are sent to, and the audit log."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from annotruth.serve.store.alerts import last_deliveries, list_alerts, list_webhooks, mark_seen
from annotruth.serve.store.audit import list_audit
from annotruth.serve.store.records import Webhook
from annotruth.serve.web.api.parameters import (
    Admin,
    Context,
    Limit,
    Number,
    Reader,
    Start,
    Writer,
    make_router,
)
from annotruth.serve.web.bodies import documented, read_json
from annotruth.serve.web.schemas import NewWebhook

router = make_router("alerts")


@router.get("/projects/{project}/alerts")
def alerts(
    context: Context, access: Reader, start: Start = 0, limit: Limit = 100
) -> list[dict[str, Any]]:
    """Return the latest alerts, the last first."""
    with context.database.connect() as connection:
        found = list_alerts(connection, access.project.id, limit=limit, offset=start)
    return [_without_project(each._asdict()) for each in found]


@router.post("/projects/{project}/alerts/seen", status_code=204)
def alerts_seen(context: Context, access: Writer) -> Response:
    """Mark all alerts as seen."""
    with context.database.begin() as connection:
        mark_seen(connection, access.project.id)
    return Response(status_code=204)


@router.get("/projects/{project}/audit")
def audit(
    context: Context, access: Admin, start: Start = 0, limit: Limit = 100
) -> list[dict[str, Any]]:
    """Return who changed what, the last first."""
    with context.database.connect() as connection:
        found = list_audit(connection, access.project.id, limit=limit, offset=start)
    return [_without_project(each._asdict()) for each in found]


@router.post("/projects/{project}/webhooks", status_code=201, openapi_extra=documented(NewWebhook))
async def create_webhook(request: Request, context: Context, access: Admin) -> dict[str, Any]:
    """Send alerts to an address; the secret that signs them is in the answer, and nowhere else."""
    sent = await read_json(request, NewWebhook)

    def store() -> Webhook:
        with context.administer(access.actor) as admin:
            return admin.add_webhook(access.project, sent.url, sent.kinds)

    made = await run_in_threadpool(store)
    return {**_shown_webhook(made), "secret": made.secret}


@router.get("/projects/{project}/webhooks")
def webhooks(context: Context, access: Admin) -> list[dict[str, Any]]:
    """List the webhooks, without their secrets, with the outcome of the last delivery."""
    with context.database.connect() as connection:
        webhooks = list_webhooks(connection, access.project.id)
        last = last_deliveries(connection, webhooks)
    outcome = {
        number: {"status": each.status, "error": each.last_error} for number, each in last.items()
    }
    return [{**_shown_webhook(each), "last_delivery": outcome.get(each.id)} for each in webhooks]


@router.delete("/projects/{project}/webhooks/{number}", status_code=204)
def delete_webhook(number: Number, context: Context, access: Admin) -> Response:
    """Remove a webhook."""
    with context.administer(access.actor) as admin:
        if not admin.remove_webhook(access.project, number):
            raise HTTPException(404, "there is no such webhook")
    return Response(status_code=204)


def _without_project(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != "project"}


def _shown_webhook(webhook: Webhook) -> dict[str, Any]:
    return {
        "id": webhook.id,
        "url": webhook.url,
        "kinds": list(webhook.kinds),
        "active": webhook.active,
    }
