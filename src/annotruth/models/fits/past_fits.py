"""The table of past fits: how each annotator stood in every fit of a campaign.

It has one row per fit and annotator. Annotators' ids are text, so that they stay comparable when
text comes among numbers.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.models.base_fit import ACCURACY_COLUMNS
from annotruth.observations.encode import to_text
from annotruth.observations.scale import to_plain

if TYPE_CHECKING:
    from annotruth.models.result import Fit

SCHEMA = pa.schema(
    [
        pa.field("time", pa.timestamp("s", tz="UTC"), nullable=False),
        pa.field("fit_labels", pa.int64(), nullable=False),
        pa.field("fit_items", pa.int64(), nullable=False),
        pa.field("fit_annotators", pa.int64(), nullable=False),
        pa.field("annotator", pa.string(), nullable=False),
        pa.field("n_labels", pa.int64(), nullable=False),
        pa.field("reliability", pa.float64()),
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("since", pa.int64(), nullable=False),
        pa.field("standing", pa.string(), nullable=False),
        pa.field("accuracy", pa.float64()),
        pa.field("accuracy_low", pa.float64()),
        pa.field("accuracy_high", pa.float64()),
    ]
)
"""The columns: when the fit was made, its counts, and what it said of one annotator.

``since`` is how many labels the annotator had when fits began to give the verdict, ``standing`` the standing verdict.
"""

MAX_ROWS = 1_000_000
"""Of more rows, those of the oldest fits are left out."""


def annotator_names(fit: Fit) -> pa.Array:
    """Return the annotators' ids as text."""
    return to_text(to_plain(fit.data.annotators)).cast(pa.string())


def rows_of(fit: Fit, time: datetime, standing: pa.Table) -> pa.Table:
    """Return the rows of one fit, given its standing verdicts."""
    data, n = fit.data, fit.data.n_annotators

    def each(value: object, type_: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, type_), n)

    columns = {
        "time": each(time, SCHEMA.field("time").type),
        "fit_labels": each(data.n_labels, pa.int64()),
        "fit_items": each(data.n_items, pa.int64()),
        "fit_annotators": each(n, pa.int64()),
        "n_labels": data.labels_per_annotator.astype(np.int64),
        **{name: standing[name] for name in standing.column_names},
    }
    estimates = {name: getattr(fit, name) for name in ("reliability", "low", "high")}
    estimates |= {name: fit.annotator_columns.get(name) for name in ACCURACY_COLUMNS}
    for name, values in estimates.items():
        columns[name] = each(None, pa.float64()) if values is None else values
    return pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)


def append_rows(earlier: pa.Table | None, rows: pa.Table) -> pa.Table:
    """Return the rows of earlier fits followed by those of another one, at most `MAX_ROWS`."""
    if earlier is None:
        return rows
    table = pa.concat_tables([earlier, rows])
    if len(table) > MAX_ROWS:
        cut = table["time"][len(table) - MAX_ROWS]
        table = table.filter(pc.greater(table["time"], cut))
    return table if len(table) else rows


def last_fit(table: pa.Table) -> pa.Table:
    """Return the rows of the last fit."""
    return table.slice(max(len(table) - table["fit_annotators"][-1].as_py(), 0))


def check_past_fits(table: pa.Table) -> None:
    """Raise a ValueError for a table that is not one of past fits."""
    if not table.schema.equals(SCHEMA):
        raise ValueError("the table of past fits has other columns")
    for field in SCHEMA:
        if not field.nullable and table[field.name].null_count:
            raise ValueError(f"{field.name} of past fits has a missing value")
    seconds = table["time"].cast(pa.int64()).to_numpy()
    if not len(seconds) or seconds.min() < 0 or seconds.max() >= 1 << 37:
        raise ValueError("past fits have no time, or an impossible one")
    if np.any(np.diff(seconds) < 0):
        raise ValueError("past fits are not in the order of time")
    for name in ("fit_labels", "fit_items", "fit_annotators", "n_labels", "since"):
        if pc.any(pc.less(table[name], 0)).as_py():
            raise ValueError(f"{name} of past fits is below 0")
    for name in ("reliability", "low", "high", *ACCURACY_COLUMNS):
        shares = table[name].drop_null().to_numpy()
        if len(shares) and not (shares.min() >= 0.0 and shares.max() <= 1.0 + 1e-6):
            raise ValueError(f"{name} of past fits has a value outside 0..1")
