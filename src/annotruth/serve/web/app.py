"""`make_app`: the application of the web server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

import anyio.to_thread
from fastapi import FastAPI

from annotruth.serve.config import ServeConfig
from annotruth.serve.hooks.router import make_hooks
from annotruth.serve.pages import make_pages
from annotruth.serve.web.api import api_routers
from annotruth.serve.web.api.openapi import describe_api
from annotruth.serve.web.context import ServeContext
from annotruth.serve.web.errors import add_handlers
from annotruth.serve.web.guard import Guard

_THREADS = 12  # for reads; not more than the connections of the database

DESCRIPTION = """\
Labels in, quality out: send labels as they are given; get the most likely label of every item, the
reliability of every annotator, and what to label next. Every request needs a token, in the header
`Authorization: Bearer at_...`.
"""


def make_app(config: ServeConfig) -> FastAPI:
    """Return the application: API, hooks and pages."""
    context = ServeContext.open(config)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        yield
        context.live.stop()
        await asyncio.to_thread(context.close)

    app = FastAPI(
        title="annotruth serve",
        version=version("annotruth"),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # both load scripts from other servers
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.context = context
    app.openapi = partial(describe_api, app)  # type: ignore[method-assign]
    add_handlers(app)
    for router in (*api_routers(), make_hooks(context), make_pages()):
        app.include_router(router)
    app.add_middleware(Guard, config, context.metrics)
    return app
