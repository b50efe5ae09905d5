"""One worker at a time: a lock of the data directory, and of a PostgreSQL database."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import Connection, text

from annotruth.errors import system_errors_reported
from annotruth.io.atomic.system import try_lock
from annotruth.serve.store.database import Database

_LOGGER = logging.getLogger(__name__)
_KEY = 0x616E6E77
_FILE = "worker.lock"


@contextmanager
def only_worker(
    database: Database, data_dir: Path, wait: Callable[[], bool]
) -> Iterator[Callable[[], None] | None]:
    """Return a function that raises if the lock was lost; wait while another worker holds it.

    ``wait`` is called between two attempts and returns whether to give up; then None is returned.
    """
    with ExitStack() as stack:
        with system_errors_reported(data_dir):
            data_dir.mkdir(parents=True, exist_ok=True)
            path = data_dir / _FILE
            descriptor = _wait_for(lambda: try_lock(path), wait, str(data_dir))
        if descriptor is None:
            yield None
            return
        stack.callback(os.close, descriptor)
        if database.is_sqlite:
            yield lambda: None
            return
        # The lock ends with its session, so this connection is used for nothing else, and closed
        # rather than kept for others.
        connection = stack.enter_context(database.connect())
        connection.detach()
        if _wait_for(lambda: _try_key(connection), wait, database.name) is None:
            yield None
            return

        def check() -> None:
            connection.execute(text("select 1"))
            connection.commit()

        yield check


def _try_key(connection: Connection) -> int | None:
    """Take the lock of the database and return its key; None if another session holds it."""
    taken = connection.scalar(text("select pg_try_advisory_lock(:key)"), {"key": _KEY})
    connection.commit()
    return _KEY if taken else None


def _wait_for(
    attempt: Callable[[], int | None], wait: Callable[[], bool], where: str
) -> int | None:
    """Return the result of an attempt that is not None; None if ``wait`` says to give up."""
    lock = attempt()
    if lock is None:
        _LOGGER.info("another worker is at work with %s: waiting until it ends", where)
    while lock is None and not wait():
        lock = attempt()
    return lock
