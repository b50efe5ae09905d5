"""The latest fit of each project, loaded once and served until a newer one is; its tables; live events.

Tables are sorted, filtered, and returned a part at a time. Open pages learn of new labels, snapshots and
alerts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import func, select
from starlette.concurrency import run_in_threadpool

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.analyses.advice.pairs.advice import PairAdvice, advise_pairs
from annotruth.errors import AnnotruthError, InputError, listed, shown
from annotruth.models.result import Fit
from annotruth.models.storage import load_fit
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.events import last_seq
from annotruth.serve.store.projects import latest_snapshot
from annotruth.serve.store.tables import Snapshot, alert
from annotruth.serve.web.guard import ServeMetrics, UnavailableError

_LOGGER = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0  # how often the database is asked for a newer version
_MOST_LOADED = 8  # projects; the one used longest ago is dropped
_SECONDS_BETWEEN_TRIES = 0.2

Value = TypeVar("Value")

TableName = Literal["items", "annotators"]
Order = Literal["asc", "desc"]

POLL_SECONDS = 1.0
"""How often the database is asked for changes of a project that somebody listens to."""

KEEP_ALIVE_SECONDS = 15.0
"""How often a stream without news sends a comment, so that proxies keep it open."""

MAX_SECONDS = 900.0
"""When a stream ends; browsers open it again, and the token is checked again."""

MAX_LISTENERS = 500


@dataclass(frozen=True, eq=False)
class ResultTable:
    """The items or the annotators of a snapshot, with the advice on each: one row per id."""

    name: TableName
    table: pa.Table

    @classmethod
    def join(cls, name: TableName, result: pa.Table, advice: pa.Table | None) -> ResultTable:
        """Return the rows of a fit's table with the further columns of the advice, if there is any."""
        if advice is not None:
            for column in advice.column_names:
                if column not in result.column_names:
                    result = result.append_column(column, advice[column])
        return cls(name, result)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of the row of each id."""
        ids = self.table[self.name.removesuffix("s")].to_pylist()
        return {str(each): row for row, each in enumerate(ids)}

    def row(self, id_: str) -> dict[str, Any] | None:
        """Return the row of an item or an annotator; None if the snapshot has none."""
        number = self.numbers.get(id_)
        return None if number is None else to_rows(self.table.slice(number, 1))[0]

    def part(
        self, sort: str | None, order: Order, status: str | None, start: int, limit: int
    ) -> dict[str, Any]:
        """Return some rows, sorted by a column, those with a status or verdict alone.

        Beside them: how many rows there are in all, and where the next part starts, if any.
        """
        table, names = self.table, self.table.column_names
        if status is not None:
            column = "status" if self.name == "items" else "verdict"
            if column not in names:
                raise InputError(f"these {self.name} have no {column}: leave it out")
            table = table.filter(pc.equal(table[column], status))
        if sort is not None and sort not in names:
            raise InputError(f"sort by {shown(sort)}: choose one of {listed(names, 40)}")
        chosen = sorted_part(table, sort, start, limit, descending=order == "desc")
        end, total = start + limit, len(table)
        return {"total": total, self.name: to_rows(chosen), "next": end if end < total else None}


def sorted_part(
    table: pa.Table, sort: str | None, start: int, limit: int, *, descending: bool
) -> pa.Table:
    """Return some rows of a table that is sorted by a column; what is missing comes last."""
    if sort is None:
        return table.slice(start, limit)
    order = "descending" if descending else "ascending"
    rows = pc.sort_indices(table[sort], sort_keys=[("", order)])
    return table.take(rows.slice(start, limit))


@dataclass(frozen=True, eq=False)
class LoadedSnapshot:
    """A snapshot, its fit, the advice drawn from it, and their tables, which are made once."""

    row: Snapshot
    fit: Fit[Any]
    advice: Advice | PairAdvice
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The number of the snapshot."""
        return self.row.version

    @cached_property
    def items(self) -> ResultTable:
        """The items; those of a ranking have no advice, which is on pairs."""
        of_items = self.advice.item_table() if isinstance(self.advice, Advice) else None
        return ResultTable.join("items", self.fit.item_table(), of_items)

    @cached_property
    def annotators(self) -> ResultTable:
        """The annotators."""
        people = self.advice.annotator_table()
        return ResultTable.join("annotators", self.fit.annotator_table(), people)

    def keep(self, name: str, make: Callable[[], Value]) -> Value:
        """Return what ``make`` returns, which is made once per snapshot."""
        if name not in self.kept:
            self.kept[name] = make()
        value: Value = self.kept[name]
        return value


