"""Limits on requests: how many, how large, how slow, and by which host name."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive

from annotruth.serve.config import ServeConfig

STREAM_TYPE = "application/x-ndjson"
"""The type of a stream of JSON lines."""

MAX_LINE = 1 << 16
"""The longest line of a stream of JSON lines, in bytes."""

_MOST_BUCKETS = 10_000
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class RateLimit:
    """Lets each key do something a number of times per second, on average.

    Each key has a bucket of ``burst`` permits, which is filled at ``per_second``.

    Examples
    --------
    >>> limit = RateLimit(per_second=2.0, burst=3.0, clock=lambda: 0.0)
    >>> [limit.wait("ann") for _ in range(4)]
    [0.0, 0.0, 0.0, 0.5]
    >>> limit.wait("bob")
    0.0
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


class HostCheck:
    """Decides whether the Host header of a request names this server.

    A page of another site can make a browser send requests to a loopback address by a name of its
    own (DNS rebinding); such a name is not among the allowed ones.

    Examples
    --------
    >>> check = HostCheck(["localhost", "[::1]"])
    >>> check("localhost:8377"), check("[::1]"), check("evil.example"), check("")
    (True, True, False, False)
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name.lower() for name in names}

    @classmethod
    def of_config(cls, config: ServeConfig) -> HostCheck:
        """Return the check of a server; without names, any host is allowed."""
        if config.allowed_hosts:
            return cls(config.allowed_hosts)
        return cls(_LOOPBACK_NAMES if config.is_loopback else ())

    def __call__(self, header: str) -> bool:
        """Return whether the header's name, without the port, is allowed."""
        if not self._names:
            return True
        name, colon, port = header.rpartition(":")
        if not colon or not port.isdigit():
            name = header
        return name.lower() in self._names


class LimitedReceive:
    """Receives the body of a request, and refuses one that is too large or too slow.

    A request must come in whole within ``body_seconds``; of a stream of JSON lines, which may be
    longer, each part must.

    Examples
    --------
    >>> from pathlib import Path
    >>> config = ServeConfig(database="sqlite://", data_dir=Path("."), max_body=1024)
    >>> async def receive():
    ...     return {"type": "http.request", "body": b"x" * 1025, "more_body": True}
    >>> asyncio.run(LimitedReceive(receive, config, {})())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    starlette.exceptions.HTTPException: 413: the request is larger than 1,024 bytes: ...
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
        _refuse_length(headers.get(b"content-length", b"0"), self._most)

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


def _refuse_length(stated: bytes, most: int) -> None:
    """Refuse a request that states a length above the limit, or none that can be read."""
    if not stated.isdigit():
        raise HTTPException(400, "Content-Length is not a number")
    if len(stated) > 18 or int(stated) > most:
        raise _too_large(most)


def _too_large(most: int) -> HTTPException:
    return HTTPException(
        413,
        f"the request is larger than {most:,} bytes: send fewer at once, or a stream of lines "
        f"(Content-Type: {STREAM_TYPE})",
    )
