"""Names, limits and helpers that all fits share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.observations.frames import as_arrow

Column: TypeAlias = Floats | NDArray[np.bool_] | pa.Array
"""A model-specific column of a table: numbers, truth values, or text."""

Readout: TypeAlias = Literal["right", "opinion"]
"""What items' probabilities are: of the right label, or the shares of serious opinion."""

Verdict: TypeAlias = Literal["informative", "chance", "camps"]
"""Whether labels or comparisons agree better than chance, or no better.

"camps": they do, but about half of the annotators contradict the others.
"""

SPAMMER_BELOW = 0.5
"""Reliability below which the GPM paper calls an annotator a spammer."""

TOO_FEW = "too few labels to tell"
"""The behavior of annotators with too few labels to estimate it."""

LOW_ACCURACY, PARTLY_CARELESS, OTHER_OPINION = "low accuracy", "partly careless", "another opinion"
UNCLEAR = "unclear"
"""The behaviors of annotators who are noticed, but not flagged."""

NO_VERDICT = "no verdict"
"""The behavior of annotators where nobody can be assessed."""

ACCURACY_COLUMNS = ("accuracy", "accuracy_low", "accuracy_high")
"""The probability that a label of an annotator is right, with its 95% interval."""

FLAGGED = "flagged"
"""The column of annotators who are flagged, which is shown as ``spammer``."""

READOUTS: Mapping[Readout, str] = {
    "right": "probabilities of the right label",
    "opinion": "shares of opinion",
}
"""What items' probabilities are, in words."""

SETS, RANKING = "sets", "ranking"
"""The entry ``kind`` of saved fits of sets of labels, whose data and model have this name, too, and of comparisons."""

FORMAT = 2
"""Version of the files that a fit is saved in; a change that old code cannot read raises it."""


def is_above(value: float, drawn: Sequence[float] | Floats, significance: float) -> bool:
    """Whether a value is significantly higher than those of random draws.

    Draws are normal, with a mean and a variance that are estimated from them: Student's t for one
    more draw.
    """
    from scipy.special import stdtrit  # imported here because that takes longer than a small fit

    n = len(drawn)
    limit = stdtrit(n - 1, significance) * np.std(drawn, ddof=1) * np.sqrt(1.0 + 1.0 / n)
    return bool(value > np.mean(drawn) + limit)


def now() -> datetime:
    """Return the time in UTC, to the second: the date of fits and reports."""
    return datetime.now(UTC).replace(microsecond=0)


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """Return an Arrow table of columns of numbers, truth values, or text."""
    return pa.table(
        {
            name: column if isinstance(column, pa.Array) else as_arrow(column)
            for name, column in columns.items()
        }
    )
