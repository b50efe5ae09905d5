"""Starting the service: the database, the first token, the address, then all processes."""

from __future__ import annotations

import logging
import os
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

from annotruth.errors import InputError, system_errors_reported
from annotruth.serve.administration import Administration
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database
from annotruth.serve.store.schema import utc_now
from annotruth.serve.store.tokens import list_tokens
from annotruth.serve.supervisor import serve_commands, supervise

_CHECK_SECONDS = 0.1
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


def prepare(config: ServeConfig) -> str:
    """Create or upgrade the database; return the first token, or nothing if there are tokens.

    A server that others can reach gets no token by itself: it is refused until one was created.
    """
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
                raise InputError(
                    f"listening on {config.host} needs a token first: run `annotruth serve token "
                    "create NAME --scope admin` with the same --data-dir or --database"
                )
            admin = Administration(connection, "first start", now)
            return admin.create_token(None, "first login", "admin", expires=None)[1]
    finally:
        database.dispose()


def check_address(config: ServeConfig) -> None:
    """Refuse an address that cannot be listened on, such as a port that is in use."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.host.strip("[]"), config.port))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(
                f"cannot listen on {config.host}, port {config.port}: {reason}; stop the other "
                "program, or give another --port or --host"
            ) from None


def address_of(config: ServeConfig) -> str:
    """Return the address at which this machine reaches the server."""
    host = _ANY_ADDRESS.get(config.host, config.host)
    return f"http://{f'[{host}]' if ':' in host and '[' not in host else host}:{config.port}"


def run_service(
    config: ServeConfig,
    say: Callable[[str], None],
    *,
    then: Callable[[threading.Event], None] | None = None,
) -> int:
    """Run the service until it is stopped; return the exit code.

    Parameters
    ----------
    config
        The settings.
    say
        Shows a line: where the server listens, when it does.
    then
        Runs in a thread once the server answers, until the event that it is given is set.
    """
    check_address(config)
    token = prepare(config)
    stop = threading.Event()

    def announce() -> None:
        if not wait_for_server(config, stop):
            return
        if token:
            say(f"log in as administrator: {address_of(config)}/login#{token}")
            say("This link is shown once. `annotruth serve token create` makes further tokens.")
        else:
            say(f"listening on {address_of(config)}: log in with a token")
        if then is not None:
            then(stop)

    threading.Thread(target=announce, name="announce", daemon=True).start()
    environment = {**os.environ, **config.to_environment()}
    return supervise(serve_commands(), environment, stop=stop)


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
