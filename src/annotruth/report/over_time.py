"""The sections on time: reliability over labels, seconds per label, and the fits before this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.analyses.advice.annotators import describe_time, has_flags
from annotruth.analyses.advice.changes import LEAST_MOVE, Changes
from annotruth.errors import AnnotruthError, counted
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
    Fact,
    Facts,
    Part,
    Section,
    SmallTable,
    Text,
    number,
    records_table,
)

_MAX_PANELS, _PANEL_HEIGHT = 12, 132.0
_MAX_CHANGES = 20
_MAX_PEOPLE = 5  # in the chart of past fits, beside the median
_MAX_ROWS = 10  # in each table of what is different
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
        parts.append(_crowd_chart(results.tables["crowd_over_time"]))
    if "seconds" in results.facts:
        parts.append(_seconds_table(results.facts["seconds"]))
    return Section("over_time", "Over time", parts)


def _change_table(changes: pa.Table) -> list[Part]:
    """Return a table of those who changed, the largest fall first."""
    rows = sorted(changes.to_pylist(), key=lambda row: row["after"] - row["before"])
    if not rows:
        return []
    table = records_table(
        rows[:_MAX_CHANGES],
        {
            "Annotator": lambda row: str(row["annotator"]),
            "Changed at": lambda row: describe_time(row["at"]),
            "Labels before": number("n_before", "{:,}"),
            "Reliability before": number("before", "{:.2f}"),
            "After": number("after", "{:.2f}"),
        },
    )
    note = f"and {counted(len(rows) - _MAX_CHANGES, 'more change')}: see changes_over_time"
    return [table, Text(note, "quiet")] if len(rows) > _MAX_CHANGES else [table]


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
        some = rows.take(pa.array(np.flatnonzero(codes == code))).to_pylist()
        name, last = f"annotator {ids[code]}", np.cumsum([row["n_labels"] for row in some])
        spans = [[describe_time(row[end]) for end in ("from", "to")] for row in some]
        tips = [f"{name}, {start} to {end}" for start, end in spans]
        x = last - np.array([row["n_labels"] for row in some]) / 2
        ends = (spans[0][0], spans[-1][1])
        panels.append(_panel(name, x, some, tips, ends, changed.get(ids[code], ())))
    shown = "all annotators"
    if len(panels) < len(ids):
        shown = f"{len(panels)} of {len(ids):,} annotators"
    caption = (
        f"Each dot is some consecutive labels of an annotator, with the 95% interval; a vertical line "
        f"is a change. Shown: {shown}, those who changed first."
    )
    return _panel_chart("over-time", "Reliability over each annotator's labels", caption, panels)


def _crowd_chart(crowd: pa.Table) -> Chart:
    """Return the chart of the crowd's reliability."""
    panels = []
    for by, title in (("position", "by number of the label"), ("time", "by time")):
        rows = [row for row in crowd.to_pylist() if row["by"] == by]
        if rows:
            tips = [
                f"{row['from']} to {row['to']}, {counted(row['n_labels'], 'label')}" for row in rows
            ]
            ends = rows[0]["from"][:10], rows[-1]["to"][:10]
            panels.append(_panel(title, np.arange(1.0, len(rows) + 1.0), rows, tips, ends))
    caption = (
        "Mean reliability in bins of about equally many labels, with 95% intervals: by the number of "
        "the label among the annotator's, and by time."
    )
    return _panel_chart("crowd-over-time", "The crowd over time", caption, panels)


def _panel(
    name: str,
    x: Any,
    rows: Sequence[Mapping[str, Any]],
    tips: Sequence[str],
    ends: tuple[str, str],
    changes: Sequence[float] = (),
) -> Panel:
    """Return a panel of rows with a reliability and its interval, which end its tips."""
    value, low, high = (
        np.array([row[key] for row in rows]) for key in ("reliability", "low", "high")
    )
    tips = [
        f"{tip}: {row['reliability']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        for tip, row in zip(tips, rows, strict=True)
    ]
    return Panel(name, x, value, low, high, tips, ends, changes)


