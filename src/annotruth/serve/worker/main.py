"""The worker's process."""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial

from annotruth.errors import AnnotruthError
from annotruth.serve.config import ServeConfig
from annotruth.serve.hooks.poller import BackgroundPolling
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.supervisor import end_with_parent
from annotruth.serve.worker.deliver import deliver_due
from annotruth.serve.worker.loop import beat, run
from annotruth.serve.worker.schedule import retry_after

_NICENESS = 5  # people who post labels come first

_LOGGER = logging.getLogger(__name__)


def main() -> int:
    """Run the worker until SIGTERM; return the exit code."""
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("annotruth.serve").setLevel(logging.INFO)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    end_with_parent()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    try:
        config = ServeConfig.from_environment(os.environ)
        database = _open(config.database, stop)
        if database is None:
            return 0
        database.check_schema()
        allow_private = config.private_webhooks
        deliver = partial(deliver_due, database, allow_private=allow_private)
        poll = BackgroundPolling(database, config.data_dir, allow_private=allow_private)
        run(database, config.data_dir, stop, [deliver, poll, Seldom(partial(beat, database))])
    except AnnotruthError as error:
        _LOGGER.error("%s", error)
        return 2
    return 0


class Seldom:
    """Calls a function at most once in some seconds, however often it is called itself.

    Examples
    --------
    >>> calls = []
    >>> beat = Seldom(lambda: calls.append(1))
    >>> beat(), beat()
    (None, None)
    >>> calls
    [1]
    """

    def __init__(self, function: Callable[[], object], seconds: float = 10.0) -> None:
        self._function, self._seconds = function, seconds
        self._last = -math.inf

    def __call__(self) -> None:
        """Call the function if it is time."""
        if time.monotonic() >= self._last + self._seconds:
            self._last = time.monotonic()
            self._function()


def _open(url: str, stop: threading.Event) -> Database | None:
    """Return the database, once it can be reached; None if the worker is asked to end before."""
    n_failures = 0
    while not stop.is_set():
        try:
            return Database.open(url)
        except DatabaseUnavailableError as error:
            n_failures += 1
            if n_failures == 1:
                _LOGGER.error("%s", error)
            stop.wait(retry_after(n_failures))
    return None
