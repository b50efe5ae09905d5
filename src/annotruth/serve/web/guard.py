"""What happens to every request: host check, security headers, metrics, log, unexpected errors."""

from __future__ import annotations

import logging
import time

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotruth.errors import printable
from annotruth.serve.config import ServeConfig
from annotruth.serve.web.errors import problem
from annotruth.serve.web.limits import HostCheck, LimitedReceive
from annotruth.serve.web.metrics import ServeMetrics
from annotruth.serve.web.security_headers import security_headers, with_defaults

_ACCESS = logging.getLogger("annotruth.serve.access")
_LOGGER = logging.getLogger(__name__)

_MAX_PATH = 200  # characters of a path in the log


class Guard:
    """The outermost layer of the application.

    The log has one line per request: address, method, path, status and milliseconds. It has no
    query, no header and no body, which may hold secrets.

    Examples
    --------
    >>> from pathlib import Path
    >>> config = ServeConfig(database="sqlite://", data_dir=Path("."))
    >>> guard = Guard(lambda scope, receive, send: None, config, ServeMetrics())
    >>> guard.allows(b"evil.example")
    False
    """

    def __init__(self, app: ASGIApp, config: ServeConfig, metrics: ServeMetrics) -> None:
        self._app = app
        self._config = config
        self._host_check = HostCheck.of_config(config)
        self._headers = security_headers(behind_tls=config.behind_tls)
        self._metrics = metrics

    def allows(self, host: bytes) -> bool:
        """Return whether requests by this Host header are served."""
        return self._host_check(host.decode("latin-1"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 0

        async def guarded_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = with_defaults(message.get("headers", ()), self._headers)
            await send(message)

        try:
            if not self.allows(_host_of(scope)):
                raise HTTPException(400, "the Host header does not name this server")
            if "\0" in scope["path"] or b"%00" in scope["query_string"]:
                raise HTTPException(400, "the address has a zero character")  # no database takes it
            limited = LimitedReceive(receive, self._config, dict(scope["headers"]))
            await self._app(scope, limited, guarded_send)
        except HTTPException as error:
            if status == 0:
                refused = problem(error.status_code, str(error.detail), {"Connection": "close"})
                await refused(scope, receive, guarded_send)
        except Exception:
            _LOGGER.exception("unexpected error in %s", _shown_path(scope))
            if status == 0:
                await problem(500, "internal error; see the log")(scope, receive, guarded_send)
        finally:
            seconds = time.perf_counter() - start
            self._metrics.count_request(scope, status, seconds)
            _log_request(scope, status, seconds)


def _host_of(scope: Scope) -> bytes:
    """Return the Host header; empty if there is none, or more than one."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return hosts[0] if len(hosts) == 1 else b""


def _shown_path(scope: Scope) -> str:
    path = printable(scope["path"])
    return path if len(path) <= _MAX_PATH else f"{path[:_MAX_PATH]}..."


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    if _ACCESS.isEnabledFor(logging.INFO):
        client = scope.get("client") or ("-", 0)
        path = _shown_path(scope)
        _ACCESS.info(
            "%s %s %s %d %.1f ms",
            client[0],
            printable(scope["method"]),
            path,
            status,
            seconds * 1e3,
        )
