"""Polling: what a platform says now, compared with what is known of it; and predictions for it.

It finds the annotations that webhooks have lost: missing, changed and deleted ones. Labels have the
ids that the webhooks' events would have had, so that nothing counts twice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from annotruth.errors import AnnotruthError, InputError, counted
from annotruth.models.result import Fit
from annotruth.models.storage.folder import load_fit
from annotruth.serve.hooks.label_studio import LabelStudioProject
from annotruth.serve.hooks.message import (
    Fields,
    HookProject,
    PlatformState,
    PolledAnnotation,
    event_id,
    says_the_same,
    time_of,
)
from annotruth.serve.hooks.platforms import PLATFORMS, can_poll
from annotruth.serve.hooks.write_back import WrittenBack, write_back
from annotruth.serve.store.columns import utc_now
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.events import (
    AnnotationState,
    annotation_states,
    append_events,
    check_event,
)
from annotruth.serve.store.projects import check_gold, keep_contact, list_projects, set_gold
from annotruth.serve.store.rows import find
from annotruth.serve.store.snapshots import latest_snapshot, snapshots_folder
from annotruth.serve.store.tables import LabelEvent, PlatformConnection, Project, ProjectKind

POLL_EVERY = timedelta(minutes=10)
"""How often a platform is polled, unless one of its messages asks for it."""
PREDICT_EVERY = timedelta(minutes=1)
"""How often predictions are written back at most; less often where that takes long."""
POLLED, REQUESTED, PREDICT_AFTER, VERSION = "polled", "requested", "predict_after", "predicted"
"""Entries of a connection's cursor: times of polling, and the snapshot that was written back."""
_REST = 20  # predictions are written back in this part of the time at most
_LOGGER = logging.getLogger(__name__)
_MAX_DELETIONS = 1_000  # that are looked up one by one in a poll; more are found by the next ones


class Polled(NamedTuple):
    """What polling found: events that were missing here, with known truths by item, and counts."""

    events: list[LabelEvent]
    gold: dict[str, str]
    n_missing: int
    n_changed: int
    n_deleted: int
    problem: str  # of annotations that could not be read; empty if all could

    @property
    def summary(self) -> str:
        """The counts in words."""
        return f"{self.n_missing:,} missing, {self.n_changed:,} changed, {self.n_deleted:,} deleted"


class BackgroundPolling:
    """Polls what is due in a thread of its own, because platforms may take minutes to answer.

    The worker calls it again and again; a call returns at once, and does nothing while the last poll
    is not at its end. The options are those of `PlatformClient`, such as ``allow_private``.
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
        connections = [
            each for each in find(connection, PlatformConnection) if can_poll(each.settings)
        ]
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
        hook_project = HookProject(project.kind, polled.settings)
        with PLATFORMS[polled.kind].open(hook_project, **options) as state:
            found = reconcile(state, known, project.kind)
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
        if fit.kind == "labels":
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
    with LabelStudioProject(settings, **options) as label_studio:
        question = settings.get("question")
        return write_back(label_studio, fit.item_table(), fit.data.scale, question=question)


def reconcile(
    state: PlatformState, known: Mapping[str, AnnotationState], kind: ProjectKind
) -> Polled:
    """Return the events that lead from what is known to what was found.

    ``known`` must have been read before: an annotation that arrives during the poll is then neither
    missing nor deleted. An annotation that cannot be stored is left out as one that cannot be read
    is, so that the others are stored.
    """
    events: list[LabelEvent] = []
    gold: dict[str, str] = {}
    problems: list[str] = []
    seen: set[str] = set()
    n_missing = 0
    for each in (_checked(one, kind) for one in state.annotations):
        seen.add(each.annotation)
        before = known.get(each.annotation)
        if each.event is None:
            problems.append(each.problem)
        elif before is None or not says_the_same(before.event_id, each.event.event_id):
            if before is None and each.event.deleted and not each.gold:
                continue  # skipped, and never known
            n_missing += before is None
            events.append(each.event)
            gold |= each.gold
    n_given = len(events)
    events += _deletions(known, seen, state.still_exists)
    return Polled(
        events,
        gold,
        n_missing=n_missing,
        n_changed=n_given - n_missing,
        n_deleted=len(events) - n_given,
        problem=_summary(problems),
    )


def _checked(found: PolledAnnotation, kind: ProjectKind) -> PolledAnnotation:
    """Return an annotation, without its event if that cannot be stored."""
    try:
        if found.event is not None:
            check_event(found.event, kind)
            check_gold(found.gold)
    except InputError as error:
        return PolledAnnotation(found.annotation, None, problem=str(error))
    return found


def _deletions(
    known: Mapping[str, AnnotationState], seen: set[str], still_exists: Callable[[str], bool]
) -> list[LabelEvent]:
    gone = [name for name, state in known.items() if not state.deleted and name not in seen]
    return [
        # The id has the state that ends: a frame whose tag came back can lose it once more.
        LabelEvent(
            annotation=name,
            event_id=event_id(name, "deleted", known[name].event_id),
            deleted=True,
        )
        for name in gone[:_MAX_DELETIONS]
        if not still_exists(name)
    ]


def _summary(problems: list[str]) -> str:
    if not problems:
        return ""
    annotations = counted(len(problems), "annotation")
    return f"{annotations} could not be read, the first because: {problems[0]}"
