"""What pages read from the database, beside the functions of the store."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from sqlalchemy import Connection, func, select

from annotruth.serve.pages.annotators import Activity
from annotruth.serve.store.records import StoredEvent
from annotruth.serve.store.schema import alert, event
from annotruth.serve.store.snapshots import annotator_history, latest_annotator_history
from annotruth.serve.web.schemas import AlertKind

TO_ACT_ON: tuple[AlertKind, ...] = ("verdict", "agreement")
"""Which alerts ask for something."""

_RECENT = 100  # labels, for the speed of an annotator
_TREND_POINTS = 40
_MAX_PAST = 100
# An expression, so that SQLite does not read all events of a project in this order.
_LATEST_FIRST = -event.c.seq


def activity_of(
    connection: Connection, project_id: int, annotators: Sequence[str]
) -> dict[str, Activity]:
    """Return the speed and the past reliability of some annotators."""
    found = {}
    for annotator in annotators:
        past = annotator_history(connection, project_id, annotator)[-_TREND_POINTS:]
        seconds = median_seconds(connection, project_id, annotator)
        found[annotator] = Activity(seconds, [each.reliability for each in past])
    return found


def median_seconds(connection: Connection, project_id: int, annotator: str) -> float | None:
    """Return the median time from start to submission of an annotator's latest labels."""
    latest = (
        select(event.c.started, event.c.submitted)
        .where(
            event.c.project == project_id,
            event.c.annotator == annotator,
            event.c.started.is_not(None),
            ~event.c.deleted,
        )
        .order_by(_LATEST_FIRST)
        .limit(_RECENT)
    )
    seconds = [(row.submitted - row.started).total_seconds() for row in connection.execute(latest)]
    return median(seconds) if seconds else None


def past_events(
    connection: Connection, project_id: int, item: str, current: Sequence[StoredEvent]
) -> list[StoredEvent]:
    """Return the events of an item that are not its current labels, the latest first."""
    query = select(event).where(event.c.project == project_id, event.c.item == item)
    latest = query.order_by(_LATEST_FIRST).limit(_MAX_PAST + len(current))
    kept = {each.seq for each in current}
    return [StoredEvent(*row) for row in connection.execute(latest) if row.seq not in kept][
        :_MAX_PAST
    ]


def n_received(connection: Connection, project_id: int) -> int:
    """Return how many events a project has received."""
    return connection.scalar(select(func.count()).where(event.c.project == project_id)) or 0


def to_drop(connection: Connection, project_id: int) -> list[str]:
    """Return the annotators whose last verdict is to drop them, by name."""
    latest = latest_annotator_history(connection, project_id)
    return sorted(name for name, row in latest.items() if row.verdict == "drop")


def n_unseen(connection: Connection, project_id: int) -> int:
    """Return how many alerts of a project that ask for something nobody has seen."""
    unseen = select(func.count()).where(
        alert.c.project == project_id, ~alert.c.seen, alert.c.kind.in_(TO_ACT_ON)
    )
    return connection.scalar(unseen) or 0
