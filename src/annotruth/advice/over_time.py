"""Changes of annotators over time, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from annotruth.errors import shown
from annotruth.models.base_fit import AnnotatorResults


def describe_time(at: Any) -> str:
    """Return a date as "3 May 2024", and a number as it is."""
    return f"{at.day} {at:%B %Y}" if isinstance(at, datetime) else f"{at:g}"


def describe_change(row: Mapping[str, Any]) -> str:
    """Return a row of the table of changes in words: what changed, and when."""
    at = row["at"]
    when = f"{'on' if isinstance(at, datetime) else 'at'} {describe_time(at)}"
    return f"changed {when}: reliability {row['before']:.2f} before, {row['after']:.2f} after"


def name_change(row: Mapping[str, Any]) -> str:
    """Return a row of the table of changes in words, with the annotator."""
    return f"annotator {shown(row['annotator'])} {describe_change(row)}"


def last_changes(fit: AnnotatorResults) -> dict[Any, Mapping[str, Any]]:
    """Return the row of each annotator's last change; nothing where nobody changed."""
    if "over_time" not in fit.further:
        return {}
    rows = fit.further_table("over_time", "changes_over_time").to_pylist()
    return {row["annotator"]: row for row in rows}
