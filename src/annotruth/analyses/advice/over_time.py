"""Changes of annotators over time, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import shown
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.observations.encode import match_ids


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


def with_changes(
    fit: Fit[Any], verdict: NDArray[np.str_], reasons: Sequence[str]
) -> tuple[NDArray[np.str_], list[str]]:
    """Return verdicts and reasons that take annotators' last changes into account.

    Nobody is kept without reserve who is a spammer since.
    """
    table = fit.further_table("over_time", "changes_over_time")
    places = match_ids(table["annotator"].combine_chunks(), fit.data.annotators).tolist()
    verdict, reasons = verdict.copy(), list(reasons)
    last = dict(zip(places, table.to_pylist(), strict=True))
    for s, row in last.items():
        reasons[s] += f"; {describe_change(row)}"
        if verdict[s] == "keep" and row["after"] < SPAMMER_BELOW:
            verdict[s] = "unsure"
    return verdict, reasons
