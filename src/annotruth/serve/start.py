"""Starting the service: the database, the first token, the address, then all processes."""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace

from annotruth.errors import InputError, shorten, system_errors_reported
from annotruth.serve.administration import Administration
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database, file_of
from annotruth.serve.store.schema import utc_now
from annotruth.serve.store.tokens import list_tokens, token_id_of
from annotruth.serve.supervisor import serve_commands, supervise

_ACTOR = "first start"  # in the audit log
_CHECK_SECONDS = 0.1
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


def prepare(config: ServeConfig) -> str:
    """Create or upgrade the database; return the first token, or nothing if there are tokens.

    A server that others can reach gets no token by itself: it is refused until one was created.
    """
    file = file_of(config.database)
    if not config.is_loopback and file is not None and not file.exists():
        raise _token_missing(config)
    with system_errors_reported(config.data_dir):
        config.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = Database.open(config.database)
    try:
        database.upgrade()
        now = utc_now()
        with database.begin() as connection:
            if any(token.is_valid(now) for token in list_tokens(connection)):
                return ""
            if not config.is_loopback:
                raise _token_missing(config)
            admin = Administration(connection, _ACTOR, now)
            return admin.create_token(None, "first login", "admin", expires=None)[1]
    finally:
        database.dispose()


def _token_missing(config: ServeConfig) -> InputError:
    return InputError(
        f"listening on {config.host} needs a token first: run `annotruth serve token create NAME "
        "--scope admin` with the same --data-dir or --database"
    )


def check_address(config: ServeConfig) -> int:
    """Return the port to listen on, a free one for port 0.

    An address that cannot be listened on is refused, such as a port that is in use.
    """
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.host.strip("[]"), config.port))
        except (OSError, TypeError) as error:  # a name that cannot be encoded is a TypeError
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            raise InputError(
                f"cannot listen on {shorten(config.host)}, port {config.port}: {reason}; "
                f"{_next_step(error)}"
            ) from None
        port: int = probe.getsockname()[1]
        return port


def _next_step(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return "stop the other program, or give another --port"
    if number == errno.EACCES:
        return "give a --port from 1024"
    return "give --host an address of this machine, such as 127.0.0.1"


def address_of(config: ServeConfig) -> str:
    """Return the address at which this machine reaches the server."""
    host = _ANY_ADDRESS.get(config.host, config.host)
    return f"http://{f'[{host}]' if ':' in host and '[' not in host else host}:{config.port}"


def run_service(
    config: ServeConfig,
    say: Callable[[str], None],
    *,
    then: Callable[[ServeConfig, threading.Event], None] | None = None,
) -> int:
    """Run the service until it is stopped; return the exit code.

    Parameters
    ----------
    config
        The settings.
    say
        Shows lines: where the server listens, when it does. If it fails, the service ends.
    then
        Runs in a thread once the server answers, until the event that it is given is set. Its
        settings have the port that the server listens on.
    """
    config = replace(config, port=check_address(config))
    token = prepare(config)
    stop = threading.Event()
    failures: list[OSError] = []

    def announce() -> None:
        if not wait_for_server(config, stop):
            return
        try:
            say(_announcement(config, token))
        except OSError as error:  # stdout is closed, or its disk is full
            failures.append(error)
            stop.set()
            return
        if then is not None:
            then(config, stop)

    threading.Thread(target=announce, name="announce", daemon=True).start()
    environment = {**os.environ, **config.to_environment()}
    code = supervise(serve_commands(), environment, stop=stop)
    if failures:
        if token:
            _revoke(config, token)
        raise failures[0]
    return code


def _announcement(config: ServeConfig, token: str) -> str:
    """Return where the server listens; with the first token, the link that logs in."""
    if not token:
        return f"listening on {address_of(config)}: log in with a token"
    return (
        f"log in as administrator: {address_of(config)}/login#{token}\n"
        "This link is shown once. `annotruth serve token create` makes further tokens."
    )


def _revoke(config: ServeConfig, token: str) -> None:
    """Revoke the first token, which nobody has seen, so that the next start makes another one."""
    database = Database.open(config.database)
    try:
        with database.begin() as connection:
            admin = Administration(connection, _ACTOR, utc_now())
            admin.revoke_token(None, token_id_of(token))
    finally:
        database.dispose()


def wait_for_server(config: ServeConfig, stop: threading.Event) -> bool:
    """Wait until the server answers; return False if the service is stopped before."""
    while not stop.is_set():
        try:
            with urllib.request.urlopen(f"{address_of(config)}/healthz", timeout=5.0):
                return True
        except urllib.error.HTTPError as error:
            logging.getLogger(__name__).debug("not healthy yet: %s", error)
        except OSError:
            pass
        stop.wait(_CHECK_SECONDS)
    return False
