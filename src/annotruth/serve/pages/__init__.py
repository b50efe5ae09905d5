"""Pages of `annotruth serve`: made on the server, with little script, and live."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import APIRouter


def make_pages() -> APIRouter:
    """Return the routes of all pages and forms."""
    from fastapi import APIRouter

    from annotruth.serve.pages.actions import make_action_router
    from annotruth.serve.pages.routes import make_read_router

    router = APIRouter()
    router.include_router(make_read_router())
    router.include_router(make_action_router())
    return router
