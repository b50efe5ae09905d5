"""What happens to every request: limits, host check, security headers, metrics, log, errors.

An error is one JSON object with one line of text, and never a traceback.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotruth.errors import AnnotruthError, InputError, one_line, printable, shorten
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import DatabaseUnavailableError

_LOGGER = logging.getLogger(__name__)

_RETRY = {"Retry-After": "2"}
_MAX_DETAIL = 500

_ACCESS = logging.getLogger("annotruth.serve.access")

_MAX_PATH = 200  # characters of a path in the log

STREAM_TYPE = "application/x-ndjson"
"""The type of a stream of JSON lines."""

MAX_LINE = 1 << 16
"""The longest line of a stream of JSON lines, in bytes."""

_MOST_BUCKETS = 10_000
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Scripts, styles and requests come from this server alone, and nothing inline runs."""

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0)
_GROUP_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_STREAM = "/api/v1/projects/{project}/events"  # which takes as long as a page is open


class UnavailableError(Exception):
    """The service cannot do this now: the database is away, or too much is waiting."""


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response of an error."""
    text = shorten(one_line(detail), _MAX_DETAIL)
    return JSONResponse({"detail": text}, status, dict(headers or {}))


def add_handlers(app: FastAPI) -> None:
    """Make an application answer every error with one JSON object."""
    of_requests = HTTPException, RequestValidationError, ValidationError, ClientDisconnect
    for kind in (*of_requests, AnnotruthError, UnavailableError):
        app.add_exception_handler(kind, _answer)


def message_of(error: ValidationError | RequestValidationError, place: str = "") -> str:
    """Return the first of pydantic's errors in one line: where, what, and how many more."""
    errors = errors_of(error)
    first = errors[0]
    path = ".".join(printable(str(part)) for part in first["loc"])
    where = ".".join(part for part in (place, path) if part)
    more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
    what = first["msg"].removeprefix("Value error, ")  # before the messages of our own checks
    return f"{where + ': ' if where else ''}{what}{more}"


def errors_of(error: ValidationError | RequestValidationError) -> Sequence[Mapping[str, Any]]:
    """Return pydantic's errors, without what was sent."""
    if isinstance(error, RequestValidationError):
        return error.errors()
    return error.errors(include_url=False, include_context=False, include_input=False)


async def _answer(_: Request, error: Exception) -> Response:
    match error:
        case HTTPException():
            return problem(error.status_code, str(error.detail), error.headers)
        case RequestValidationError():
            return problem(422, message_of(error))
        case ValidationError():
            is_json = errors_of(error)[0]["type"] != "json_invalid"
            return problem(422 if is_json else 400, message_of(error))
        case DatabaseUnavailableError():
            _LOGGER.warning("%s", error)
            return problem(503, f"{error.public_reason}: try again", _RETRY)
        case UnavailableError():
            return problem(503, str(error), _RETRY)
        case AnnotruthError():
            return problem(422 if isinstance(error, InputError) else 409, str(error))
        case _:
            return problem(400, "the request ended before its body was complete")


class ServeMetrics:
    """Counters of requests and of ingestion, without ids of items or annotators."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ours: Any = {"registry": self.registry}
        requests, seconds = ("method", "route", "status"), "Time to answer a request."
        outcomes = "Events that were received: accepted, or repeated and ignored."
        self.requests = Counter("annotruth_requests", "Requests.", requests, **ours)
        self.seconds = Histogram(
            "annotruth_request_seconds", seconds, ("route",), buckets=_SECONDS, **ours
        )
        self.labels = Counter("annotruth_labels", outcomes, ("outcome",), **ours)
        self.commits = Histogram(
            "annotruth_commit_events", "Events per commit.", buckets=_GROUP_SIZES, **ours
        )
        self.failed_commits = Counter("annotruth_failed_commits", "Commits that failed.", **ours)
        self.waiting = Gauge(
            "annotruth_waiting_events", "Events that wait to be committed.", **ours
        )
        self.listeners = Gauge("annotruth_listeners", "Open streams of live events.", **ours)

    def count_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request under its route's template, which has no ids in it."""
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.requests.labels(method, route, str(status)).inc()
        if route != _STREAM:
            self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self.registry)


