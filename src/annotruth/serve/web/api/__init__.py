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
    system,
    tokens,
)


def api_routers() -> list[APIRouter]:
    """Return the routers of all subjects; labels come first, since routes are tried in order."""
    subjects = (
        labels,
        projects,
        content,
        results,
        queue,
        live,
        alerts,
        connections,
        tokens,
        system,
    )
    return [subject.router for subject in subjects]
