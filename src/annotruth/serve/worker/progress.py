"""How far a project is: labels per hour, labels that are still needed, and the expected end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from sqlalchemy import BigInteger, Connection, func, select, type_coerce

from annotruth.advice.advice import Advice
from annotruth.advice.items import LEAST_GAIN, share_out
from annotruth.serve.store.schema import event, from_microseconds

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class ExpectedEnd(NamedTuple):
    """How fast labels come in, and when the last one needed is expected.

    Attributes
    ----------
    labels_per_hour
        The mean of the last day, or since the first label if that is later.
    end
        When as many labels as are needed will be there at that rate; None if none are needed, or
        none come in.

    Examples
    --------
    >>> from datetime import UTC
    >>> now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    >>> expected_end({now - 2 * HOUR: 30, now - HOUR: 10}, now, n_needed=40).end - now
    datetime.timedelta(seconds=7200)
    """

    labels_per_hour: float
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
