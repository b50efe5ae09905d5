"""Requests that are too large, too slow or malformed; `tests.attack` sends many hostile ones."""

import socket
from contextlib import suppress

import pytest
from tests.waiting import MAX_SECONDS


@pytest.fixture(scope="module")
def impatient(serve_file):
    """A server that waits half a second for a body: too short for large ones on a busy machine."""
    with serve_file(body_seconds=0.5) as running:
        yield running


def raw(server, *parts: bytes) -> bytes:
    """Send bytes and return the beginning of the answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=MAX_SECONDS) as opened:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
            for part in parts:
                opened.sendall(part)
        try:
            return opened.recv(4096)
        except ConnectionResetError:
            return b""


def head(server, *lines: str) -> bytes:
    token = f"Authorization: Bearer {server.tokens['admin']}"
    first = "POST /api/v1/projects/birds/labels HTTP/1.1"
    all_lines = (first, "Host: localhost", token, "Content-Type: application/json", *lines)
    return ("\r\n".join(all_lines) + "\r\n\r\n").encode()


def test_a_stated_length_above_the_limit_is_refused_at_once(shared):
    assert raw(shared, head(shared, "Content-Length: 99999999999999")).startswith(b"HTTP/1.1 413")


def test_a_chunked_body_above_the_limit_is_refused(shared):
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = raw(shared, head(shared, "Transfer-Encoding: chunked"), chunk * 140)
    assert answer.startswith(b"HTTP/1.1 413")


def test_too_many_labels_at_once_are_refused(shared):
    headers = {
        "Authorization": f"Bearer {shared.tokens['admin']}",
        "Content-Type": "application/json",
    }
    body = b"[" + b"{}," * 500_000 + b"{}]"
    reply = shared.send("POST", "/api/v1/projects/birds/labels", body, headers)
    assert reply.status == 413
    assert "at most 10,000 per request" in reply.body["detail"]


def test_a_slow_body_is_refused(impatient):
    answer = raw(impatient, head(impatient, "Content-Length: 100"), b"[")
    assert answer.startswith(b"HTTP/1.1 408")


def test_a_body_that_comes_byte_by_byte_is_refused(impatient):
    n_bytes = int(10 * MAX_SECONDS)
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=MAX_SECONDS) as opened:
        opened.sendall(head(impatient, f"Content-Length: {2 * n_bytes}"))
        opened.settimeout(0.1)
        received = b""
        for _ in range(n_bytes):
            opened.sendall(b" ")
            try:
                received = opened.recv(4096)
            except TimeoutError:
                continue
            break
    assert received.startswith(b"HTTP/1.1 408")


def test_long_headers_are_refused(shared):
    answer = raw(shared, b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X: " + b"x" * 300_000)
    assert answer.startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /%ff%fe%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_malformed_requests_are_refused(shared, sent):
    answer = raw(shared, sent)
    assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 404", b""), answer


def test_a_stream_of_one_endless_line_is_refused(shared):
    stream = head(shared, "Transfer-Encoding: chunked").replace(
        b"application/json", b"application/x-ndjson"
    )
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    assert raw(shared, stream, chunk * 3).startswith(b"HTTP/1.1 413")
