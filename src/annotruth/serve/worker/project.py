"""The worker's part for one project: read what changed, decide what is due, fit, publish."""

from __future__ import annotations

import logging
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from annotruth.errors import AnnotruthError, InputError
from annotruth.models.storage import load_fit
from annotruth.observations.frames import as_arrow
from annotruth.serve.store.current import (
    EVENT_STATES,
    SAID,
    keep_current,
    latest_states,
    read_events,
)
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import last_seq
from annotruth.serve.store.projects import (
    all_gold,
    get_worker_state,
    latest_annotator_history,
    snapshot_history,
    snapshots_folder,
)
from annotruth.serve.store.rows import put
from annotruth.serve.store.tables import Project, Snapshot, event
from annotruth.serve.worker.alerting import Alerted
from annotruth.serve.worker.fitting import AnyFit, FitSettings, fit_current
from annotruth.serve.worker.publish import LastRefit, publish

REFIT_AFTER = 0.2
"""The share of labels that may change after a fit from scratch before the next one is due."""

_QUIET_SECONDS = 30.0
_QUIET_TIMES = 10.0  # a quiet time as long as this many fits, so that refits take a tenth of it
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0

_LOGGER = logging.getLogger(__name__)
_GOLD_SECONDS = 5.0  # how often known truths are read while no labels come


def is_refit_due(last: LastRefit | None, settings: str, refit_after: float) -> bool:
    """Return whether the next fit starts from scratch.

    It does the first time, when settings or known truths changed, and when more labels than the
    share ``refit_after`` changed. So the number of labels grows by that factor between refits, and
    all refits together take about ``1 + 1 / refit_after`` times as long as the last.
    """
    return last is None or last.settings != settings or last.share > refit_after


def is_quiet_refit_due(last: LastRefit | None, seconds_without_events: float) -> bool:
    """Return whether a refit is due because labels changed since the last one and none come now."""
    if last is None or not last.n_changed:
        return False
    return seconds_without_events >= max(_QUIET_SECONDS, _QUIET_TIMES * last.seconds)


def retry_after(n_failures: int) -> float:
    """Return how many seconds to wait after some failures in a row."""
    return min(_FIRST_WAIT * 2.0 ** max(n_failures - 1, 0), _LONGEST_WAIT)


