"""The HTTP server that runs the application: uvicorn, with limits on headers."""

from __future__ import annotations

import asyncio

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from annotruth.serve.config import ServeConfig

MAX_HEADER_BYTES = 1 << 16
"""The most bytes of a request's first line and headers."""

HEADER_SECONDS = 30.0
"""How long a client may take to send them."""

_STOP_SECONDS = 5  # open streams end after this time at a stop
_MOST_CONNECTIONS = 2_000


class LimitedHeadersProtocol(HttpToolsProtocol):
    """Reads requests, and closes connections whose headers are too long or do not come.

    Examples
    --------
    >>> issubclass(LimitedHeadersProtocol, asyncio.Protocol)
    True
    """

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
