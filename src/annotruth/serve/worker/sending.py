"""Send a signed message to a URL that a user chose: no private addresses, no redirects, a deadline.

Addresses are checked as `annotruth.serve.addresses` describes.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress

from annotruth.errors import AnnotruthError, one_line, shorten
from annotruth.serve.addresses import PORTS, PrivateAddressError, allowed_addresses, check_url

SECONDS = 15.0
"""How long a message may take in all."""


class SendingError(AnnotruthError):
    """A message was not accepted.

    ``status`` is that of the response, 0 if there was none.

    Examples
    --------
    >>> raise SendingError("the server answered 500", status=500)
    Traceback (most recent call last):
    annotruth.serve.worker.sending.SendingError: the server answered 500
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
    """Post a message; raise a `SendingError` unless the response has a status of 200 to 299.

    Parameters
    ----------
    url
        Where to.
    body, headers
        The message.
    allow_private
        Whether addresses of private networks and of this machine may be used.
    seconds
        How long it may take in all.
    """
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
        timer = threading.Timer(seconds, _shut_down, [connection])
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


def _shut_down(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # closed already
        connection.sock.shutdown(socket.SHUT_RDWR)