class ProjectWorker:
    """What the worker knows of one project between two looks at the database.

    All of it comes from the database and the folder of the latest snapshot, so that a worker that was
    killed goes on where its last snapshot ended.
    """

    def __init__(self, database: Database, data_dir: Path, project: Project) -> None:
        self._database, self._data_dir = database, data_dir
        self._start(project)

    def _start(self, project: Project) -> None:
        """Read everything."""
        self._project = project
        self._fit: AnyFit | None = None
        self._refit: LastRefit | None = None
        self._alerted: Alerted | None = Alerted()
        self._fitted_seq = 0  # the last event of the latest snapshot
        with self._database.connect() as connection:
            snapshots = snapshot_history(connection, project.id, limit=1)
            self._histories = latest_annotator_history(connection, project.id)
        if snapshots:
            self._load(snapshots[0])
        self._seq, self._states = 0, EVENT_STATES.empty_table()
        self._current = self._states
        self._read_events()
        # How many labels changed since the snapshot is not known, but whether any did.
        self._n_changed = int(self._seq > self._fitted_seq)
        self._gold_read = -_GOLD_SECONDS
        self._last_event = time.monotonic()

    def _load(self, snapshot: Snapshot) -> None:
        """Take up the latest snapshot; without its folder, the next fit starts from scratch.

        Its labels are counted and its alerts were given, whether its folder is there or not.
        """
        self._fitted_seq, self._alerted = snapshot.last_seq, None
        if not snapshot.folder:  # a person's data were erased
            return
        folder = snapshots_folder(self._data_dir) / snapshot.folder
        try:
            self._fit, self._alerted = load_fit(folder), Alerted.load(folder)
            self._refit = LastRefit(**snapshot.summary["refit"])
        except (AnnotruthError, OSError, ValueError, LookupError, TypeError) as error:
            _LOGGER.warning(
                "project %s: the last snapshot cannot be read: %s", snapshot.project, error
            )
            self._fit = self._refit = self._alerted = None

    def step(self, project: Project) -> bool:
        """Fit and publish if anything changed; return whether a snapshot was published.

        ``project`` is the project as it is now.
        """
        if project.erasures != self._project.erasures:
            self._start(project)
        self._project = project
        self._count_changes()
        self._read_settings()
        if not len(self._current):
            if self._fit is None:
                return False
            raise InputError(f"all {project.kind} were deleted: the results are those before")
        return self._is_due() and self._fit_and_publish()

    def _read_events(self) -> bool:
        """Bring the current labels up to date; return whether there are new events."""
        with self._database.connect() as connection:
            last = last_seq(connection, self._project.id)
            if last == self._seq:
                return False
            later = (event.c.project == self._project.id) & (event.c.seq > self._seq)
            new = read_events(connection, EVENT_STATES.names, later)
        self._states = latest_states(pa.concat_tables([self._states, new]))
        self._current = keep_current(self._states, self._project.kind)
        self._seq = last
        return True

    def _count_changes(self) -> None:
        """Read new events, and count the labels that they change."""
        before = self._current
        if not self._read_events():
            return
        self._last_event = time.monotonic()
        self._n_changed += count_changes(before, self._current)
        if not self._n_changed:  # the latest snapshot is up to date
            with self._database.begin() as connection:
                state = get_worker_state(connection, self._project.id)
                put(connection, [state._replace(last_seq=self._seq)])

    def _read_settings(self) -> None:
        now = time.monotonic()
        if self._n_changed or now >= self._gold_read + _GOLD_SECONDS:
            with self._database.connect() as connection:
                self._gold = all_gold(connection, self._project.id)
            self._gold_read = now
        self._settings = FitSettings.of(self._project.settings, self._gold)

    def _is_due(self) -> bool:
        if self._n_changed or self._refit is None:
            return True
        if self._refit.settings != self._settings.fingerprint():
            return True
        return is_quiet_refit_due(self._refit, time.monotonic() - self._last_event)

    def _fit_and_publish(self) -> bool:
        settings = self._settings.fingerprint()
        refit_after = float(self._project.settings.get("refit_after", REFIT_AFTER))
        last = self._refit
        if last is not None:
            last = last._replace(n_changed=last.n_changed + self._n_changed)
        is_quiet = self._n_changed == 0
        from_scratch = is_quiet or is_refit_due(last, settings, refit_after)
        start = time.monotonic()
        before = None if from_scratch else self._fit
        made = fit_current(self._current, self._project.kind, self._settings, before)
        if made.is_refit or last is None:
            seconds = time.monotonic() - start
            last = LastRefit(settings, made.fit.data.n_labels, 0, seconds)
        published = publish(
            self._database,
            self._data_dir,
            self._project,
            made,
            (self._fitted_seq, self._seq),
            last,
            self._alerted,
            self._histories,
        )
        if published is None:  # a person's data were erased meanwhile
            return False
        self._fit, self._refit, self._alerted = made.fit, last, published.alerted
        self._histories |= {each.annotator: each for each in published.histories}
        self._fitted_seq, self._n_changed = self._seq, 0
        _LOGGER.info(
            "project %s: snapshot %d of %d labels, %s in %.1f s",
            self._project.name,
            published.version,
            made.fit.data.n_labels,
            "refit" if made.is_refit else "update",
            time.monotonic() - start,
        )
        return True


def count_changes(before: pa.Table, after: pa.Table) -> int:
    """Return how many labels were added, edited or deleted between two tables of current ones."""

    def said(table: pa.Table, other: pa.Table) -> Counter[tuple[str, ...]]:
        own = table.filter(as_arrow(~np.isin(table["seq"].to_numpy(), other["seq"].to_numpy())))
        return Counter(zip(*(own[name].to_pylist() for name in SAID), strict=True))

    gone, new = said(before, after), said(after, before)
    return max((new - gone).total(), (gone - new).total())
