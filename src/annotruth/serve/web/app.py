"""`make_app`: the application of the web server; uvicorn runs it, with limits on headers.

``python -m annotruth.serve.web.app`` runs it with settings from the environment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

import anyio.to_thread
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from annotruth.errors import AnnotruthError, messages_for
from annotruth.serve.config import ServeConfig
from annotruth.serve.hooks.router import make_hooks
from annotruth.serve.pages import details, lists, overview, settings, visit
from annotruth.serve.start import end_with_parent
from annotruth.serve.web import api_admin, api_labels, api_results
from annotruth.serve.web.guard import Guard, add_handlers
from annotruth.serve.web.parameters import ServeContext, describe_api

MAX_HEADER_BYTES = 1 << 16
"""The most bytes of a request's first line and headers."""

HEADER_SECONDS = 30.0
"""How long a client may take to send them."""

_STOP_SECONDS = 5  # open streams end after this time at a stop
_MOST_CONNECTIONS = 2_000

_THREADS = 12  # for reads; not more than the connections of the database

DESCRIPTION = """\
Labels in, quality out: send labels as they are given; get the most likely label of every item, the
reliability of every annotator, and what to label next. Every request needs a token, in the header
`Authorization: Bearer at_...`.
"""

PAGES = (overview, lists, details, settings)
"""The modules that add pages to `visit.router`."""

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LimitedHeadersProtocol(HttpToolsProtocol):
    """Reads requests, and closes connections whose headers are too long or do not come."""

    _n_header_bytes = 0
    _timer: asyncio.TimerHandle | None = None
    _in_headers = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self.access_log = False  # its lines have queries; the application has its own log
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """End waiting."""
        self._end_wait()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of a request."""
        super().on_message_begin()
        self._wait_for_headers()

    def on_headers_complete(self) -> None:
        """Start the request."""
        self._end_wait()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        super().data_received(data)
        if self._in_headers:
            self._n_header_bytes += len(data)
            if self._n_header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
                self.send_400_response("The headers are too long.")

    def _wait_for_headers(self) -> None:
        self._end_wait()
        self._in_headers, self._n_header_bytes = True, 0
        self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _end_wait(self) -> None:
        self._in_headers = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def server_config(app: FastAPI, config: ServeConfig) -> uvicorn.Config:
    """Return how uvicorn runs the application."""
    return uvicorn.Config(
        app,
        host=config.host,
        port=config.port,
        http=LimitedHeadersProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(config.trusted_proxies),
        forwarded_allow_ips=list(config.trusted_proxies),
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )


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
    for router in (
        api_labels.router,  # first, since routes are tried in order
        api_admin.project_router,
        api_labels.content_router,
        api_results.router,
        api_results.queue_router,
        api_results.live_router,
        api_admin.alert_router,
        api_admin.connection_router,
        api_admin.token_router,
        api_admin.router,
        make_hooks(context),
        visit.router,
    ):
        app.include_router(router)
    app.add_middleware(Guard, config, context.metrics)
    return app


def main() -> None:
    """Run the web server until it is stopped."""
    with messages_for("service"):
        _run()


def _run() -> None:
    logging.basicConfig(format=_LOG_FORMAT, level=logging.WARNING)
    logging.getLogger("annotruth.serve").setLevel(logging.INFO)
    end_with_parent()
    try:
        config = ServeConfig.from_environment(os.environ)
        if not config.log_requests:
            logging.getLogger("annotruth.serve.access").setLevel(logging.WARNING)
        app = make_app(config)
    except AnnotruthError as error:
        logging.getLogger("annotruth.serve").error("%s", error)
        sys.exit(2)
    uvicorn.Server(server_config(app, config)).run()


if __name__ == "__main__":
    main()
