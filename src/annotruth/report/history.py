"""The section "Since the last fit" of the report, and the chart of accuracy or reliability over past fits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.analyses.advice.annotators import has_flags
from annotruth.analyses.advice.changes import LEAST_MOVE, Changes
from annotruth.errors import AnnotruthError, counted
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.fits.past_fits import last_fit
from annotruth.models.result import Fit
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.over_time import TIME_LINES_WIDTH, TimeLine, draw_time_lines
from annotruth.report.render import Fact, Facts, Part, Section, SmallTable, Text

_MAX_PEOPLE = 5  # in the chart, beside the median
_MAX_ROWS = 10  # in each table
_MEDIAN = "median of all"


class _Standing(NamedTuple):
    """What a fit said of an annotator."""

    quality: float | None
    verdict: str


def compare_with_last_fit(fit: Fit, changes: Changes | None = None) -> Section:
    """Return what is different from the fit before, and the accuracy or reliability over all past fits.

    ``fit``: a fit that continues an earlier one.
    ``changes``: the differences, for the items; annotators are compared by the table of past fits.
    """
    now, before = _last_two(fit)
    parts: list[Part] = [_counts(before, now, changes), _people(before, now)]
    if changes is not None:
        parts.append(_items(changes))
    if fit.reliability is not None:
        parts.append(past_fits_chart(fit))
    return Section("since", "Since the last fit", parts)


def _last_two(fit: Fit) -> tuple[pa.Table, pa.Table]:
    """Return the rows of a fit, and those of the fit before."""
    assert fit.earlier_fits is not None
    table, earlier = fit.past_fit_table(), fit.earlier_fits
    return last_fit(table), last_fit(earlier)


def _counts(before: pa.Table, now: pa.Table, changes: Changes | None) -> Part:
    """Return the counts of both fits."""
    rows: list[Fact] = []
    for name in ("labels", "items", "annotators"):
        old, new = (table[f"fit_{name}"][0].as_py() for table in (before, now))
        note = f"{new - old:+,} since the last fit" if new != old else "as in the last fit"
        rows.append((name.capitalize(), f"{new:,}", note))
    if changes is not None:
        rows.append(
            ("Need no more labels", f"{changes.n_finished:,}", "items that needed some before")
        )
        rows.append(
            ("Need labels again", f"{changes.n_doubtful:,}", "items that needed none before")
        )
    time = before["time"][0].as_py()
    line = f"The last fit is of {time.day} {time:%B %Y, %H:%M} UTC."
    if changes is not None and changes.n_repeated:
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
        moved = 0.0
        if quality is not None and old.quality is not None:
            moved = quality - old.quality
        if verdict != old.verdict or abs(moved) >= LEAST_MOVE:
            said = verdict if verdict == old.verdict else f"{old.verdict} → {verdict}"
            rows.append((verdict == old.verdict, -abs(moved), name, said, old, quality))
    rows.sort(key=lambda row: row[:3])
    n_verdicts = sum(not row[0] for row in rows)
    changed = counted(n_verdicts, "standing verdict") if n_verdicts else "No standing verdict"
    others = counted(len(rows) - n_verdicts, "other annotator" if n_verdicts else "annotator")
    line = f"{changed} changed; the {measure} of {others} moved by {LEAST_MOVE} or more."
    gone = [name for name in was if name not in is_now]
    if gone:
        line += f" {counted(len(gone), 'annotator is', 'annotators are')} no longer in the fit: "
        line += f"{', '.join(gone[:_MAX_ROWS])}{' and others' if len(gone) > _MAX_ROWS else ''}."
    cells = [
        (name, said, _number(old.quality), _number(quality))
        for _, _, name, said, old, quality in rows[:_MAX_ROWS]
    ]
    header = ("Annotator", "Standing verdict", f"{measure.capitalize()} before", "Now")
    return [Text(line), SmallTable(header, cells) if cells else ""]


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
    cells = [
        (str(row["item"]), f"{row['before']} → {row['label']}", _number(row["confidence"]))
        for row in changes.item_table.slice(0, _MAX_ROWS).to_pylist()
    ]
    return [line, SmallTable(("Item", "Label", "Confidence"), cells)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def past_fits_chart(fit: Fit) -> Chart:
    """Return the accuracy or reliability over all past fits: the median, and those who moved most."""
    table = fit.past_fit_table()
    measure = _measure(table)
    names = ("accuracy", "accuracy_low", "accuracy_high")
    if measure == "reliability":
        names = ("reliability", "low", "high")
    table = table.filter(pc.is_valid(table[measure]))
    if not len(table) or len(table["time"].unique()) < 2:
        raise AnnotruthError("there is one fit only: `annotruth update` adds to past fits")
    lines = {_MEDIAN: _median(table, measure)} | _moved_most(table, names)
    data: dict[str, list[Any]] = {name: [] for name in ("annotator", "time", *names)}
    for name, line in lines.items():
        data["annotator"] += [name] * len(line.time)
        data["time"] += [time.isoformat() for time in line.time]
        for key, values in zip(names, line[1:], strict=True):
            data[key] += values.tolist()
    limit = None if has_flags(fit) else SPAMMER_BELOW
    dashed = "" if limit is None else f"; dashed: {limit}"
    return Chart(
        name="past-fits",
        title=f"{measure.capitalize()} over past fits",
        caption=f"Those whose {measure} moved most, and the median of all annotators. Lines are "
        f"95% intervals{dashed}. A line that ends early: left out since.",
        data=data,
        draw=lambda width: draw_time_lines(lines, width, limit=limit),
        width=TIME_LINES_WIDTH,
    )


def _median(table: pa.Table, measure: str) -> TimeLine:
    """Return the median in each fit, without an interval."""
    time, values = table["time"].to_pylist(), table[measure].to_numpy()
    code = np.unique(table["time"].cast(pa.int64()).to_numpy(), return_inverse=True)[1]
    fits = sorted(set(time))
    median = np.array([np.median(values[code == k]) for k in range(len(fits))])
    return TimeLine.without_intervals(fits, median.tolist())


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
