"""The section "Since the last fit" of the report, and the chart of reliability over past fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.advice.changes import LEAST_MOVE, Changes
from annotruth.advice.flags import has_flags
from annotruth.errors import AnnotruthError, counted
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import escaped
from annotruth.report.charts.over_time import TIME_LINES_WIDTH, TimeLine, draw_time_lines
from annotruth.report.html import facts, figure, plain_table, section

_MAX_PEOPLE = 5  # in the chart, beside the median
_MAX_ROWS = 10  # in each table
_MEDIAN = "median of all"


class LastFitFindings(NamedTuple):
    """What is different from the fit before.

    Attributes
    ----------
    section
        The section of the report, as HTML.
    charts
        Its charts by name.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.report.history import compare_with_last_fit
    >>> before = at.fit([("a", "x", 1), ("a", "y", 2), ("b", "x", 2)], "gpm")
    >>> after = at.update(before, [("b", "y", 2)])
    >>> list(compare_with_last_fit(after).charts)
    ['past-fits']
    """

    section: str
    charts: Mapping[str, Chart]


class _Standing(NamedTuple):
    """What a fit said of an annotator."""

    reliability: float | None
    verdict: str


def compare_with_last_fit(fit: Fit, changes: Changes | None = None) -> LastFitFindings:
    """Return what is different from the fit before, and the reliability over all past fits.

    Parameters
    ----------
    fit
        A fit that continues an earlier one.
    changes
        The differences, for the items; annotators are compared by the table of past fits.
    """
    now, before = _last_two(fit)
    charts = {}
    if fit.reliability is not None:
        charts["past-fits"] = past_fits_chart(fit)
    parts = [_counts(before, now, changes), _people(before, now)]
    if changes is not None:
        parts.append(_items(changes))
    parts += [figure(chart) for chart in charts.values()]
    return LastFitFindings(section("since", "Since the last fit", *parts), charts)


def _last_two(fit: Fit) -> tuple[pa.Table, pa.Table]:
    """Return the rows of a fit, and those of the fit before."""
    assert fit.earlier_fits is not None
    table, earlier = fit.past_fit_table(), fit.earlier_fits
    now = table.slice(len(table) - fit.data.n_annotators)
    n_before = earlier["fit_annotators"][-1].as_py()
    return now, earlier.slice(max(len(earlier) - n_before, 0))


def _counts(before: pa.Table, now: pa.Table, changes: Changes | None) -> str:
    """Return the counts of both fits."""
    rows: list[tuple[str, object, str]] = []
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
    return f'<p class="quiet">{line}</p>{facts(rows)}'


def _people(before: pa.Table, now: pa.Table) -> str:
    """Return whose verdict changed, and whose reliability moved."""
    was, is_now = _standings(before), _standings(now)
    rows = []
    for name, (reliability, verdict) in is_now.items():
        if name not in was:
            continue
        old = was[name]
        moved = 0.0
        if reliability is not None and old.reliability is not None:
            moved = reliability - old.reliability
        if verdict != old.verdict or abs(moved) >= LEAST_MOVE:
            said = verdict if verdict == old.verdict else f"{old.verdict} → {verdict}"
            rows.append((verdict == old.verdict, -abs(moved), name, said, old, reliability))
    rows.sort(key=lambda row: row[:3])
    n_verdicts = sum(not row[0] for row in rows)
    changed = counted(n_verdicts, "verdict") if n_verdicts else "No verdict"
    others = counted(len(rows) - n_verdicts, "other annotator" if n_verdicts else "annotator")
    line = f"{changed} changed; the reliability of {others} moved by {LEAST_MOVE} or more."
    gone = [name for name in was if name not in is_now]
    if gone:
        line += f" {counted(len(gone), 'annotator is', 'annotators are')} no longer in the fit: "
        line += f"{', '.join(gone[:_MAX_ROWS])}{' and others' if len(gone) > _MAX_ROWS else ''}."
    cells = [
        (name, said, _number(old.reliability), _number(reliability))
        for _, _, name, said, old, reliability in rows[:_MAX_ROWS]
    ]
    header = ("Annotator", "Verdict", "Reliability before", "Now")
    return f"<p>{escaped(line)}</p>" + (plain_table(header, cells) if cells else "")


def _standings(rows: pa.Table) -> dict[str, _Standing]:
    columns = (rows[name].to_pylist() for name in ("annotator", "reliability", "verdict"))
    return {name: _Standing(*rest) for name, *rest in zip(*columns, strict=True)}


def _items(changes: Changes) -> str:
    """Return the items whose label changed."""
    n = len(changes.item_table)
    which = counted(n, "item has", "items have") if n else "No item has"
    line = f"<p>{which} another label than in the last fit.</p>"
    if not n:
        return line
    cells = [
        (str(row["item"]), f"{row['before']} → {row['label']}", _number(row["confidence"]))
        for row in changes.item_table.slice(0, _MAX_ROWS).to_pylist()
    ]
    return line + plain_table(("Item", "Label", "Confidence"), cells)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def past_fits_chart(fit: Fit) -> Chart:
    """Return the reliability over all past fits: the median, and those who moved most."""
    table = fit.past_fit_table()
    table = table.filter(pc.is_valid(table["reliability"]))
    if not len(table) or len(table["time"].unique()) < 2:
        raise AnnotruthError("there is one fit only: `annotruth update` adds to past fits")
    lines = {_MEDIAN: _median(table)} | _moved_most(table)
    names = ("time", "reliability", "low", "high")
    data: dict[str, list[Any]] = {"annotator": []} | {name: [] for name in names}
    for name, line in lines.items():
        data["annotator"] += [name] * len(line.time)
        data["time"] += [time.isoformat() for time in line.time]
        for key, values in zip(names[1:], line[1:], strict=True):
            data[key] += values.tolist()
    limit = None if has_flags(fit) else SPAMMER_BELOW
    dashed = "" if limit is None else f"; dashed: {limit}"
    return Chart(
        name="past-fits",
        title="Reliability over past fits",
        caption="Those whose reliability moved most, and the median of all annotators. Lines are "
        f"95% intervals{dashed}. A line that ends early: left out since.",
        data=data,
        draw=lambda width: draw_time_lines(lines, width, limit=limit),
        width=TIME_LINES_WIDTH,
    )


def _median(table: pa.Table) -> TimeLine:
    """Return the median reliability in each fit, without an interval."""
    time, reliability = table["time"].to_pylist(), table["reliability"].to_numpy()
    code = np.unique(table["time"].cast(pa.int64()).to_numpy(), return_inverse=True)[1]
    fits = sorted(set(time))
    median = np.array([np.median(reliability[code == k]) for k in range(len(fits))])
    unknown = np.full(len(fits), np.nan)
    return TimeLine(fits, median, unknown, unknown)


def _moved_most(table: pa.Table) -> dict[str, TimeLine]:
    """Return the lines of those whose reliability has the widest range."""
    ranges = table.group_by("annotator").aggregate(
        [("reliability", "min"), ("reliability", "max"), ("reliability", "count")]
    )
    ranges = ranges.filter(pc.greater(ranges["reliability_count"], 1))
    width = pc.subtract(ranges["reliability_max"], ranges["reliability_min"]).to_numpy()
    first = np.argsort(-width, kind="stable")[:_MAX_PEOPLE]
    lines = {}
    for name in ranges["annotator"].take(pa.array(first)).to_pylist():
        rows = table.filter(pc.equal(table["annotator"], name))
        numbers = (rows[key].to_numpy() for key in ("reliability", "low", "high"))
        lines[name] = TimeLine(rows["time"].to_pylist(), *numbers)
    return lines
