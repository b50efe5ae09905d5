"""The report's section on labels over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.analyses.advice.annotators import describe_time
from annotruth.errors import counted
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.fits.further import FurtherResults
from annotruth.models.result import Fit
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.trajectories import Trajectory, draw_trajectories
from annotruth.report.render import Bullets, Part, Section, SmallTable, Text

_MAX_PANELS = 12
_MAX_ROWS = 20
_WIDTH = 840.0
_SECONDS_BINS = ("fastest fifth", "second", "third", "fourth", "slowest fifth")


def make_section(fit: Fit[Any], results: FurtherResults) -> Section:
    """Return the section: who changed, reliability over time, the crowd, seconds per answer."""
    charts: list[Chart] = []
    changes, rows = results.tables["changes_over_time"], results.tables["over_time"]
    if len(rows):
        charts.append(_annotator_chart(rows, changes))
        charts.append(_crowd_chart(results.tables["crowd_over_time"]))
    lines = [line.strip() for line in _lines(results)]
    said = Bullets([line[:1].upper() + line[1:] for line in lines])
    parts: list[Part] = [said, *_change_table(changes), *charts]
    if "seconds" in results.facts:
        parts.append(_seconds_table(results.facts["seconds"]))
    return Section("over_time", "Over time", parts)


def _lines(results: FurtherResults) -> list[str]:
    """Return the lines of the summary without those on single annotators, who are in the table."""
    return [line for line in results.lines if not line.startswith(("  annotator ", "  and "))]


def _change_table(changes: pa.Table) -> list[Part]:
    """Return a table of those who changed, the largest fall first."""
    rows = sorted(changes.to_pylist(), key=lambda row: row["after"] - row["before"])
    if not rows:
        return []
    header = ("Annotator", "Changed at", "Labels before", "Reliability before", "After")
    cells = [
        (
            str(row["annotator"]),
            describe_time(row["at"]),
            f"{row['n_before']:,}",
            f"{row['before']:.2f}",
            f"{row['after']:.2f}",
        )
        for row in rows[:_MAX_ROWS]
    ]
    table, more = SmallTable(header, cells), len(rows) - len(cells)
    note = f"and {counted(more, 'more change')}: see changes_over_time"
    return [table, Text(note, "quiet")] if more else [table]


def _annotator_chart(rows: pa.Table, changes: pa.Table) -> Chart:
    """Return the chart of reliability over labels: those who changed, then those with most labels."""
    by_annotator: dict[Any, list[dict[str, Any]]] = {}
    for row in _rows_of_some(rows, changes):
        by_annotator.setdefault(row["annotator"], []).append(row)
    changed: dict[Any, list[float]] = {}
    for row in changes.to_pylist():
        changed.setdefault(row["annotator"], []).append(row["n_before"] + 0.5)
    panels = [
        _panel(f"annotator {name}", some, changed.get(name, ()))
        for name, some in by_annotator.items()
    ]
    n_all = len(set(rows["annotator"].to_pylist()))
    shown = "all annotators" if len(panels) == n_all else f"{len(panels)} of {n_all:,} annotators"
    caption = (
        f"Each dot is some consecutive labels of an annotator, with the 95% interval; a vertical line "
        f"is a change. Shown: {shown}, those who changed first."
    )
    return Chart(
        "over-time",
        "Reliability over each annotator's labels",
        caption,
        _columns(panels),
        lambda width: draw_trajectories(panels, width, SPAMMER_BELOW),
        width=_WIDTH,
    )


def _rows_of_some(rows: pa.Table, changes: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of the annotators in the chart, annotator after annotator."""
    ids, codes = np.unique(np.array(_codes(rows["annotator"])), return_inverse=True)
    n_labels = np.bincount(codes, rows["n_labels"].to_numpy())
    has_changed = np.isin(ids, _codes_of(rows["annotator"], changes["annotator"]))
    chosen = np.lexsort((ids, -n_labels, ~has_changed))[:_MAX_PANELS]
    kept = [np.flatnonzero(codes == code) for code in chosen]
    found: list[dict[str, Any]] = rows.take(pa.array(np.concatenate(kept))).to_pylist()
    return found


def _codes(column: pa.ChunkedArray) -> list[int]:
    codes: list[int] = column.combine_chunks().dictionary_encode().indices.to_pylist()
    return codes


def _codes_of(column: pa.ChunkedArray, ids: pa.ChunkedArray) -> list[int]:
    """Return the codes that ids have in a column."""
    names = column.combine_chunks().dictionary_encode().dictionary.to_pylist()
    wanted = set(ids.to_pylist())
    return [code for code, name in enumerate(names) if name in wanted]


def _panel(name: str, rows: Sequence[Mapping[str, Any]], changes: Sequence[float]) -> Trajectory:
    n_labels = np.array([row["n_labels"] for row in rows], dtype=float)
    ends = np.cumsum(n_labels)
    value, low, high = (
        np.array([row[key] for row in rows]) for key in ("reliability", "low", "high")
    )
    tips = [
        f"{name}, {describe_time(row['from'])} to {describe_time(row['to'])}: "
        f"{row['reliability']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        for row in rows
    ]
    span = describe_time(rows[0]["from"]), describe_time(rows[-1]["to"])
    return Trajectory(name, ends - n_labels / 2, value, low, high, changes, tips, span)


def _columns(panels: Sequence[Trajectory]) -> dict[str, list[Any]]:
    """Return the table behind a chart."""
    columns: dict[str, list[Any]] = {
        "panel": [panel.name for panel in panels for _ in panel.x],
    }
    for key in ("x", "value", "low", "high"):
        columns[key] = [number for panel in panels for number in getattr(panel, key).tolist()]
    return columns


def _crowd_chart(crowd: pa.Table) -> Chart:
    """Return the chart of the crowd's reliability."""
    titles = {"position": "by number of the label", "time": "by time"}
    panels = []
    for by, title in titles.items():
        rows = [row for row in crowd.to_pylist() if row["by"] == by]
        if rows:
            x = np.arange(1.0, len(rows) + 1.0)
            value, low, high = (
                np.array([row[key] for row in rows]) for key in ("reliability", "low", "high")
            )
            tips = [
                f"{row['from']} to {row['to']}, {counted(row['n_labels'], 'label')}: "
                f"{row['reliability']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
                for row in rows
            ]
            span = rows[0]["from"][:10], rows[-1]["to"][:10]
            panels.append(Trajectory(title, x, value, low, high, (), tips, span))
    return Chart(
        "crowd-over-time",
        "The crowd over time",
        "Mean reliability in bins of about equally many labels, with 95% intervals: by the number of "
        "the label among the annotator's, and by time.",
        _columns(panels),
        lambda width: draw_trajectories(panels, width, SPAMMER_BELOW),
        width=_WIDTH,
    )


def _seconds_table(facts: Mapping[str, Any]) -> SmallTable:
    """Return a table of what seconds per answer say."""
    rows = [
        (name, f"{median:.3g}", f"{np.exp(ratio):.2f}")
        for name, median, ratio in zip(
            _SECONDS_BINS, facts["median"], facts["log_ratio"], strict=False
        )
        if median is not None
    ]
    header = (
        "Labels of an annotator by seconds",
        "Median seconds",
        "Odds of a serious label times",
    )
    return SmallTable(header, rows)
