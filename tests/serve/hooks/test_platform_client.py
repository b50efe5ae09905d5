"""Requests to platforms over the network."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from annotruth.serve.outgoing import PlatformClient, PlatformError, PrivateAddressError, TokenAuth


@pytest.fixture
def server():
    """A server on this machine that says by which name and token it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            text = f'["{self.headers["Host"]}", "{self.headers["Authorization"]}"]'.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"localhost:{running.server_port}"
        running.shutdown()
        thread.join()


def client(host, **options):
    auth = TokenAuth("Token 0123")
    return PlatformClient("Label Studio", f"http://{host}", auth, sleep=lambda _: None, **options)


def test_the_name_of_the_host_is_kept(server):
    with client(server, allow_private=True) as opened:
        assert opened.get("/api") == [server, "Token 0123"]


def test_private_addresses_are_refused(server):
    with client(server) as opened, pytest.raises(PrivateAddressError, match="private address"):
        opened.get("/api")


def test_a_host_that_does_not_exist():
    message = r"does not answer \(ConnectError\)"
    with client("nowhere.invalid") as opened, pytest.raises(PlatformError, match=message):
        opened.get("/api")


def test_an_answer_that_is_too_large(server, monkeypatch):
    monkeypatch.setattr("annotruth.serve.outgoing._MAX_ANSWER", 10)
    opened = client(server, allow_private=True)
    with opened, pytest.raises(PlatformError, match="is too large: /api"):
        opened.get("/api")
