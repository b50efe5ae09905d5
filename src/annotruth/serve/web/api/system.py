"""Health, metrics, and the description of the API."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from sqlalchemy import text
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse

from annotruth.serve.pages.overview import api_page
from annotruth.serve.store.database import DatabaseUnavailableError
from annotruth.serve.web.context import ServeContext
from annotruth.serve.web.parameters import Context, ServerReader

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

OPEN_PATHS = ("/healthz", "/openapi.json", "/api")
"""What needs no token: it shows nothing of any project."""


router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def healthz(context: Context) -> Response:
    """Return whether the server works and the database answers."""
    try:
        await run_in_threadpool(_ask_database, context)
    except DatabaseUnavailableError as error:
        return JSONResponse({"status": error.public_reason}, 503)
    return JSONResponse({"status": "ok"})


def _ask_database(context: ServeContext) -> None:
    with context.database.connect() as connection:
        connection.execute(text("select 1"))


@router.get("/metrics")
async def metrics(context: Context, access: ServerReader) -> Response:
    """Return the metrics of the web server for Prometheus."""
    return Response(context.metrics.text(), headers={"Content-Type": _METRICS_TYPE})


@router.get("/api")
async def documentation(request: Request) -> HTMLResponse:
    """Return a page with all endpoints, without scripts."""
    schema: dict[str, Any] = request.app.openapi()
    return HTMLResponse(api_page(schema))
