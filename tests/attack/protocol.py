"""Hostile requests, and bytes that are no requests: never a server error, and the server goes on."""

from __future__ import annotations

import http.client
import random
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from tests.attack.hostile import HostileRequest, hostile_request
from tests.serve.web.conftest import Server
from tests.waiting import MAX_SECONDS

BYTES_EVERY = 10
"""One of so many attacks is of changed bytes."""

_HEAD = (
    b"POST /api/v1/projects/birds/labels HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
    b"Content-Type: application/json\r\nContent-Length: 46\r\n\r\n"
    b'{"item": "a", "annotator": "b", "label": "c d"}'
)
_ODD = (
    b"\0", b"\r\n", b"\n", b"\r", b"\xff", b" ", b"\t", b":", b"HTTP/9.9", b"%00", b"Host: evil.example\r\n",
    b"Content-Length: -1\r\n", b"Content-Length: 99999999999\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n", b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\n",
    b"Connection: upgrade\r\n", b"X: " + b"x" * 70_000 + b"\r\n",
)  # fmt: skip


class Attack(NamedTuple):
    """An attack by its number, and how the server answered; 0 if it closed the connection."""

    number: int
    what: str
    status: int


def attack_protocol(server: Server, seconds: float, count: int) -> Iterator[Attack]:
    """Send as many attacks as fit into the time."""
    end = time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > end:
            return
        if number % BYTES_EVERY == 0:
            yield Attack(number, "changed bytes", _send_bytes(server, number))
        else:
            request = hostile_request(number)
            yield Attack(number, f"{request.method} {request.path}"[:200], _send(server, request))


def _send(server: Server, request: HostileRequest) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=MAX_SECONDS)
    token = {"Authorization": f"Bearer {server.tokens['admin']}"}
    body = iter([request.body]) if request.chunked else request.body
    try:
        connection.request(
            request.method,
            request.path,
            body,
            {**request.headers, **token},
            encode_chunked=request.chunked,
        )
        return connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):  # refused before the body was sent
        return 0
    finally:
        connection.close()


def _send_bytes(server: Server, number: int) -> int:
    """Send a request with odd bytes in it, and say that no more will come."""
    rng = random.Random(number)
    sent = _HEAD % server.tokens["birds-write"].encode()
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(sent))
        sent = sent[:place] + rng.choice(_ODD) + sent[place + rng.randint(0, 3) :]
    with socket.create_connection(("127.0.0.1", server.port), timeout=MAX_SECONDS) as opened:
        answer = b""
        with suppress(OSError):  # the server has closed the connection
            opened.sendall(sent)
            opened.shutdown(socket.SHUT_WR)
            answer = opened.recv(100)
    status = answer[9:12]
    return int(status) if status.isdigit() else 0
