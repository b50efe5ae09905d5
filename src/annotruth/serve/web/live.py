"""Live events of projects: open pages learn of new labels, snapshots and alerts."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from sqlalchemy import func, select
from starlette.concurrency import run_in_threadpool

from annotruth.errors import AnnotruthError
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.events import last_seq
from annotruth.serve.store.tables import alert
from annotruth.serve.web.errors import UnavailableError
from annotruth.serve.web.guard import ServeMetrics
from annotruth.serve.web.results import SnapshotCache

_LOGGER = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How often the database is asked for changes of a project that somebody listens to."""

KEEP_ALIVE_SECONDS = 15.0
"""How often a stream without news sends a comment, so that proxies keep it open."""

MAX_SECONDS = 900.0
"""When a stream ends; browsers open it again, and the token is checked again."""

MAX_LISTENERS = 500


class LiveState(NamedTuple):
    """What pages of a project show the state of; ``version`` is that of the loaded snapshot."""

    last_seq: int
    version: int
    alert: int

    def changes(self, later: LiveState) -> dict[str, int]:
        """Return the values of a later state that are different."""
        before, after = self._asdict(), later._asdict()
        return {name: value for name, value in after.items() if value != before[name]}


class Live:
    """Sends listeners what changed in a project; the database is polled once for all of them."""

    def __init__(
        self, database: Database, snapshots: SnapshotCache, metrics: ServeMetrics | None = None
    ) -> None:
        self._database = database
        self._snapshots = snapshots
        self._metrics = ServeMetrics() if metrics is None else metrics
        self._listeners: dict[int, set[asyncio.Queue[LiveState | None]]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def n_listeners(self) -> int:
        """How many streams are open."""
        return sum(map(len, self._listeners.values()))

    def listen(self, project: int) -> AsyncIterator[bytes]:
        """Return the events of a project, as server-sent events: first its state, then changes."""
        if self.n_listeners >= MAX_LISTENERS:
            raise UnavailableError("too many pages listen already: try again later")
        return self._events(project)

    async def _events(self, project: int) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[LiveState | None] = asyncio.Queue(1)
        self._listeners.setdefault(project, set()).add(queue)
        if project not in self._tasks:
            self._tasks[project] = asyncio.create_task(self._poll(project))
        self._metrics.listeners.set(self.n_listeners)
        try:
            seen = LiveState(-1, -1, -1)
            end = time.monotonic() + MAX_SECONDS
            while time.monotonic() < end:
                try:
                    state = await asyncio.wait_for(queue.get(), KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    yield b": no news\n\n"
                    continue
                if state is None:
                    return
                if changes := seen.changes(state):
                    yield _event(changes)
                seen = state
        finally:
            self._forget(project, queue)

    def stop(self) -> None:
        """End all streams."""
        for task in self._tasks.values():
            task.cancel()
        for queues in self._listeners.values():
            for queue in queues:
                _replace(queue, None)

    def _forget(self, project: int, queue: asyncio.Queue[LiveState | None]) -> None:
        queues = self._listeners[project]
        queues.discard(queue)
        if not queues:
            del self._listeners[project]
            self._tasks.pop(project).cancel()
        self._metrics.listeners.set(self.n_listeners)

    async def _poll(self, project: int) -> None:
        while True:
            try:
                state = await run_in_threadpool(self._state, project)
            except DatabaseUnavailableError as error:
                _LOGGER.warning("live events are late: %s", error)
            else:
                for queue in self._listeners.get(project, ()):
                    _replace(queue, state)
            await asyncio.sleep(POLL_SECONDS)

    def _state(self, project: int) -> LiveState:
        last_alert = select(func.max(alert.c.id)).where(alert.c.project == project)
        version = self._version(project)
        with self._database.connect() as connection:
            return LiveState(
                last_seq(connection, project), version, connection.scalar(last_alert) or 0
            )

    def _version(self, project: int) -> int:
        """Return the snapshot that pages show: a page that is fetched after its event shows it."""
        try:
            loaded = self._snapshots.get(project)
        except DatabaseUnavailableError:
            raise
        except AnnotruthError as error:  # pages show why
            _LOGGER.warning("the snapshot of project %d cannot be loaded: %s", project, error)
            return 0
        return 0 if loaded is None else loaded.version


def _replace(queue: asyncio.Queue[LiveState | None], state: LiveState | None) -> None:
    """Put the newest state into a queue; a slow listener misses those in between."""
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(state)


def _event(changes: dict[str, int]) -> bytes:
    return f"event: change\ndata: {json.dumps(changes)}\n\n".encode()