@dataclass(eq=False)
class _Entry:
    """What is loaded of a project, and whether a newer version is being loaded."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    loaded: LoadedSnapshot | None = None
    checked: float = -math.inf
    loading: Future[None] | None = None


class SnapshotCache:
    """The latest fit of each project.

    A newer version is loaded by a thread, and the one before is served until then.
    """

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(1, "snapshots")

    def get(self, project: int) -> LoadedSnapshot | None:
        """Return the latest snapshot of a project that is loaded; None if there is none yet.

        It reads the database and, the first time, waits until the fit is loaded.
        """
        entry = self._entry(project)
        with entry.lock:
            if time.monotonic() - entry.checked < _CHECK_SECONDS:
                return entry.loaded
            entry.checked = time.monotonic()
            row = self._latest(project)
            if row is None or entry.loaded is None:
                entry.loaded = None if row is None else self._load(project)
            elif row.version != entry.loaded.version and (
                entry.loading is None or entry.loading.done()
            ):
                entry.loading = self._executor.submit(self._replace, project, entry)
            return entry.loaded

    def close(self) -> None:
        """Wait for what is being loaded, and load nothing more."""
        self._executor.shutdown(cancel_futures=True)

    def _entry(self, project: int) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(project, _Entry())
            self._entries.move_to_end(project)
            if len(self._entries) > _MOST_LOADED:
                self._entries.popitem(last=False)
            return entry

    def _latest(self, project: int) -> Snapshot | None:
        with self._database.connect() as connection:
            return latest_snapshot(connection, project)

    def _replace(self, project: int, entry: _Entry) -> None:
        try:
            loaded = self._load(project)
        except Exception:
            _LOGGER.exception("the snapshot of project %d could not be loaded", project)
            return
        with entry.lock:
            entry.loaded = loaded

    def _load(self, project: int) -> LoadedSnapshot | None:
        """Load the latest snapshot; again, if its folder was removed for a newer one meanwhile."""
        for last_try in (False, False, True):
            row = self._latest(project)
            if row is None:
                return None
            try:
                fit = load_fit(self._folder / row.folder)
            except AnnotruthError:
                if last_try:
                    raise
                time.sleep(_SECONDS_BETWEEN_TRIES)
            else:
                return LoadedSnapshot(
                    row, fit, advise_pairs(fit) if fit.kind == "comparisons" else advise(fit)
                )
        raise AssertionError("unreachable")


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON has them: no NaN, ids as text."""
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                row[name] = None
            elif name in ("item", "annotator") and value is not None:
                row[name] = str(value)
    return rows


def without(row: Any, *names: str) -> dict[str, Any]:
    """Return a row of the store as JSON has it, without some columns."""
    return {name: value for name, value in row._asdict().items() if name not in names}


class LiveState(NamedTuple):
    """What pages of a project show the state of; ``version`` is that of the loaded snapshot."""

    last_seq: int
    version: int
    alert: int

    def changes(self, later: LiveState) -> dict[str, int]:
        """Return the values of a later state that are different."""
        before, after = self._asdict(), later._asdict()
        return {name: value for name, value in after.items() if value != before[name]}


@dataclass(eq=False)
class _Polled:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    state: LiveState | None = None
    time: float = -math.inf


class Live:
    """Sends listeners what changed in a project; the database is polled once for all of them."""

    def __init__(
        self, database: Database, snapshots: SnapshotCache, metrics: ServeMetrics | None = None
    ) -> None:
        self._database = database
        self._snapshots = snapshots
        self._metrics = ServeMetrics() if metrics is None else metrics
        self._polled: defaultdict[int, _Polled] = defaultdict(_Polled)
        self._stopped = asyncio.Event()
        self.n_listeners = 0  # open streams

    def listen(self, project: int) -> AsyncIterator[bytes]:
        """Return the events of a project, as server-sent events: first its state, then changes."""
        if self.n_listeners >= MAX_LISTENERS:
            raise UnavailableError("too many pages listen already: try again later")
        return self._events(project)

    async def _events(self, project: int) -> AsyncIterator[bytes]:
        self._count(1)
        try:
            seen = LiveState(-1, -1, -1)
            sent = start = time.monotonic()
            while not self._stopped.is_set() and time.monotonic() - start < MAX_SECONDS:
                state = await self._state(project) or seen
                if changes := seen.changes(state):
                    yield f"event: change\ndata: {json.dumps(changes)}\n\n".encode()
                elif time.monotonic() - sent > KEEP_ALIVE_SECONDS:
                    yield b": no news\n\n"
                else:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._stopped.wait(), POLL_SECONDS)
                    continue
                seen, sent = state, time.monotonic()
        finally:
            self._count(-1)

    def stop(self) -> None:
        """End all streams."""
        self._stopped.set()

    def _count(self, change: int) -> None:
        self.n_listeners += change
        self._metrics.listeners.set(self.n_listeners)

    async def _state(self, project: int) -> LiveState | None:
        """Return the state of a project, at most `POLL_SECONDS` old; None before the first one."""
        polled = self._polled[project]
        async with polled.lock:
            if time.monotonic() - polled.time >= POLL_SECONDS:
                try:
                    polled.state = await run_in_threadpool(self._read, project)
                except DatabaseUnavailableError as error:
                    _LOGGER.warning("live events are late: %s", error)
                polled.time = time.monotonic()
            return polled.state

    def _read(self, project: int) -> LiveState:
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
