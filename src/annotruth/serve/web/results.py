"""The latest fit of each project, loaded once and served until a newer one is; its tables.

Tables are sorted, filtered, and returned a part at a time.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.analyses.advice.pairs.advice import PairAdvice, advise_pairs
from annotruth.errors import AnnotruthError, InputError, listed, shown
from annotruth.models.result import Fit
from annotruth.models.storage import load_fit
from annotruth.serve.store.database import Database
from annotruth.serve.store.snapshots import latest_snapshot
from annotruth.serve.store.tables import Snapshot

_LOGGER = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0  # how often the database is asked for a newer version
_MOST_LOADED = 8  # projects; the one used longest ago is dropped
_SECONDS_BETWEEN_TRIES = 0.2

Value = TypeVar("Value")

TableName = Literal["items", "annotators"]
Order = Literal["asc", "desc"]

_ID = {"items": "item", "annotators": "annotator"}


@dataclass(frozen=True, eq=False)
class LoadedSnapshot:
    """A snapshot, its fit and the advice drawn from it."""

    row: Snapshot
    fit: Fit[Any]
    advice: Advice | PairAdvice
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The number of the snapshot."""
        return self.row.version

    def keep(self, name: str, make: Callable[[], Value]) -> Value:
        """Return what ``make`` returns, which is made once per snapshot; such as a sorted table."""
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
            elif row.version != entry.loaded.version and _is_done(entry.loading):
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


def _is_done(loading: Future[None] | None) -> bool:
    return loading is None or loading.done()


class TablePart(NamedTuple):
    """Some rows of a table, how many there are in all, and where the next part starts, if any."""

    rows: list[dict[str, Any]]
    n_rows: int
    next_start: int | None


def result_table(loaded: LoadedSnapshot, name: TableName) -> pa.Table:
    """Return the items or the annotators of a snapshot, with the advice on each."""
    return loaded.keep(name, lambda: _make_table(loaded, name))


def _make_table(loaded: LoadedSnapshot, name: TableName) -> pa.Table:
    fit, advice = loaded.fit, loaded.advice
    table: pa.Table = getattr(fit, "item_table" if name == "items" else "annotator_table")()
    if name == "annotators":
        more = advice.annotator_table()
    elif hasattr(advice, "item_table"):
        more = advice.item_table()
    else:  # of comparisons, pairs are advised on
        return table
    for column in more.column_names:
        if column not in table.column_names:
            table = table.append_column(column, more[column])
    return table


def table_part(
    loaded: LoadedSnapshot,
    name: TableName,
    *,
    sort: str | None = None,
    order: Order = "asc",
    status: str | None = None,
    start: int = 0,
    limit: int = 100,
) -> TablePart:
    """Return some rows of a table, sorted by a column, those with a status or verdict alone."""
    table = result_table(loaded, name)
    rows = _sorted_rows(loaded, name, sort, order)
    if status is not None:
        column = "status" if name == "items" else "verdict"
        if column not in table.column_names:
            raise InputError(f"these {name} have no {column}: leave it out")
        has_status = pc.fill_null(pc.equal(table[column], status), False).to_numpy()
        rows = rows[has_status[rows]]
    chosen = table.take(pa.array(rows[start : start + limit]))
    end = start + limit
    return TablePart(to_rows(chosen), len(rows), end if end < len(rows) else None)


def _sorted_rows(
    loaded: LoadedSnapshot, name: TableName, sort: str | None, order: Order
) -> np.ndarray[Any, np.dtype[np.int64]]:
    table = result_table(loaded, name)
    if sort is None:
        return np.arange(len(table))
    if sort not in table.column_names:
        raise InputError(f"sort by {shown(sort)}: choose one of {listed(table.column_names, 40)}")
    keys = [(sort, "descending" if order == "desc" else "ascending")]
    return loaded.keep(
        f"{name} by {sort} {order}",
        lambda: pc.sort_indices(table, keys).to_numpy().astype(np.int64),
    )


def row_of(loaded: LoadedSnapshot, name: TableName, id_: str) -> dict[str, Any] | None:
    """Return the row of an item or an annotator; None if the snapshot has none."""
    table = result_table(loaded, name)
    row = row_numbers(loaded, name).get(id_)
    return None if row is None else to_rows(table.slice(row, 1))[0]


def rows_of(loaded: LoadedSnapshot, name: TableName, ids: list[str]) -> list[dict[str, Any]]:
    """Return the rows of those ids that the snapshot has."""
    numbers = row_numbers(loaded, name)
    rows = [numbers[each] for each in ids if each in numbers]
    return to_rows(result_table(loaded, name).take(pa.array(rows, pa.int64())))


def row_numbers(loaded: LoadedSnapshot, name: TableName) -> dict[str, int]:
    """Return the number of the row of each item or annotator."""

    def make() -> dict[str, int]:
        ids = result_table(loaded, name)[_ID[name]].to_pylist()
        return {str(each): row for row, each in enumerate(ids)}

    return loaded.keep(f"row numbers of {name}", make)


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
