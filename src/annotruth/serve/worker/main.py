"""The worker's process."""

from __future__ import annotations

import logging
import os
import signal
import threading

from annotruth.errors import AnnotruthError
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.supervisor import end_with_parent
from annotruth.serve.worker.loop import run
from annotruth.serve.worker.schedule import retry_after

_NICENESS = 5  # people who post labels come first

_LOGGER = logging.getLogger(__name__)


def main() -> int:
    """Run the worker until SIGTERM; return the exit code."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
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
        run(database, config.data_dir, stop)
    except AnnotruthError as error:
        _LOGGER.error("%s", error)
        return 2
    return 0


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
