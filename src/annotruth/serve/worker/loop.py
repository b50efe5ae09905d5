"""The worker's process and its loop: every project in turn, by one worker at a time."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import text, update

from annotruth.errors import (
    AnnotruthError,
    describe_exhaustion,
    messages_for,
    one_line,
    shorten,
    system_errors_reported,
)
from annotruth.io.system import try_lock
from annotruth.serve.config import ServeConfig
from annotruth.serve.hooks.polling import poll_due
from annotruth.serve.start import end_with_parent
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.projects import get_worker_state, list_projects, remove_orphans
from annotruth.serve.store.rows import put, utc_now
from annotruth.serve.store.tables import Project, worker_state
from annotruth.serve.worker.deliver import deliver_due
from annotruth.serve.worker.project import ProjectWorker, retry_after

_LOGGER = logging.getLogger(__name__)
_LOCK_KEY = 0x616E6E77
_LOCK_FILE = "worker.lock"

_POLL_SECONDS = 0.25
_MAX_ERROR_LENGTH = 500
_SECONDS_TO_END = 5.0

_NICENESS = 5  # people who post labels come first


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
            path = data_dir / _LOCK_FILE
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

        def try_key() -> int | None:
            taken = connection.scalar(text("select pg_try_advisory_lock(:key)"), {"key": _LOCK_KEY})
            connection.commit()
            return _LOCK_KEY if taken else None

        if _wait_for(try_key, wait, database.name) is None:
            yield None
            return

        def check() -> None:
            connection.execute(text("select 1"))
            connection.commit()

        yield check


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


class _Failure(NamedTuple):
    n: int
    retry_at: float


def run(
    database: Database,
    data_dir: Path,
    stop: threading.Event,
    others: Mapping[Callable[[], object], float] = MappingProxyType({}),
) -> None:
    """Fit all projects until ``stop`` is set; wait while the database is away.

    ``others`` are called meanwhile, each in a thread of its own, by the only worker: the number is that of
    seconds between two calls.
    """
    n_failures = 0
    while not stop.is_set():
        try:
            with only_worker(database, data_dir, lambda: stop.wait(_POLL_SECONDS)) as check:
                if check is None:
                    return
                loop = Loop(database, data_dir)
                with _called_again_and_again(others):
                    while not stop.is_set():
                        check()
                        is_idle = not loop.step()
                        n_failures = 0
                        if is_idle:
                            stop.wait(_POLL_SECONDS)
        except DatabaseUnavailableError as error:
            n_failures += 1
            if n_failures == 1:
                _LOGGER.error("%s", error)
            stop.wait(retry_after(n_failures))


@contextmanager
def _called_again_and_again(functions: Mapping[Callable[[], object], float]) -> Iterator[None]:
    """Call functions every so many seconds, each in a thread of its own: none waits for another.

    An error that repeats is logged once.
    """
    end = threading.Event()

    def call(function: Callable[[], object], seconds: float) -> None:
        is_failing = False
        while not end.wait(seconds):
            try:
                function()
                is_failing = False
            except Exception as error:
                if not is_failing:
                    known = isinstance(error, AnnotruthError)
                    _LOGGER.error("%s", error, exc_info=None if known else error)
                is_failing = True

    threads = [threading.Thread(target=call, args=each, daemon=True) for each in functions.items()]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end.set()
        deadline = time.monotonic() + _SECONDS_TO_END
        for thread in threads:
            thread.join(timeout=max(deadline - time.monotonic(), 0.0))


class Loop:
    """The projects that the worker knows, and those that failed."""

    def __init__(self, database: Database, data_dir: Path) -> None:
        self._database, self._data_dir = database, data_dir
        self._workers: dict[int, ProjectWorker] = {}
        self._failures: dict[int, _Failure] = {}
        with database.connect() as connection:
            remove_orphans(connection, data_dir)

    def step(self, clock: Callable[[], float] = time.monotonic) -> bool:
        """Process every project once; return whether a snapshot was published."""
        with self._database.connect() as connection:
            projects = list_projects(connection)
        gone = self._workers.keys() - {each.id for each in projects}
        for project_id in gone:
            del self._workers[project_id]
        published = [self._step(project, clock) for project in projects]
        return any(published)

    def _step(self, project: Project, clock: Callable[[], float]) -> bool:
        failure = self._failures.get(project.id)
        if failure is not None and clock() < failure.retry_at:
            return False
        try:
            if project.id not in self._workers:
                self._workers[project.id] = ProjectWorker(self._database, self._data_dir, project)
            is_published = self._workers[project.id].step(project)
        except DatabaseUnavailableError:
            raise
        except Exception as error:
            n_failures = 1 if failure is None else failure.n + 1
            self._failures[project.id] = _Failure(n_failures, clock() + retry_after(n_failures))
            if not isinstance(error, AnnotruthError):
                # Whatever it was, start again from what is stored.
                self._workers.pop(project.id, None)
                _LOGGER.exception("project %s failed", project.name)
            message = _describe(error)
            with self._database.begin() as connection:
                state = get_worker_state(connection, project.id)
                if state.error != message:
                    _LOGGER.error("project %s: %s", project.name, message)
                put(connection, [state._replace(error=message, heartbeat=utc_now())])
            return False
        self._failures.pop(project.id, None)
        return is_published


def beat(database: Database) -> None:
    """Note for all projects that the worker is alive."""
    with database.begin() as connection:
        connection.execute(update(worker_state).values(heartbeat=utc_now()))


def _describe(error: Exception) -> str:
    if isinstance(error, AnnotruthError):
        message = str(error)
    elif isinstance(error, MemoryError | RecursionError):
        message = describe_exhaustion(error)
    else:
        message = f"the fit failed ({type(error).__name__}: {error}): see the log of the worker"
    return shorten(one_line(message), _MAX_ERROR_LENGTH)


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
        private = config.private_webhooks
        others: dict[Callable[[], object], float] = {
            partial(deliver_due, database, allow_private=private): 1.0,
            partial(poll_due, database, config.data_dir, allow_private=private): 1.0,
            partial(beat, database): 10.0,
        }
        with messages_for("service"):
            run(database, config.data_dir, stop, others)
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


if __name__ == "__main__":
    sys.exit(main())
