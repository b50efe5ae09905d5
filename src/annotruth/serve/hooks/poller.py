"""Which connections are polled when, and what is done with what is found.

The worker calls `BackgroundPolling` every second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from annotruth.errors import AnnotruthError, InputError
from annotruth.models.result import Fit
from annotruth.models.storage.folder import load_fit
from annotruth.serve.hooks.cvat_api import Cvat
from annotruth.serve.hooks.cvat_polling import poll_cvat
from annotruth.serve.hooks.label_studio_api import LabelStudio
from annotruth.serve.hooks.message import Fields, HookProject, time_of
from annotruth.serve.hooks.polling import Polled, poll_label_studio
from annotruth.serve.hooks.settings import can_poll
from annotruth.serve.hooks.write_back import WrittenBack, write_back
from annotruth.serve.store.annotations import annotation_states
from annotruth.serve.store.connections import (
    PlatformConnection,
    keep_contact,
    list_connections,
)
from annotruth.serve.store.content import set_gold
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.events import append_events
from annotruth.serve.store.projects import list_projects
from annotruth.serve.store.records import Project
from annotruth.serve.store.schema import utc_now
from annotruth.serve.store.snapshots import latest_snapshot, snapshots_folder

POLL_EVERY = timedelta(minutes=10)
"""How often a platform is polled, unless one of its messages asks for it."""
PREDICT_EVERY = timedelta(minutes=1)
"""How often predictions are written back at most; less often where that takes long."""
POLLED, REQUESTED, PREDICT_AFTER, VERSION = "polled", "requested", "predict_after", "predicted"
"""Entries of a connection's cursor: times of polling, and the snapshot that was written back."""
_REST = 20  # predictions are written back in this part of the time at most
_LOGGER = logging.getLogger(__name__)


class BackgroundPolling:
    """Polls what is due in a thread of its own, because platforms may take minutes to answer.

    The worker calls it again and again; a call returns at once, and does nothing while the last poll
    is not at its end.

    Parameters
    ----------
    database, data_dir
        Where labels go, and where snapshots are.
    options
        Options of `PlatformClient`, such as ``allow_private``.

    Examples
    --------
    >>> database = Database.open("sqlite:///labels.db")
    >>> database.upgrade()
    >>> polling = BackgroundPolling(database, Path("data"))
    >>> polling()
    >>> polling.wait()
    """

    def __init__(self, database: Database, data_dir: Path, **options: Any) -> None:
        self._database, self._data_dir, self._options = database, data_dir, options
        self._thread: threading.Thread | None = None

    def __call__(self) -> None:
        """Start to poll what is due, unless the last poll still runs."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._poll, name="polling", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for the end of a poll that runs."""
        if self._thread is not None:
            self._thread.join()

    def _poll(self) -> None:
        try:
            poll_due(self._database, self._data_dir, utc_now(), **self._options)
        except DatabaseUnavailableError:
            pass  # the worker's loop reports it
        except Exception:
            _LOGGER.exception("polling failed")


def poll_due(database: Database, data_dir: Path, now: datetime, **options: Any) -> None:
    """Poll the connections whose turn it is, and write predictions back where there are new ones."""
    with database.connect() as connection:
        projects = {each.id: each for each in list_projects(connection)}
        connections = [each for each in list_connections(connection) if can_poll(each.settings)]
    for each in connections:
        project = projects[each.project]
        if is_poll_due(each.cursor, now):
            poll_connection(database, each, project, now, **options)
        if each.settings.get("predictions") and project.kind == "labels":
            _predict_if_due(database, data_dir, each, now, **options)


def is_poll_due(cursor: Fields, now: datetime) -> bool:
    """Return whether a poll was requested since the last one began, or that is long ago."""
    polled, requested = time_of(cursor.get(POLLED)), time_of(cursor.get(REQUESTED))
    if polled is None:
        return True
    return now - polled >= POLL_EVERY or (requested is not None and requested >= polled)


def poll_connection(
    database: Database,
    polled: PlatformConnection,
    project: Project,
    now: datetime,
    **options: Any,
) -> Polled | None:
    """Append what a platform has that is not known here; None if the platform cannot be read.

    What went wrong is kept as the last error of the connection.
    """
    # Read before the platform is: what arrives meanwhile is then not taken for deleted.
    with database.connect() as connection:
        known = annotation_states(connection, project.id, polled.source)
    began = {POLLED: now.isoformat()}
    try:
        found = _poll(polled, project, known, **options)
    except Exception as error:  # noqa: BLE001 (whatever it is must not stop other connections)
        problem = _problem(polled, error)
        with database.begin() as connection:
            keep_contact(connection, polled.id, now, error=problem, cursor=began)
        return None
    with database.begin() as connection:
        append_events(connection, project.id, polled.source, found.events, utc_now())
        set_gold(connection, project.id, found.gold)
        keep_contact(connection, polled.id, now, error=found.problem, cursor=began)
    if found.events:
        _LOGGER.info("connection %d was polled: %s", polled.id, found.summary)
    return found


def _problem(of: PlatformConnection, error: Exception) -> str:
    """Log what went wrong with a connection, and return it in one line."""
    if isinstance(error, AnnotruthError):
        _LOGGER.warning("connection %d: %s", of.id, error)
        return str(error)
    _LOGGER.error("connection %d failed", of.id, exc_info=error)
    return f"the answer was not understood ({type(error).__name__}: {error}): see the worker's log"


def _poll(
    polled: PlatformConnection, project: Project, known: Mapping[str, Any], **options: Any
) -> Polled:
    if polled.kind == "cvat":
        if project.kind == "comparisons":
            raise InputError("CVAT's tags are labels, not comparisons: use a project of labels")
        with Cvat(polled.settings, **options) as cvat:
            return poll_cvat(cvat, known)
    with LabelStudio(polled.settings, **options) as label_studio:
        return poll_label_studio(label_studio, HookProject(project.kind, polled.settings), known)


def _predict_if_due(
    database: Database, data_dir: Path, to: PlatformConnection, now: datetime, **options: Any
) -> None:
    with database.connect() as connection:
        latest = latest_snapshot(connection, to.project)
    after = time_of(to.cursor.get(PREDICT_AFTER))
    is_early = after is not None and now < after
    if latest is None or is_early or latest.version == to.cursor.get(VERSION):
        return
    cursor: dict[str, Any] = {}
    error, began = "", time.monotonic()
    try:
        fit = load_fit(snapshots_folder(data_dir) / latest.folder)
        if isinstance(fit, Fit):
            written = write_predictions_back(fit, to.settings, **options)
            error = f"predictions: {written.summary}" if written.n_refused else ""
        cursor[VERSION] = latest.version
    except Exception as problem:  # noqa: BLE001 (as above)
        error = f"predictions: {_problem(to, problem)}"
    rest = timedelta(seconds=_REST * (time.monotonic() - began))
    cursor[PREDICT_AFTER] = (now + max(PREDICT_EVERY, rest)).isoformat()
    with database.begin() as connection:
        keep_contact(connection, to.id, now, error=error, cursor=cursor)


def write_predictions_back(fit: Fit, settings: Fields, **options: Any) -> WrittenBack:
    """Write the predictions of a fit to the project of Label Studio that the settings name."""
    with LabelStudio(settings, **options) as label_studio:
        question = settings.get("question")
        return write_back(label_studio, fit.item_table(), fit.data.scale, question=question)
