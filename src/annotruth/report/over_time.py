"""The sections on time: reliability over labels, seconds per label, and the fits before this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.analyses.advice.annotators import describe_time, has_flags
from annotruth.analyses.advice.changes import Changes
from annotruth.errors import AnnotruthError
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.fits.further import FurtherResults
from annotruth.models.fits.past_fits import last_fit
from annotruth.models.result import Fit
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.panels import (
    TIME_LINES_WIDTH,
    Panel,
    TimeLine,
    draw_panels,
    time_chart,
)
from annotruth.report.render import (
    Bullets,
    Part,
    Section,
    SmallTable,
    Text,
    rows_table,
)

_MAX_PANELS, _PANEL_HEIGHT = 12, 132.0
_MAX_CHANGES = 20
_MAX_PEOPLE = 5  # in the chart of past fits, beside the median
_MEDIAN = "median of all"
_SECONDS_BINS = ("fastest fifth", "second", "third", "fourth", "slowest fifth")


def time_section(fit: object, results: FurtherResults) -> Section:
    """Return the section: who changed, reliability over time, the crowd, seconds per answer."""
    changes, rows = results.tables["changes_over_time"], results.tables["over_time"]
    # Single annotators are in the table.
    lines = [x for x in results.lines if not x.startswith(("  annotator ", "  and "))]
    lines = [line.strip() for line in lines]
    parts: list[Part] = [
        Bullets([line[:1].upper() + line[1:] for line in lines]),
        *_change_table(changes),
    ]
    if len(rows):
        parts.append(_annotator_chart(rows, changes))
    if "seconds" in results.facts:
        parts.append(_seconds_table(results.facts["seconds"]))
    return Section("over_time", "Over time", parts)


def _change_table(changes: pa.Table) -> list[Part]:
    """Return a table of those who changed, the largest fall first."""
    rows = sorted(changes.to_pylist(), key=lambda row: row["after"] - row["before"])
    if not rows:
        return []
    columns = {
        "Annotator": "{annotator}",
        "Changed at": "{at}",
        "Labels before": "{n_before:,}",
        "Reliability before": "{before:.2f}",
        "After": "{after:.2f}",
    }
    described = [row | {"at": describe_time(row["at"])} for row in rows]
    see = ": see changes_over_time"
    return rows_table(described, columns, _MAX_CHANGES, "more change", see)


def _annotator_chart(rows: pa.Table, changes: pa.Table) -> Chart:
    """Return the chart of reliability over labels: those who changed, then those with most labels."""
    column = rows["annotator"].combine_chunks().dictionary_encode()
    ids, codes = column.dictionary.to_pylist(), column.indices.to_numpy()
    changed: dict[Any, list[float]] = {}
    for row in changes.to_pylist():
        changed.setdefault(row["annotator"], []).append(row["n_before"] + 0.5)
    n_labels = np.bincount(codes, rows["n_labels"].to_numpy())
    is_stable = np.array([name not in changed for name in ids])
    chosen = np.lexsort((np.arange(len(ids)), -n_labels, is_stable))[:_MAX_PANELS]
    panels = []
    for code in chosen.tolist():
        some = rows.take(pa.array(np.flatnonzero(codes == code)))
        n, value, low, high = (
            some[key].to_numpy() for key in ("n_labels", "reliability", "low", "high")
        )
        spans = [[describe_time(row[end]) for end in ("from", "to")] for row in some.to_pylist()]
        name = f"annotator {ids[code]}"
        tips = [
            f"{name}, {start} to {end}: {value[k]:.2f} ({low[k]:.2f} to {high[k]:.2f})"
            for k, (start, end) in enumerate(spans)
        ]
        middle, ends = np.cumsum(n) - n / 2, (spans[0][0], spans[-1][1])
        panels.append(Panel(name, middle, value, low, high, tips, ends, changed.get(ids[code], ())))
    shown = "all annotators"
    if len(panels) < len(ids):
        shown = f"{len(panels)} of {len(ids):,} annotators"
    data: dict[str, list[Any]] = {"panel": [panel.name for panel in panels for _ in panel.x]}
    for key in ("x", "value", "low", "high"):
        data[key] = [value for panel in panels for value in getattr(panel, key).tolist()]
    return Chart(
        "over-time",
        "Reliability over each annotator's labels",
        "Each dot is some consecutive labels of an annotator, with the 95% interval; a vertical line "
        f"is a change. Shown: {shown}, those who changed first.",
        data,
        lambda width: draw_panels(panels, width, limit=SPAMMER_BELOW, height=_PANEL_HEIGHT),
        width=TIME_LINES_WIDTH,
    )


def _seconds_table(facts: Mapping[str, Any]) -> SmallTable:
    """Return a table of what seconds per answer say."""
    bins = zip(_SECONDS_BINS, facts["median"], facts["log_ratio"], strict=False)
    rows = [
        (name, f"{median:.3g}", f"{np.exp(ratio):.2f}")
        for name, median, ratio in bins
        if median is not None
    ]
    header = "Labels of an annotator by seconds", "Median seconds", "Odds of a serious label times"
    return SmallTable(header, rows)


def since_last_fit(fit: Fit, changes: Changes | None = None) -> Section:
    """Return what is different from the fit before, and the accuracy or reliability over past fits.

    ``fit``: a fit that continues an earlier one.
    ``changes``: the differences, if they are known.
    """
    assert fit.earlier_fits is not None
    time = last_fit(fit.earlier_fits)["time"][0].as_py()
    parts: list[Part] = [Text(f"The last fit is of {time.day} {time:%B %Y, %H:%M} UTC.", "quiet")]
    if changes is not None:
        summary = changes.summary().replace("\n  ", " · ").replace(" -> ", " → ")
        lines = summary.splitlines()
        parts.append(Bullets([line[:1].upper() + line[1:] for line in lines]))
    parts += [] if fit.reliability is None else [past_fits_chart(fit)]
    return Section("since", "Since the last fit", parts)


def _measure(rows: pa.Table) -> str:
    """Return what to show over fits: the accuracy if two of them or more estimated it, else the reliability."""
    estimated = rows["time"].filter(pc.is_valid(rows["accuracy"]))
    return "accuracy" if len(estimated.unique()) > 1 else "reliability"


def past_fits_chart(fit: Fit) -> Chart:
    """Return the accuracy or reliability over all past fits: the median, and those who moved most."""
    table = fit.past_fit_table()
    measure = _measure(table)
    names = ("reliability", "low", "high")
    if measure == "accuracy":
        names = ("accuracy", "accuracy_low", "accuracy_high")
    table = table.filter(pc.is_valid(table[measure]))
    if not len(table) or len(table["time"].unique()) < 2:
        raise AnnotruthError("there is one fit only: `annotruth update` adds to past fits")
    limit = None if has_flags(fit) else SPAMMER_BELOW
    dashed = "" if limit is None else f"; dashed: {limit}"
    return time_chart(
        "past-fits",
        f"{measure.capitalize()} over past fits",
        f"Those whose {measure} moved most, and the median of all annotators. Lines are "
        f"95% intervals{dashed}. A line that ends early: left out since.",
        {_MEDIAN: _median(table, measure)} | _moved_most(table, names),
        ("annotator", *names),
        limit=limit,
    )


def _median(table: pa.Table, measure: str) -> TimeLine:
    """Return the median in each fit, without an interval."""
    time, values = table["time"].to_pylist(), table[measure].to_numpy()
    code = np.unique(table["time"].cast(pa.int64()).to_numpy(), return_inverse=True)[1]
    fits = sorted(set(time))
    return TimeLine.without_intervals(
        fits, [np.median(values[code == k]) for k in range(len(fits))]
    )


def _moved_most(table: pa.Table, names: tuple[str, str, str]) -> dict[str, TimeLine]:
    """Return the lines of those whose values have the widest range; ``names``: of values and interval."""
    measure = names[0]
    ranges = table.group_by("annotator").aggregate(
        [(measure, how) for how in ("min", "max", "count")]
    )
    ranges = ranges.filter(pc.greater(ranges[f"{measure}_count"], 1))
    width = pc.subtract(ranges[f"{measure}_max"], ranges[f"{measure}_min"]).to_numpy()
    first = np.argsort(-width, kind="stable")[:_MAX_PEOPLE]
    lines = {}
    for name in ranges["annotator"].take(pa.array(first)).to_pylist():
        rows = table.filter(pc.equal(table["annotator"], name))
        numbers = (rows[key].to_numpy() for key in names)
        lines[name] = TimeLine(rows["time"].to_pylist(), *numbers)
    return lines
