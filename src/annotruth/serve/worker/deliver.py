"""Send alerts to webhooks, signed by Standard Webhooks, again and again until they are accepted.

A message goes to a URL that a user chose: no private addresses, no redirects, a deadline. Addresses are
checked as `annotruth.serve.outgoing` describes.
"""

from __future__ import annotations

import http.client
import json
import logging
import socket
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from annotruth.errors import AnnotruthError, one_line, shorten
from annotruth.serve.hooks.message import sign
from annotruth.serve.outgoing import PORTS, PrivateAddressError, allowed_addresses, check_url
from annotruth.serve.store.database import Database
from annotruth.serve.store.projects import due_deliveries
from annotruth.serve.store.rows import change, find_one, utc_now
from annotruth.serve.store.tables import Alert, Delivery, Webhook

SECONDS = 15.0
"""How long a message may take in all."""

_LOGGER = logging.getLogger(__name__)
_AT_ONCE = 100  # of each webhook
_ROUND_SECONDS = 15.0  # after which a slow server's other messages wait for the next round
_THREADS = 4
_GONE = 410

WAITS = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 300, 1800, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
"""How long to wait after each failed attempt, as Standard Webhooks recommends; then it has failed."""

Send = Callable[[str, bytes, dict[str, str]], None]
_Message = tuple[Delivery, Alert]


class SendingError(AnnotruthError):
    """A message was not accepted.

    ``status`` is that of the response, 0 if there was none.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def send(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allow_private: bool = False,
    seconds: float = SECONDS,
) -> None:
    """Post a message; raise a `SendingError` unless the response has a status of 200 to 299."""
    parts = check_url(url)
    assert parts.hostname is not None
    port = parts.port or PORTS[parts.scheme]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = http.client.HTTPConnection(parts.hostname, port)
    timer = None
    try:
        connection.sock = _connect(
            parts.hostname, port, allow_private=allow_private, seconds=seconds
        )
        # A server that sends a byte now and then would never run into the time limit of one read.

        def shut_down() -> None:
            with suppress(OSError, AttributeError):  # closed already
                connection.sock.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(seconds, shut_down)
        timer.daemon = True
        timer.start()
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection.sock = secured = context.wrap_socket(
                connection.sock, server_hostname=parts.hostname, do_handshake_on_connect=False
            )
            secured.do_handshake()
        connection.request("POST", path, body, {**headers, "Connection": "close"})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        reason = shorten(one_line(str(error)), 200) or type(error).__name__
        raise SendingError(f"no response: {reason}") from None
    finally:
        if timer is not None:
            timer.cancel()
        connection.close()
    if not 200 <= status < 300:
        hint = ", and redirects are not followed" if 300 <= status < 400 else ""
        raise SendingError(f"the server answered {status}{hint}", status=status)


def _connect(host: str, port: int, *, allow_private: bool, seconds: float) -> socket.socket:
    """Return a connection to the first address of a host that answers; all must be allowed."""
    try:
        addresses = allowed_addresses(host, port, allow_private=allow_private)
    except PrivateAddressError as error:
        raise SendingError(str(error)) from None
    failure: OSError | None = None
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=seconds)
        except OSError as error:
            failure = error
    raise failure or OSError("the host has no address")


def deliver_due(
    database: Database, *, allow_private: bool, send_message: Send | None = None
) -> int:
    """Send the deliveries that are due; return how many were attempted.

    Webhooks are served side by side, and the messages of one in order. After a failure, its other
    messages wait as well, so that a server that is away costs one attempt at a time.
    """
    send_message = send_message or partial(send, allow_private=allow_private)
    by_webhook: defaultdict[int, list[_Message]] = defaultdict(list)
    webhooks: dict[int, Webhook | None] = {}
    with database.connect() as connection:
        for each in due_deliveries(connection, utc_now(), limit_per_webhook=_AT_ONCE):
            alert = find_one(connection, Alert, id=each.alert)
            if each.webhook not in webhooks:
                webhooks[each.webhook] = find_one(connection, Webhook, id=each.webhook)
            if alert is not None:
                by_webhook[each.webhook].append((each, alert))
    receivers = [webhook for webhook in webhooks.values() if webhook is not None]
    if not receivers:
        return 0
    with ThreadPoolExecutor(_THREADS) as pool:
        attempts = [
            pool.submit(_deliver_all, database, webhook, by_webhook[webhook.id], send_message)
            for webhook in receivers
        ]
    return sum(each.result() for each in attempts)


def _deliver_all(
    database: Database, webhook: Webhook, messages: list[_Message], send_message: Send
) -> int:
    """Send messages of one webhook; return how many were attempted.

    Ends at the first failure, and after `_ROUND_SECONDS`.
    """
    deadline = time.monotonic() + _ROUND_SECONDS
    for number, (delivery, alert) in enumerate(messages, start=1):
        error = _attempt(webhook, alert, send_message)
        _note(database, webhook, delivery, error)
        if error is not None or time.monotonic() >= deadline:
            return number
    return len(messages)


def _attempt(webhook: Webhook, alert: Alert, send_message: Send) -> AnnotruthError | None:
    if not webhook.active:
        return SendingError("the webhook is switched off", status=_GONE)
    body = json.dumps(message(alert)).encode()
    # The id stays the same in later attempts, so that the receiver can leave out repeated messages.
    headers = sign(webhook.secret, f"alert_{alert.id}", utc_now(), body)
    headers |= {"Content-Type": "application/json", "User-Agent": "annotruth"}
    try:
        send_message(webhook.url, body, headers)
    except AnnotruthError as error:
        return error
    return None


def message(alert: Alert) -> dict[str, Any]:
    """Return the content of the message about an alert."""
    return {
        "type": f"alert.{alert.kind}",
        "timestamp": alert.created.isoformat(),
        "data": {
            "id": alert.id,
            "project": alert.project,
            "subject": alert.subject,
            "text": alert.text,
            **alert.detail,
        },
    }


def _note(
    database: Database, webhook: Webhook, delivery: Delivery, error: AnnotruthError | None
) -> None:
    """Store the outcome of an attempt; a server that says the URL is gone switches the webhook off."""
    noted: dict[str, Any] = {"attempts": delivery.attempts + 1, "status": "delivered"}
    noted["last_error"] = "" if error is None else str(error)
    with database.begin() as connection:
        if error is not None:
            _LOGGER.warning("webhook %d, alert %d: %s", webhook.id, delivery.alert, error)
            is_gone = isinstance(error, SendingError) and error.status == _GONE
            if is_gone:
                change(connection, Webhook, {"active": False}, id=webhook.id)
            if is_gone or delivery.attempts >= len(WAITS):
                noted["status"] = "failed"
            else:
                later = utc_now() + WAITS[delivery.attempts]
                noted |= {"status": "waiting", "next_attempt": later}
        change(connection, Delivery, noted, id=delivery.id)
