"""The latest fit of each project, loaded once and served until a newer one is loaded."""

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
from typing import TYPE_CHECKING, Any, TypeVar

from annotruth.errors import AnnotruthError
from annotruth.models.pairs.result import RankFit
from annotruth.models.result import Fit
from annotruth.models.storage import load_fit
from annotruth.serve.store.database import Database
from annotruth.serve.store.records import Snapshot
from annotruth.serve.store.snapshots import latest_snapshot

if TYPE_CHECKING:
    from annotruth.advice.advice import Advice
    from annotruth.advice.pairs.advice import PairAdvice

_LOGGER = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0  # how often the database is asked for a newer version
_MOST_LOADED = 8  # projects; the one used longest ago is dropped
_SECONDS_BETWEEN_TRIES = 0.2

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class LoadedSnapshot:
    """A snapshot, its fit and the advice drawn from it.

    Examples
    --------
    >>> import annotruth as at
    >>> from datetime import UTC, datetime
    >>> from annotruth.advice.advice import advise
    >>> fit = at.fit([("a", "ann", 1), ("a", "bob", 3), ("b", "ann", 3)], "majority")
    >>> row = Snapshot(1, 1, datetime.now(UTC), 3, 3, "majority", "refit", {}, "1/1")
    >>> LoadedSnapshot(row, fit, advise(fit)).version
    1
    """

    row: Snapshot
    fit: Fit | RankFit
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

    Examples
    --------
    >>> database = Database.open("sqlite:///labels.db")
    >>> database.upgrade()
    >>> cache = SnapshotCache(database, Path("snapshots"))
    >>> cache.get(1) is None
    True
    >>> cache.close()
    >>> database.dispose()
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
                return LoadedSnapshot(row, fit, _advice_of(fit))
        raise AssertionError("unreachable")


def _is_done(loading: Future[None] | None) -> bool:
    return loading is None or loading.done()


def _advice_of(fit: Fit | RankFit) -> Advice | PairAdvice:
    if isinstance(fit, RankFit):
        from annotruth.advice.pairs.advice import advise_pairs

        return advise_pairs(fit)
    from annotruth.advice.advice import advise

    return advise(fit)