def _panel_chart(name: str, title: str, caption: str, panels: Sequence[Panel]) -> Chart:
    data: dict[str, list[Any]] = {"panel": [panel.name for panel in panels for _ in panel.x]}
    for key in ("x", "value", "low", "high"):
        data[key] = [value for panel in panels for value in getattr(panel, key).tolist()]
    return Chart(
        name,
        title,
        caption,
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


class _Standing(NamedTuple):
    """What a fit said of an annotator."""

    quality: float | None
    verdict: str


def since_last_fit(fit: Fit, changes: Changes | None = None) -> Section:
    """Return what is different from the fit before, and the accuracy or reliability over past fits.

    ``fit``: a fit that continues an earlier one.
    ``changes``: the differences, for the items; annotators are compared by the table of past fits.
    """
    assert fit.earlier_fits is not None
    now, before = last_fit(fit.past_fit_table()), last_fit(fit.earlier_fits)
    parts = [_counts(before, now, changes), _people(before, now)]
    parts += [] if changes is None else [_items(changes)]
    parts += [] if fit.reliability is None else [past_fits_chart(fit)]
    return Section("since", "Since the last fit", parts)


def _counts(before: pa.Table, now: pa.Table, changes: Changes | None) -> Part:
    """Return the counts of both fits."""
    rows: list[Fact] = []
    for name in ("labels", "items", "annotators"):
        old, new = (table[f"fit_{name}"][0].as_py() for table in (before, now))
        note = f"{new - old:+,} since the last fit" if new != old else "as in the last fit"
        rows.append((name.capitalize(), f"{new:,}", note))
    time = before["time"][0].as_py()
    line = f"The last fit is of {time.day} {time:%B %Y, %H:%M} UTC."
    if changes is not None:
        rows += [
            ("Need no more labels", f"{changes.n_finished:,}", "items that needed some before"),
            ("Need labels again", f"{changes.n_doubtful:,}", "items that needed none before"),
        ]
        if changes.n_repeated:
            repeated = counted(changes.n_repeated, "label was", "labels were")
            line += f" {repeated} in it already and left out."
    return [Text(line, "quiet"), Facts(rows)]


def _measure(rows: pa.Table) -> str:
    """Return what to show over fits: the accuracy if two of them or more estimated it, else the reliability."""
    estimated = rows["time"].filter(pc.is_valid(rows["accuracy"]))
    return "accuracy" if len(estimated.unique()) > 1 else "reliability"


def _people(before: pa.Table, now: pa.Table) -> Part:
    """Return whose standing verdict changed, and whose accuracy or reliability moved."""
    measure = _measure(pa.concat_tables([before, now]))
    was, is_now = _standings(before, measure), _standings(now, measure)
    rows = []
    for name, (quality, verdict) in is_now.items():
        if name not in was:
            continue
        old = was[name]
        moved = 0.0 if quality is None or old.quality is None else quality - old.quality
        if verdict != old.verdict or abs(moved) >= LEAST_MOVE:
            said = verdict if verdict == old.verdict else f"{old.verdict} → {verdict}"
            cells = (name, said, _number(old.quality), _number(quality))
            rows.append((verdict == old.verdict, -abs(moved), cells))
    rows.sort()
    n_verdicts = sum(not row[0] for row in rows)
    changed = counted(n_verdicts, "standing verdict") if n_verdicts else "No standing verdict"
    others = counted(len(rows) - n_verdicts, "other annotator" if n_verdicts else "annotator")
    line = f"{changed} changed; the {measure} of {others} moved by {LEAST_MOVE} or more."
    gone = [name for name in was if name not in is_now]
    if gone:
        line += f" {counted(len(gone), 'annotator is', 'annotators are')} no longer in the fit: "
        line += f"{', '.join(gone[:_MAX_ROWS])}{' and others' if len(gone) > _MAX_ROWS else ''}."
    header = ("Annotator", "Standing verdict", f"{measure.capitalize()} before", "Now")
    table = SmallTable(header, [row[2] for row in rows[:_MAX_ROWS]])
    return [Text(line), table if rows else ""]


def _standings(rows: pa.Table, measure: str) -> dict[str, _Standing]:
    columns = (rows[name].to_pylist() for name in ("annotator", measure, "standing"))
    return {name: _Standing(*rest) for name, *rest in zip(*columns, strict=True)}


def _items(changes: Changes) -> Part:
    """Return the items whose label changed."""
    n = len(changes.item_table)
    which = counted(n, "item has", "items have") if n else "No item has"
    line = Text(f"{which} another label than in the last fit.")
    if not n:
        return line
    table = records_table(
        changes.item_table.slice(0, _MAX_ROWS).to_pylist(),
        {
            "Item": lambda row: str(row["item"]),
            "Label": lambda row: f"{row['before']} → {row['label']}",
            "Confidence": lambda row: _number(row["confidence"]),
        },
    )
    return [line, table]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


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
