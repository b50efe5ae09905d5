"""Labels from labelling tools: webhooks that arrive, polling, and predictions that go back.

One file per platform reads its messages; `annotruth.serve.hooks.router` receives them, and
`annotruth.serve.hooks.poller` asks the platforms for what was lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import APIRouter

    from annotruth.serve.web.context import ServeContext


def make_hooks(context: ServeContext) -> APIRouter:
    """Return the routes that platforms send their messages to."""
    from annotruth.serve.hooks.router import make_router

    return make_router(context)
