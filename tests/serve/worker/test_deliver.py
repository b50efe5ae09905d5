"""Outgoing webhooks: signed, sent again after failures, never to private addresses by themselves."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from sqlalchemy import update
from tests.serve.conftest import add_webhook

from annotruth.errors import InputError
from annotruth.serve.hooks.message import new_secret, standard_key, verify_standard
from annotruth.serve.outgoing import check_url
from annotruth.serve.store.projects import add_alert, due_deliveries
from annotruth.serve.store.rows import find_one, latest, utc_now
from annotruth.serve.store.tables import Delivery, Webhook, delivery
from annotruth.serve.worker.deliver import WAITS, SendingError, deliver_due, send


@pytest.fixture
def receiver():
    """A server that keeps what it is sent and answers with ``server.status``."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.server.received.append((self.path, headers, body))
            self.send_response(self.server.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.received, server.status = [], 200
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}/hook?a=b"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def alert(database, project, receiver):
    """Add a webhook and alerts."""
    secret = new_secret()
    with database.begin() as connection:
        webhook = add_webhook(connection, project.id, receiver.url, ["verdict"], secret)

    def add_alerts(n=1):
        for number in range(n):
            with database.begin() as connection:
                add_alert(
                    connection,
                    project.id,
                    "verdict",
                    f"ann {number}",
                    "keep before, drop now",
                    {"verdict": "drop"},
                    created=utc_now(),
                )
        return webhook

    return add_alerts


def deliveries(database, webhook):
    with database.connect() as connection:
        return latest(connection, Delivery, webhook=webhook.id)[::-1]


def test_alerts_are_signed_and_sent_once(database, alert, receiver):
    webhook = alert(2)
    assert deliver_due(database, allow_private=True) == 2
    assert deliver_due(database, allow_private=True) == 0
    path, headers, body = receiver.received[0]
    assert path == "/hook?a=b"
    verify_standard(standard_key(webhook.secret), headers, body, utc_now())
    content = json.loads(body)
    assert content["type"] == "alert.verdict"
    assert (content["data"]["subject"], content["data"]["verdict"]) == ("ann 0", "drop")
    assert [each.status for each in deliveries(database, webhook)] == ["delivered"] * 2


def test_private_addresses_are_refused(database, alert, receiver):
    webhook = alert()
    deliver_due(database, allow_private=False)
    assert receiver.received == []
    (tried,) = deliveries(database, webhook)
    assert tried.status == "waiting"
    assert "private address" in tried.last_error


def test_failures_are_tried_again_with_the_same_id_and_given_up_at_last(database, alert, receiver):
    webhook = alert(3)
    receiver.status = 500
    begin = utc_now()
    # The others wait for the first: a server that is away costs one attempt at a time.
    assert deliver_due(database, allow_private=True) == 1
    first, *others = deliveries(database, webhook)
    assert (first.status, first.attempts) == ("waiting", 1)
    assert first.last_error == "the server answered 500"
    assert begin <= first.next_attempt - WAITS[0] <= utc_now()
    assert [each.attempts for each in others] == [0, 0]
    for _ in range(2 * len(WAITS) + 20):
        with database.begin() as connection:
            connection.execute(
                update(delivery).where(delivery.c.id == first.id).values(next_attempt=utc_now())
            )
            if not due_deliveries(connection, utc_now(), limit_per_webhook=10):
                break
        deliver_due(database, allow_private=True)
    first = deliveries(database, webhook)[0]
    assert (first.status, first.attempts) == ("failed", len(WAITS) + 1)
    ids = {headers["webhook-id"] for _, headers, _ in receiver.received}
    assert len(ids) <= 3


def test_a_webhook_that_is_gone_is_switched_off(database, alert, receiver):
    webhook = alert(2)
    receiver.status = 410
    deliver_due(database, allow_private=True)
    deliver_due(database, allow_private=True)
    with database.connect() as connection:
        assert not find_one(connection, Webhook, id=webhook.id).active
    assert len(receiver.received) == 1
    assert [each.status for each in deliveries(database, webhook)] == ["failed"] * 2


def test_a_webhook_that_does_not_answer_keeps_no_other_waiting(database, alert, project, receiver):
    alert(120)  # more than are sent at once
    with database.begin() as connection:
        other = add_webhook(connection, project.id, "https://example.org/b", ["verdict"], "secret")
    alert(1)
    sent = []

    def send_message(url, body, headers):
        sent.append(url)
        if url == receiver.url:
            raise SendingError("no response")

    assert deliver_due(database, allow_private=True, send_message=send_message) == 2
    assert sorted(sent) == sorted([receiver.url, "https://example.org/b"])
    assert [each.status for each in deliveries(database, other)] == ["delivered"]


def test_messages_of_a_slow_server_wait_for_the_next_round(database, alert, monkeypatch):
    alert(3)
    monkeypatch.setattr("annotruth.serve.worker.deliver._ROUND_SECONDS", 0.0)
    for n_left in (2, 1, 0):
        assert deliver_due(database, allow_private=True, send_message=lambda *_: None) == 1
        with database.connect() as connection:
            assert len(due_deliveries(connection, utc_now(), limit_per_webhook=10)) == n_left


def test_redirects_are_not_followed(receiver):
    receiver.status = 302
    with pytest.raises(SendingError, match="answered 302, and redirects are not followed"):
        send(receiver.url, b"{}", {}, allow_private=True)
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "https://",
        "https://user:secret@example.org/",
        "https://example.org:port/",
        "https://example.org/a b",
        "http://example.org/\r\nX: y",
        "file:///etc/passwd",
        "https://example.org/" + "a" * 3000,
        "",
    ],
)
def test_urls_that_are_none(url):
    with pytest.raises(InputError, match="not a URL for messages") as caught:
        check_url(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_dawdles_is_left():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def dawdle():
            connection, _ = server.accept()
            with connection:
                while not ended.wait(0.05):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=dawdle)
        thread.start()
        port = server.getsockname()[1]
        with pytest.raises(SendingError, match="no response"):
            send(f"http://127.0.0.1:{port}/", b"{}", {}, allow_private=True, seconds=0.5)
        ended.set()
        thread.join()


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SendingError, match="no response"):
        send(f"http://127.0.0.1:{port}/", b"{}", {}, allow_private=True)
