"""The worker's loop: every project in turn, whatever happens to one of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import update

from annotruth.errors import AnnotruthError, describe_exhaustion, one_line, shorten
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.projects import list_projects
from annotruth.serve.store.records import Project
from annotruth.serve.store.schema import utc_now, worker_state
from annotruth.serve.store.snapshots import get_worker_state, remove_orphans, set_worker_state
from annotruth.serve.worker.locks import only_worker
from annotruth.serve.worker.project import ProjectWorker
from annotruth.serve.worker.schedule import retry_after

_LOGGER = logging.getLogger(__name__)
_POLL_SECONDS = 0.25
_MAX_ERROR = 500
_SECONDS_BETWEEN_CALLS = 1.0
_SECONDS_TO_END = 5.0


class _Failure(NamedTuple):
    n: int
    retry_at: float


def run(
    database: Database,
    data_dir: Path,
    stop: threading.Event,
    others: Sequence[Callable[[], object]] = (),
) -> None:
    """Fit all projects until ``stop`` is set; wait while the database is away.

    ``others`` are called every second meanwhile, each in a thread of its own, by the only worker.
    """
    n_failures = 0
    while not stop.is_set():
        try:
            with only_worker(database, data_dir, lambda: stop.wait(_POLL_SECONDS)) as check:
                if check is not None:
                    loop = Loop(database, data_dir)
                    with _called_every_second(others):
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
def _called_every_second(functions: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Call functions every second, each in a thread of its own, so that none waits for another.

    An error that repeats is logged once.
    """
    end = threading.Event()

    def call(function: Callable[[], object]) -> None:
        is_failing = False
        while not end.wait(_SECONDS_BETWEEN_CALLS):
            try:
                function()
                is_failing = False
            except Exception as error:
                if not is_failing:
                    known = isinstance(error, AnnotruthError)
                    _LOGGER.error("%s", error, exc_info=None if known else error)
                is_failing = True

    threads = [threading.Thread(target=call, args=[each], daemon=True) for each in functions]
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
    """The projects that the worker knows, and those that failed.

    Parameters
    ----------
    database, data_dir
        Where labels come from and where snapshots go.

    Examples
    --------
    >>> database = Database.open("sqlite:///annotruth.db")
    >>> database.upgrade()
    >>> Loop(database, Path("data")).step()  # there are no projects
    False
    """

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
            self._keep_error(project, _describe(error))
            return False
        self._failures.pop(project.id, None)
        return is_published

    def _keep_error(self, project: Project, message: str) -> None:
        with self._database.begin() as connection:
            state = get_worker_state(connection, project.id)
            if state.error != message:
                _LOGGER.error("project %s: %s", project.name, message)
            set_worker_state(connection, state._replace(error=message, heartbeat=utc_now()))


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
    return shorten(one_line(message), _MAX_ERROR)
