"""The endpoints of the API; all are under ``/api/v1``."""

from __future__ import annotations

from fastapi import APIRouter

from annotruth.serve.web.api import admin, labels, results, system


def api_routers() -> list[APIRouter]:
    """Return the routers of all subjects; labels come first, since routes are tried in order."""
    return [
        labels.router,
        admin.project_router,
        labels.content_router,
        results.router,
        results.queue_router,
        results.live_router,
        admin.alert_router,
        admin.connection_router,
        admin.token_router,
        system.router,
    ]
