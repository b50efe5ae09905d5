"""Starting the service: the database, the first token, the address, then all processes.

The supervisor starts the web server and the worker, and starts either again when it dies.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from annotruth.errors import InputError, shorten, system_errors_reported
from annotruth.serve.administration import Administration, list_tokens
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database, file_of
from annotruth.serve.store.rows import utc_now

_LOGGER = logging.getLogger(__name__)

PARENT_VARIABLE = "ANNOTRUTH_SERVE_PARENT"
"""Names the descriptor of a pipe that closes when the supervisor ends, however it ends."""

_WATCH_SECONDS = 0.1
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0
_LONG_LIFE = 5.0  # a process that lived so long did not fail at its start
_SECONDS_TO_END = 10.0
_ORPHAN_SECONDS = 8.0  # for a process to end by itself after its supervisor
_BAD_INPUT = 2  # the exit code of an error that starting again does not correct

_ACTOR = "first start"  # in the audit log
_SHOWN_ONCE = "This link is shown once. `annotruth serve token create` makes further tokens."
_CHECK_SECONDS = 0.1
_NEXT_STEPS = {
    errno.EADDRINUSE: "stop the other program, or give another --port",
    errno.EACCES: "give a --port from 1024",
    None: "give --host an address of this machine, such as 127.0.0.1",
}
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


@dataclass(eq=False)
class Child:
    """A process that is started again when it dies, after a wait that doubles if it dies early."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = field(init=False, default=None)
    _n_starts: int = field(init=False, default=0)
    _started: float = field(init=False, default=0.0)
    _start_at: float = field(init=False, default=0.0)
    _wait: float = field(init=False, default=_FIRST_WAIT)

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    @property
    def was_refused(self) -> bool:
        """Whether the process ended at its first start because of bad input."""
        refused = self.process is not None and self.process.poll() == _BAD_INPUT
        return refused and self._n_starts == 1 and time.monotonic() - self._started < _LONG_LIFE

    def restart_if_dead(self, environment: Mapping[str, str], descriptors: Sequence[int]) -> None:
        """Start the process, with the descriptors; again if it died and the wait is over."""
        if self.is_running:
            return
        now = time.monotonic()
        if self.process is not None and not self._start_at:
            if now - self._started > _LONG_LIFE:
                self._wait = _FIRST_WAIT
            line = "the %s ended with status %s: starting it again in %.1f s"
            _LOGGER.error(line, self.name, self.process.returncode, self._wait)
            self._start_at, self._wait = now + self._wait, min(2.0 * self._wait, _LONGEST_WAIT)
        if now >= self._start_at:
            self._start_at, self._started = 0.0, now
            self._n_starts += 1
            # In a group of its own, so that Ctrl-C reaches the supervisor only, which ends all in order.
            self.process = subprocess.Popen(
                self.command, env=environment, pass_fds=descriptors, start_new_session=True
            )

    def end(self) -> None:
        """End the process: ask it to, and after some seconds kill it."""
        if self.process is None:
            return
        self.ask_to_end()
        try:
            self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            _LOGGER.warning("the %s did not end: killing it", self.name)
            self.process.kill()
            self.process.wait()

    def ask_to_end(self) -> None:
        """Send the process the signal to end."""
        if self.process is not None and self.is_running:
            self.process.terminate()


def supervise(
    commands: Mapping[str, Sequence[str]],
    environment: Mapping[str, str],
    *,
    stop: threading.Event | None = None,
) -> int:
    """Run processes until the supervisor is asked to end by SIGINT, SIGTERM or ``stop``."""
    stop = stop or threading.Event()
    previous: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # others cannot handle signals
        previous = {
            number: signal.signal(number, lambda *_: stop.set())
            for number in (signal.SIGINT, signal.SIGTERM)
        }
    reader, writer = os.pipe()
    variables = {**environment, PARENT_VARIABLE: str(reader)}
    children = [Child(name, command) for name, command in commands.items()]
    code = 0
    try:
        while not stop.is_set():
            for child in children:
                if child.was_refused:
                    code = _BAD_INPUT
                    stop.set()
                    break
                child.restart_if_dead(variables, [reader])
            stop.wait(_WATCH_SECONDS)
    finally:
        for child in children:
            child.ask_to_end()
        for child in children:
            child.end()
        os.close(reader)
        os.close(writer)
        for number, handler in previous.items():
            signal.signal(number, handler)
    return code


def end_with_parent() -> None:
    """End this process when the supervisor that started it is gone: as by SIGTERM, soon by force.

    A fit would go on for long after SIGTERM, and nobody is there to kill it. What it writes is whole or
    not there.
    """
    descriptor = os.environ.get(PARENT_VARIABLE)
    if descriptor is None:
        return

    def watch() -> None:
        try:
            os.read(int(descriptor), 1)  # returns when the last writer, the supervisor, is gone
        except (OSError, ValueError):
            return
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_ORPHAN_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def serve_commands() -> dict[str, list[str]]:
    """Return the processes of the service."""
    return {
        "web server": [sys.executable, "-m", "annotruth.serve.web.app"],
        "worker": [sys.executable, "-m", "annotruth.serve.worker.loop"],
    }


def prepare(config: ServeConfig) -> str:
    """Create or upgrade the database; return the first token, or nothing if there are tokens.

    A server that others can reach gets no token by itself: it is refused until one was created.
    """
    token_missing = InputError(
        f"listening on {config.host} needs a token first: run `annotruth serve token create NAME "
        "--scope admin` with the same --data-dir or --database"
    )
    file = file_of(config.database)
    if not config.is_loopback and file is not None and not file.exists():
        raise token_missing
    with system_errors_reported(config.data_dir):
        config.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with Database.open(config.database) as database:
        database.upgrade()
        now = utc_now()
        with database.begin() as connection:
            if any(token.is_valid(now) for token in list_tokens(connection)):
                return ""
            if not config.is_loopback:
                raise token_missing
            admin = Administration(connection, _ACTOR, now)
            return admin.create_token(None, "first login", "admin", expires=None)[1]


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
                f"{_NEXT_STEPS.get(getattr(error, 'errno', None), _NEXT_STEPS[None])}"
            ) from None
        port: int = probe.getsockname()[1]
        return port


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
    """Run the service until it is stopped; return the exit code."""
    config = replace(config, port=check_address(config))
    token = prepare(config)
    stop = threading.Event()
    failures: list[OSError] = []

    def announce() -> None:
        if not wait_for_server(config, stop):
            return
        try:
            login = f"log in as administrator: {address_of(config)}/login#{token}\n" + _SHOWN_ONCE
            say(login if token else f"listening on {address_of(config)}: log in with a token")
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
            # Nobody has seen it; the next start makes another one.
            with Database.open(config.database) as database, database.begin() as connection:
                admin = Administration(connection, _ACTOR, utc_now())
                admin.revoke_token(None, token.split("_", 2)[1])
        raise failures[0]
    return code


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
