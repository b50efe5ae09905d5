"""The supervisor: starts the web server and the worker, and starts either again when it dies."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

_LOGGER = logging.getLogger(__name__)

PARENT_VARIABLE = "ANNOTRUTH_SERVE_PARENT"
"""Names the descriptor of a pipe that closes when the supervisor ends, however it ends."""

_CHECK_SECONDS = 0.1
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0
_LONG_LIFE = 5.0  # a process that lived so long did not fail at its start
_SECONDS_TO_END = 10.0
_ORPHAN_SECONDS = 8.0  # for a process to end by itself after its supervisor
_BAD_INPUT = 2  # the exit code of an error that starting again does not correct


@dataclass(eq=False)
class Child:
    """A process that is started again when it dies, after a wait that doubles if it dies early.

    Parameters
    ----------
    name
        For messages.
    command
        The program and its arguments.

    Examples
    --------
    >>> child = Child("sleeper", [sys.executable, "-c", "import time; time.sleep(60)"])
    >>> child.start({**os.environ}, ())
    >>> child.is_running
    True
    >>> child.end()
    >>> child.is_running
    False
    """

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

    def start(self, environment: Mapping[str, str], descriptors: Sequence[int]) -> None:
        """Start the process, which inherits the descriptors."""
        # In a group of its own, so that Ctrl-C reaches the supervisor only, which ends all in order.
        self.process = subprocess.Popen(
            self.command, env=environment, pass_fds=descriptors, start_new_session=True
        )
        self._started = time.monotonic()
        self._n_starts += 1

    def restart_if_dead(self, environment: Mapping[str, str], descriptors: Sequence[int]) -> None:
        """Start the process again if it died and the wait is over."""
        if self.is_running:
            return
        now = time.monotonic()
        if self.process is not None and not self._start_at:
            if now - self._started > _LONG_LIFE:
                self._wait = _FIRST_WAIT
            _LOGGER.error(
                "the %s ended with status %s: starting it again in %.1f s",
                self.name,
                self.process.returncode,
                self._wait,
            )
            self._start_at, self._wait = now + self._wait, min(2.0 * self._wait, _LONGEST_WAIT)
        if now >= self._start_at:
            self._start_at = 0.0
            self.start(environment, descriptors)

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
    """Run processes until the supervisor is asked to end by SIGINT, SIGTERM or ``stop``.

    Parameters
    ----------
    commands
        The processes by name.
    environment
        The environment variables of the processes.
    stop
        Set to end all.

    Returns
    -------
    int
        0, or 2 if a process cannot be started with these settings: it has said why.
    """
    stop = stop or threading.Event()
    previous = _stop_on_signals(stop)
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
            stop.wait(_CHECK_SECONDS)
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
        "web server": [sys.executable, "-m", "annotruth.serve.web"],
        "worker": [sys.executable, "-m", "annotruth.serve.worker"],
    }


def _stop_on_signals(stop: threading.Event) -> dict[int, Any]:
    """Set an event at SIGINT and SIGTERM; return the handlers before. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    return {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
