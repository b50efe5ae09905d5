"""Ingestion of labels: many requests are committed together, and answered when they are on disk.

Handlers put events into a queue and wait. One thread takes all that waits, appends it in one
transaction, and answers every request after the commit. So an acknowledged label is on disk, and
the cost of a commit is shared by the requests that come in while the one before is written.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from annotruth.errors import InputError, listed, shown
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.events import append_batches, check_event
from annotruth.serve.store.tables import AppendedEvents, Batch, LabelEvent, Project
from annotruth.serve.web.guard import ServeMetrics, UnavailableError

_LOGGER = logging.getLogger(__name__)

MAX_BATCH = 10_000
"""The most events of one request; a stream may have more."""

_MAX_WAITING = 100_000  # events; more are refused until some are written
_MAX_GROUP = 10_000  # events of one commit, so that nobody waits long


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    batch: Batch
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[AppendedEvents]


class Ingest:
    """Appends events of many requests at once, and answers when they are committed."""

    def __init__(self, database: Database, metrics: ServeMetrics | None = None) -> None:
        self._database = database
        self._metrics = ServeMetrics() if metrics is None else metrics
        self._waiting: deque[_Request] = deque()
        self._n_waiting = 0
        self._changed = threading.Condition()
        self._running = False
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)

    def start(self) -> None:
        """Start the thread that writes."""
        self._running = True
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, and end the thread."""
        with self._changed:
            self._running = False
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    async def append(
        self, project: Project, source: str, events: Sequence[LabelEvent]
    ) -> AppendedEvents:
        """Append events, and return when they are committed."""
        check_events(project, events)
        loop = asyncio.get_running_loop()
        batch = Batch(project.id, source, events)
        request = _Request(batch, loop, loop.create_future())
        with self._changed:
            if not self._running:
                raise UnavailableError("the server is stopping: try again")
            if self._n_waiting and self._n_waiting + len(events) > _MAX_WAITING:
                raise UnavailableError("too many labels are waiting to be written: try again")
            self._waiting.append(request)
            self._n_waiting += len(events)
            self._changed.notify()
        return await request.future

    def _run(self) -> None:
        while group := self._next_group():
            n_events = sum(len(request.batch.events) for request in group)
            self._metrics.commits.observe(n_events)
            self._write(group)
            self._metrics.waiting.set(self._n_waiting)

    def _next_group(self) -> list[_Request]:
        """Wait for requests, and return those to commit together; none at the end."""
        with self._changed:
            while self._running and not self._waiting:
                self._changed.wait()
            group: list[_Request] = []
            n_events = 0
            while self._waiting and n_events < _MAX_GROUP:
                request = self._waiting.popleft()
                group.append(request)
                n_events += len(request.batch.events)
            self._n_waiting -= n_events
            return group

    def _write(self, group: list[_Request]) -> None:
        """Commit a group and answer its requests; if that fails, one by one, to see which."""
        try:
            with self._database.begin() as connection:
                done = append_batches(connection, [each.batch for each in group], datetime.now(UTC))
        except Exception as error:  # noqa: BLE001 (every request must be answered)
            if len(group) > 1 and not isinstance(error, DatabaseUnavailableError):
                for request in group:
                    self._write([request])
                return
            self._metrics.failed_commits.inc()
            failure = _failure(error)
            for request in group:
                _reply(request, failure)
            return
        for request, appended in zip(group, done, strict=True):
            self._metrics.labels.labels("accepted").inc(appended.n_new)
            self._metrics.labels.labels("repeated").inc(appended.n_repeated)
            _reply(request, appended)


def _failure(error: Exception) -> Exception:
    if isinstance(error, DatabaseUnavailableError):
        _LOGGER.warning("labels not written: %s", error)
        return UnavailableError(f"{error.public_reason}, and nothing was stored: try again")
    if isinstance(error, InputError):
        return error
    _LOGGER.error("labels not written", exc_info=error)
    return UnavailableError("the labels could not be written: see the server's log")


def _reply(request: _Request, result: AppendedEvents | Exception) -> None:
    """Answer a request in its own event loop, unless its client has gone."""

    def set_result() -> None:
        if request.future.done():
            return
        if isinstance(result, Exception):
            request.future.set_exception(result)
        else:
            request.future.set_result(result)

    try:
        request.loop.call_soon_threadsafe(set_result)
    except RuntimeError:  # the loop was closed meanwhile
        _LOGGER.debug("nobody waits for these labels any more")


def check_events(project: Project, events: Sequence[LabelEvent]) -> None:
    """Refuse events that cannot be stored, or whose label is not of the project's categories."""
    categories = project.settings.get("categories")
    names = None if not categories else {str(each) for each in categories}
    for number, event in enumerate(events):
        try:
            check_event(event, project.kind)
            if not event.deleted and names is not None and event.label not in names:
                raise InputError(
                    f"label {shown(event.label)} is none of the project's categories: "
                    f"{listed(categories or ())}"
                )
        except InputError as error:
            if len(events) == 1:
                raise
            # As pydantic numbers the objects of a list.
            raise InputError(f"{number}: {error}") from None
