"""Publish a fit: its folder first, then its row, histories, counts and alerts in one transaction."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from annotruth.advice.advice import advise
from annotruth.errors import system_errors_reported
from annotruth.io.atomic.system import sync_file
from annotruth.models.result import Fit
from annotruth.serve.store.alerts import add_alert
from annotruth.serve.store.database import Database
from annotruth.serve.store.records import AnnotatorHistory, Project, Snapshot, WorkerState
from annotruth.serve.store.schema import utc_now
from annotruth.serve.store.snapshots import (
    add_annotator_history,
    add_snapshot,
    folder_name,
    hourly_counts,
    next_version,
    remove_old_snapshots,
    set_hourly_counts,
    set_worker_state,
    snapshots_folder,
)
from annotruth.serve.worker.alerting import Alerted, find_alerts
from annotruth.serve.worker.fitting import CurrentFit
from annotruth.serve.worker.progress import DAY, count_per_hour
from annotruth.serve.worker.schedule import LastRefit
from annotruth.serve.worker.summary import changed_annotators, summarize


class NewEvents(NamedTuple):
    """The events since the snapshot before: after the first number, up to the last.

    Examples
    --------
    >>> NewEvents(after=0, last=2).last
    2
    """

    after: int
    last: int


class Published(NamedTuple):
    """A published snapshot and what the next one is compared with.

    Examples
    --------
    >>> Published(3, Alerted(), []).version
    3
    """

    version: int
    alerted: Alerted
    histories: list[AnnotatorHistory]


def publish(
    database: Database,
    data_dir: Path,
    project: Project,
    made: CurrentFit,
    events: NewEvents,
    refit: LastRefit,
    alerted: Alerted | None,
    histories: Mapping[str, AnnotatorHistory],
) -> Published | None:
    """Save a fit as the project's next snapshot; return None if data were erased meanwhile.

    When anything fails, the snapshot before stays the latest one.

    Parameters
    ----------
    database, data_dir, project
        Where to, and the project as it was when its labels were read.
    made, events
        The fit, and the events that are new in it.
    refit
        The last fit from scratch, for the summary.
    alerted
        What people were alerted to before; None if that was lost: then nobody is alerted now.
    histories
        The last row of every annotator's history.
    """
    now = utc_now()
    fit = made.fit
    advice = advise(fit) if isinstance(fit, Fit) else None
    found = find_alerts(fit, advice, made.seq, alerted or Alerted())
    with database.connect() as connection:
        version = next_version(connection, project.id)
        new_hours = count_per_hour(connection, project.id, events.after, events.last)
        earliest = min([now - 2 * DAY, *new_hours])
        per_hour = hourly_counts(connection, project.id, earliest)
    for hour, number in new_hours.items():
        per_hour[hour] = per_hour.get(hour, 0) + number
    rows = changed_annotators(project, version, fit, histories, now)
    summary = summarize(project, made, advice, per_hour, now)
    summary["refit"] = refit._asdict()
    snapshot = Snapshot(
        project.id,
        version,
        now,
        events.last,
        fit.data.n_labels,
        fit.model,
        "refit" if made.is_refit else "update",
        summary,
        folder_name(project.id, version),
    )
    folder = snapshots_folder(data_dir) / snapshot.folder
    _save(made, found.alerted, folder)
    # When the transaction fails, it may have been committed all the same, so the folder stays. A
    # folder without a row is removed by `remove_orphans`.
    with database.begin() as connection:
        is_added = add_snapshot(connection, snapshot, project)
        if is_added:
            add_annotator_history(connection, rows)
            set_hourly_counts(connection, project.id, {hour: per_hour[hour] for hour in new_hours})
            for each in found.alerts if alerted is not None else ():
                add_alert(connection, project.id, *each, created=now)
            set_worker_state(connection, WorkerState(project.id, events.last, now))
    if not is_added:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    with database.begin() as connection:
        remove_old_snapshots(connection, data_dir, project.id)
    return Published(version, found.alerted, rows)


def _save(made: CurrentFit, alerted: Alerted, folder: Path) -> None:
    try:
        made.fit.save(folder)
        with system_errors_reported(folder):
            sync_file(alerted.save(folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
