"""The time: the only place that reads the clock for dates in results."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
