"""Publish a fit: its folder first, then its row, histories, counts and alerts in one transaction.

The row has the figures of the fit, and how far the project is: labels per hour, labels that are still
needed, and the expected end.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import BigInteger, Connection, func, select, type_coerce

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.analyses.advice.annotators import verdicts
from annotruth.analyses.advice.changes import LEAST_MOVE
from annotruth.analyses.advice.items import LEAST_GAIN, share_out
from annotruth.coefficients import krippendorff_alpha
from annotruth.errors import system_errors_reported
from annotruth.io.system import sync_file
from annotruth.serve.store.database import Database
from annotruth.serve.store.projects import (
    add_alert,
    add_snapshot,
    folder_name,
    hourly_counts,
    next_version,
    remove_old_snapshots,
    snapshots_folder,
)
from annotruth.serve.store.rows import add_all, from_microseconds, put, utc_now
from annotruth.serve.store.tables import (
    AnnotatorHistory,
    HourlyCount,
    Project,
    Snapshot,
    WorkerState,
    event,
)
from annotruth.serve.worker.alerting import Alerted, find_alerts
from annotruth.serve.worker.fitting import AnyFit, CurrentFit

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class ExpectedEnd(NamedTuple):
    """How fast labels come in, and when the last one needed is expected."""

    labels_per_hour: float  # the mean of the last day, or since the first label if that is later
    # When as many labels as are needed will be there at that rate; None if none are needed, or
    # none come in.
    end: datetime | None


def count_per_hour(
    connection: Connection, project_id: int, after: int, up_to: int
) -> dict[datetime, int]:
    """Return how many labels were submitted in each hour, by the events in a range of numbers."""
    microseconds = HOUR // timedelta(microseconds=1)
    hour = (type_coerce(event.c.submitted, BigInteger) // microseconds).label("hour")
    query = (
        select(hour, func.count())
        .where(event.c.project == project_id, event.c.seq > after, event.c.seq <= up_to)
        .where(~event.c.deleted)
        .group_by(hour)
    )
    return {
        from_microseconds(int(number) * microseconds): count
        for number, count in connection.execute(query)
    }


def labels_needed(advice: Advice, max_per_item: int | None = None) -> int:
    """Return how many labels an advice asks for, in all rounds, with a limit of labels per item."""
    items = advice.of_items
    add = share_out(None, items.uncertainty, items.gain, LEAST_GAIN)
    if max_per_item is not None:
        add = np.minimum(add, np.maximum(max_per_item - advice.fit.data.labels_per_item, 0))
    return int(add.sum())


def expected_end(
    per_hour: Mapping[datetime, int], now: datetime, *, n_needed: int | None
) -> ExpectedEnd:
    """Return the rate of the last day and the time when as many labels as needed are there."""
    latest = {hour: number for hour, number in per_hour.items() if hour > now - DAY - HOUR}
    if not latest:
        return ExpectedEnd(0.0, None)
    hours = max((now - min(latest)) / HOUR, 1.0)
    rate = sum(latest.values()) / hours
    if not n_needed:
        return ExpectedEnd(rate, None)
    try:
        return ExpectedEnd(rate, now + timedelta(hours=n_needed / rate))
    except OverflowError:  # in more than some thousand years
        return ExpectedEnd(rate, None)


def summarize(
    project: Project,
    made: CurrentFit,
    advice: Advice | None,
    per_hour: Mapping[datetime, int],
    now: datetime,
) -> dict[str, Any]:
    """Return the figures of a snapshot, of JSON types; what there is not for a model is None."""
    fit, settings = made.fit, project.settings
    n_needed = None
    if advice is not None:
        n_needed = labels_needed(advice, settings.get("labels_per_item"))
    expected = expected_end(per_hour, now, n_needed=n_needed)
    cost = settings.get("cost_per_label")
    # It is not known who is a spammer among labels of chance, or in a crowd of two sides.
    has_no_verdicts = fit.is_void or fit.verdict == "camps"
    figures: dict[str, Any] = {
        "n_labels": fit.data.n_labels,
        "n_items": fit.data.n_items,
        "n_annotators": fit.data.n_annotators,
        "n_spammers": None if has_no_verdicts else fit.n_spammers,
        "converged": fit.converged,
        "cost": None if cost is None else cost * fit.data.n_labels,
        "agreement": None,
        "n_finished": None,
        "n_needed": n_needed,
        "labels_per_hour": expected.labels_per_hour,
        "expected_end": None if expected.end is None else expected.end.isoformat(),
        "notes": [*(note.sentence for note in fit.notes), *made.notes],
    }
    if advice is not None:
        alpha = krippendorff_alpha(fit.data)
        statuses = advice.of_items.count()
        figures |= {
            "agreement": alpha if math.isfinite(alpha) else None,
            "statuses": statuses,
            "n_finished": fit.data.n_items - statuses["needs labels"],
            "verdicts": advice.of_annotators.count(),
        }
    return figures


def changed_annotators(
    project: Project,
    version: int,
    fit: AnyFit,
    last: Mapping[str, AnnotatorHistory],
    now: datetime,
) -> list[AnnotatorHistory]:
    """Return a row for every annotator who is new or changed noticeably since their last row.

    That is: another verdict or behavior, a reliability or an end of its interval that moved by
    `LEAST_MOVE`, or twice as many labels.
    """
    if fit.reliability is None and fit.kind == "comparisons":
        return []
    n = fit.data.n_annotators
    reliability, low, high = (
        [None] * n if values is None else values.tolist()
        for values in (fit.reliability, fit.low, fit.high)
    )
    columns = (
        fit.data.annotators.to_pylist(),
        fit.data.labels_per_annotator.tolist(),
        reliability,
        low,
        high,
        fit.behavior or [""] * n,
        verdicts(fit)[0].tolist(),
    )
    rows = (
        AnnotatorHistory(project.id, name, version, now, *others)
        for name, *others in zip(*columns, strict=True)
    )
    return [row for row in rows if _is_noticeable(row, last.get(row.annotator))]


def _is_noticeable(row: AnnotatorHistory, last: AnnotatorHistory | None) -> bool:
    if last is None or row.n_labels >= 2 * last.n_labels:
        return True
    if (row.verdict, row.behavior) != (last.verdict, last.behavior):
        return True
    return any(
        (now is None) != (before is None)
        or (now is not None and before is not None and abs(now - before) >= LEAST_MOVE)
        for now, before in (
            (row.reliability, last.reliability),
            (row.low, last.low),
            (row.high, last.high),
        )
    )


class ModelChoice(NamedTuple):
    """What the model of a project was chosen with."""

    settings: str  # the fingerprint of the settings
    n_labels: int  # how many labels there were


class Published(NamedTuple):
    """A published snapshot and what the next one is compared with."""

    version: int
    alerted: Alerted
    histories: list[AnnotatorHistory]


def publish(
    database: Database,
    data_dir: Path,
    project: Project,
    made: CurrentFit,
    events: tuple[int, int],
    choice: ModelChoice,
    alerted: Alerted | None,
    histories: Mapping[str, AnnotatorHistory],
) -> Published | None:
    """Save a fit as the project's next snapshot; return None if data were erased meanwhile.

    ``events`` are the numbers of the last event of the snapshot before, and of this one.

    When anything fails, the snapshot before stays the latest one.
    """
    now, fit, (after, last) = utc_now(), made.fit, events
    advice = advise(fit) if fit.kind == "labels" else None
    alerted_now, alerts = find_alerts(fit, advice, made.seq, alerted or Alerted())
    with database.connect() as connection:
        version = next_version(connection, project.id)
        new_hours = count_per_hour(connection, project.id, after, last)
        earliest = min([now - 2 * DAY, *new_hours])
        per_hour = hourly_counts(connection, project.id, earliest)
    for hour, number in new_hours.items():
        per_hour[hour] = per_hour.get(hour, 0) + number
    rows = changed_annotators(project, version, fit, histories, now)
    summary = summarize(project, made, advice, per_hour, now)
    summary["choice"] = choice._asdict()
    snapshot = Snapshot(
        project.id,
        version,
        now,
        last,
        fit.data.n_labels,
        fit.model,
        "refit" if made.is_refit else "update",
        summary,
        folder_name(project.id, version),
    )
    folder = snapshots_folder(data_dir) / snapshot.folder
    try:
        fit.save(folder)
        with system_errors_reported(folder):
            sync_file(alerted_now.save(folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # When the transaction fails, it may have been committed all the same, so the folder stays. A
    # folder without a row is removed by `remove_orphans`.
    with database.begin() as connection:
        is_added = add_snapshot(connection, snapshot, project)
        if is_added:
            add_all(connection, rows)
            put(connection, [HourlyCount(project.id, hour, per_hour[hour]) for hour in new_hours])
            for each in alerts if alerted is not None else ():
                add_alert(connection, project.id, *each, created=now)
            put(connection, [WorkerState(project.id, last, now)])
    if not is_added:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    with database.begin() as connection:
        remove_old_snapshots(connection, data_dir, project.id)
    return Published(version, alerted_now, rows)