class Guard:
    """The outermost layer of the application.

    The log has one line per request: address, method, path, status and milliseconds. It has no
    query, no header and no body, which may hold secrets.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig, metrics: ServeMetrics) -> None:
        self._app = app
        self._config = config
        local = _LOOPBACK_NAMES if config.is_loopback else ()
        self._hosts = {name.lower() for name in config.allowed_hosts or local}
        headers = dict(SECURITY_HEADERS)
        if config.behind_tls:  # browsers use HTTPS only from then on
            headers["Strict-Transport-Security"] = "max-age=31536000"
        self._headers = [(k.lower().encode(), value.encode()) for k, value in headers.items()]
        self._metrics = metrics

    def allows(self, host: bytes) -> bool:
        """Return whether requests by this Host header are served; without names, those by any.

        A page of another site can make a browser send requests to a loopback address by a name of its
        own (DNS rebinding); such a name is not among the allowed ones.
        """
        header = host.decode("latin-1")
        name, colon, port = header.rpartition(":")
        if not colon or not port.isdigit():
            name = header
        return not self._hosts or name.lower() in self._hosts

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
                own = list(message.get("headers", ()))
                given = {name.lower() for name, _ in own}
                message["headers"] = own + [each for each in self._headers if each[0] not in given]
            await send(message)

        try:
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            if not self.allows(hosts[0] if len(hosts) == 1 else b""):
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


def _shown_path(scope: Scope) -> str:
    path = printable(scope["path"])
    return path if len(path) <= _MAX_PATH else f"{path[:_MAX_PATH]}..."


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    if _ACCESS.isEnabledFor(logging.INFO):
        client, method = scope.get("client") or ("-", 0), printable(scope["method"])
        line = client[0], method, _shown_path(scope), status, seconds * 1e3
        _ACCESS.info("%s %s %s %d %.1f ms", *line)


class RateLimit:
    """Lets each key do something a number of times per second, on average.

    Each key has a bucket of ``burst`` permits, which is filled at ``per_second``.
    """

    def __init__(
        self, *, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str, permits: float = 1.0) -> float:
        """Take permits and return 0, or take none and return the seconds until there are enough."""
        now = self._clock()
        left, at = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        lacking = permits - left
        self._buckets[key] = (left if lacking > 0.0 else left - permits, now)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return max(lacking, 0.0) / self._per_second


def too_many(seconds: float) -> HTTPException:
    """Return the error of a client that sends too many requests."""
    wait = max(1, int(seconds + 0.999))
    return HTTPException(
        429, f"too many requests: try again in {wait} s", {"Retry-After": str(wait)}
    )


class LimitedReceive:
    """Receives the body of a request, and refuses one that is too large or too slow.

    A request must come in whole within ``body_seconds``; of a stream of JSON lines, which may be
    longer, each part must.
    """

    def __init__(
        self, receive: Receive, config: ServeConfig, headers: Mapping[bytes, bytes]
    ) -> None:
        self._receive = receive
        self._is_stream = headers.get(b"content-type", b"").lower().startswith(STREAM_TYPE.encode())
        self._most = config.max_stream if self._is_stream else config.max_body
        self._seconds = config.body_seconds
        self._deadline = 0.0
        self._size = 0
        self._complete = False
        stated = headers.get(b"content-length", b"0")
        if not stated.isdigit():
            raise HTTPException(400, "Content-Length is not a number")
        if len(stated) > 18 or int(stated) > self._most:
            raise _too_large(self._most)

    async def __call__(self) -> Message:
        """Return the next part of the body, or that the client has gone."""
        if self._complete:
            return await self._receive()
        now = asyncio.get_running_loop().time()
        if self._is_stream or not self._deadline:
            self._deadline = now + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"the body was not sent within {self._seconds:g} s") from None
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self._size > self._most:
                raise _too_large(self._most)
            self._complete = not message.get("more_body", False)
        return message


async def read_lines(request: Request) -> AsyncIterator[list[bytes]]:
    """Return the lines of a stream as they come, in groups; empty lines are kept, to be counted."""
    rest = b""
    async for part in request.stream():
        *lines, rest = (rest + part).split(b"\n")
        if max(map(len, (*lines, rest))) > MAX_LINE:
            raise HTTPException(413, f"a line is longer than {MAX_LINE:,} bytes: shorten it")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _too_large(most: int) -> HTTPException:
    return HTTPException(
        413,
        f"the request is larger than {most:,} bytes: send fewer at once, or a stream of lines "
        f"(Content-Type: {STREAM_TYPE})",
    )
