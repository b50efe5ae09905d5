"""The worker's part for one project: read what changed, decide what is due, fit, publish."""

from __future__ import annotations

import logging
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from annotruth.errors import AnnotruthError, InputError
from annotruth.models.registry import AUTO
from annotruth.models.storage import load_fit
from annotruth.observations.frames import as_arrow
from annotruth.serve.store.current import EVENT_STATES, SAID, after_events, read_events
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
from annotruth.serve.worker.publish import ModelChoice, publish

_CHOOSE_AFTER = 1.2  # times as many labels as when `auto` chose the model
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0

_LOGGER = logging.getLogger(__name__)
_GOLD_SECONDS = 5.0  # how often known truths are read while no labels come


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
        self._project = project
        self._fit: AnyFit | None = None
        self._choice: ModelChoice | None = None
        self._alerted: Alerted | None = Alerted()
        self._fitted_seq = 0  # the last event of the latest snapshot
        with self._database.connect() as connection:
            snapshots = snapshot_history(connection, project.id, limit=1)
            self._histories = latest_annotator_history(connection, project.id)
        if snapshots:
            self._load(snapshots[0])
        self._seq, self._states = 0, EVENT_STATES.empty_table()
        self._current = self._states.select(["seq", *SAID])
        self._read_events()
        self._is_changed = self._seq > self._fitted_seq
        self._gold_read = -_GOLD_SECONDS

    def _load(self, snapshot: Snapshot) -> None:
        """Take up the latest snapshot; without its folder, all is fitted again.

        Its labels are counted and its alerts were given, whether its folder is there or not.
        """
        self._fitted_seq, self._alerted = snapshot.last_seq, None
        if not snapshot.folder:  # a person's data were erased
            return
        folder = snapshots_folder(self._data_dir) / snapshot.folder
        try:
            self._fit, self._alerted = load_fit(folder), Alerted.load(folder)
            self._choice = ModelChoice(**snapshot.summary["choice"])
        except (AnnotruthError, OSError, ValueError, LookupError, TypeError) as error:
            _LOGGER.warning(
                "project %s: the last snapshot cannot be read: %s", snapshot.project, error
            )
            self._fit = self._choice = self._alerted = None

    def step(self, project: Project) -> bool:
        """Fit and publish if anything changed; return whether a snapshot was published.

        ``project`` is the project as it is now.
        """
        if project.erasures != self._project.erasures:
            self._start(project)
        self._project = project
        self._note_changes()
        self._read_settings()
        if not len(self._current):
            if self._fit is None:
                return False
            raise InputError(f"all {project.kind} were deleted: the results are those before")
        is_new = self._choice is None or self._choice.settings != self._settings.fingerprint()
        return (is_new or self._is_changed) and self._fit_and_publish()

    def _read_events(self) -> bool:
        with self._database.connect() as connection:
            last = last_seq(connection, self._project.id)
            if last == self._seq:
                return False
            later = (event.c.project == self._project.id) & (event.c.seq > self._seq)
            new = read_events(connection, EVENT_STATES.names, later)
        self._states, self._current = after_events(
            self._states, self._current, new, self._project.kind
        )
        self._seq = last
        return True

    def _note_changes(self) -> None:
        before = self._current
        if self._read_events() and not self._is_changed:
            self._is_changed = not say_the_same(before, self._current)
            if not self._is_changed:  # the latest snapshot is up to date
                with self._database.begin() as connection:
                    state = get_worker_state(connection, self._project.id)
                    put(connection, [state._replace(last_seq=self._seq)])

    def _read_settings(self) -> None:
        now = time.monotonic()
        if self._is_changed or now >= self._gold_read + _GOLD_SECONDS:
            with self._database.connect() as connection:
                self._gold = all_gold(connection, self._project.id)
            self._gold_read = now
        self._settings = FitSettings.of(self._project.settings, self._gold)

    def _fit_and_publish(self) -> bool:
        start, kept, choice = time.monotonic(), None, self._choice
        settings, n_labels = self._settings.fingerprint(), len(self._current)
        if self._settings.model == AUTO and choice is not None and choice.settings == settings:
            kept = self._fit if n_labels <= _CHOOSE_AFTER * choice.n_labels else None
        made = fit_current(self._current, self._project.kind, self._settings, kept)
        if made.is_refit or choice is None:
            choice = ModelChoice(settings, n_labels)
        published = publish(
            self._database,
            self._data_dir,
            self._project,
            made,
            (self._fitted_seq, self._seq),
            choice,
            self._alerted,
            self._histories,
        )
        if published is None:  # a person's data were erased meanwhile
            return False
        self._fit, self._choice, self._alerted = made.fit, choice, published.alerted
        self._histories |= {each.annotator: each for each in published.histories}
        self._fitted_seq, self._is_changed = self._seq, False
        _LOGGER.info(
            "project %s: snapshot %d of %d labels in %.1f s",
            self._project.name,
            published.version,
            made.fit.data.n_labels,
            time.monotonic() - start,
        )
        return True


def say_the_same(before: pa.Table, after: pa.Table) -> bool:
    """Return whether two tables of current labels have the same labels."""

    def said(table: pa.Table, other: pa.Table) -> Counter[tuple[str, ...]]:
        own = table.filter(as_arrow(~np.isin(table["seq"].to_numpy(), other["seq"].to_numpy())))
        return Counter(zip(*(own[name].to_pylist() for name in SAID), strict=True))

    return said(before, after) == said(after, before)
