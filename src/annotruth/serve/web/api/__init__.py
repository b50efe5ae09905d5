"""The endpoints of the API, one file per subject; all are under ``/api/v1``."""

from __future__ import annotations

from fastapi import APIRouter

from annotruth.serve.web.api import (
    alerts,
    connections,
    content,
    labels,
    live,
    projects,
    queue,
    results,
    tokens,
)


def make_api() -> APIRouter:
    """Return the router of all endpoints."""
    router = APIRouter()
    for module in (projects, labels, content, results, queue, live, alerts, connections, tokens):
        router.include_router(module.router)
    return router
