"""The page of annotators: accuracy, reliability, behavior, speed and verdict of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from annotruth.advice.annotators import verdict_rules
from annotruth.errors import AnnotruthError
from annotruth.models.base_fit import Readout
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import escaped
from annotruth.report.headings import ACCURACY_TIPS, HEADINGS
from annotruth.report.html import figure
from annotruth.serve.pages import cells
from annotruth.serve.pages.layout import Frame, render
from annotruth.serve.pages.snapshot_tables import LabelTables, RankTables, SnapshotTables
from annotruth.serve.pages.table import Column, TableQuery, chosen_rows, paged_table, search_form

DEFAULT_SORT = ("accuracy", "reliability", "n_labels")
"""By what annotators are sorted if nothing else is asked for: the first that the model estimates."""


class Activity(NamedTuple):
    """What the store knows about an annotator, beside the snapshot.

    Attributes
    ----------
    seconds
        The median time that they took for one of their recent labels; None if it is not known.
    reliability
        Their reliability in the past, oldest first.

    Examples
    --------
    >>> Activity(4.5, [0.9, 0.4]).seconds
    4.5
    """

    seconds: float | None = None
    reliability: Sequence[float | None] = ()


def annotator_columns(tables: SnapshotTables) -> list[Column]:
    """Return the columns of the table of annotators: what the model estimates."""
    is_ranking = isinstance(tables, RankTables)
    wanted = [
        Column("annotator", "Annotator"),
        Column("n_labels", "Votes" if is_ranking else "Labels", right=True, rank=1),
        Column("accuracy", "Accuracy", ACCURACY_TIPS[_readout(tables)]),
        Column("reliability", "Reliability", HEADINGS["reliability"][1]),
        Column("over_time", "Over time", "reliability in past snapshots", sorts=False, rank=1),
        Column("behavior", "Behavior", HEADINGS["behavior"][1], rank=1),
        Column("matches", "Matches", HEADINGS["matches"][1], right=True, rank=2),
        Column("seconds", "Seconds", "median seconds per label, of the last 100", True, False, 2),
        Column("verdict", "Verdict", "what the advice is, by the rules below the table"),
        Column("ask", "Ask", HEADINGS["ask"][1], rank=2),
        Column("reason", "Reason", HEADINGS["reason"][1], sorts=False, rank=2),
    ]
    known = {*tables.annotators.column_names, "seconds"}
    if "reliability" in known:
        known.add("over_time")
    return [column for column in wanted if column.key in known]


def annotator_query(path: str, query: Mapping[str, str], tables: SnapshotTables) -> TableQuery:
    """Return which annotators are asked for; the least accurate first, if nothing else."""
    keys = [column.key for column in annotator_columns(tables) if column.sorts]
    default = next(name for name in DEFAULT_SORT if name in keys)
    return TableQuery.parse(path, query, keys, default)


def shown_annotators(tables: SnapshotTables, query: TableQuery) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of annotators on a page of the table, and how many there are in all."""
    rows, total = chosen_rows(tables.annotators, query, ids="annotator", picked="verdict")
    return rows.to_pylist(), total


def annotators_page(
    frame: Frame,
    tables: SnapshotTables,
    query: TableQuery,
    shown: tuple[Sequence[Mapping[str, Any]], int],
    activity: Mapping[str, Activity],
) -> str:
    """Return the page of annotators."""
    rows, total = shown
    columns = annotator_columns(tables)
    lines = [
        [
            _cell(frame, column.key, row, activity.get(row["annotator"], Activity()))
            for column in columns
        ]
        for row in rows
    ]
    rules = verdict_rules(tables.fit)
    listed = "".join(f"<dt>{cells.tag(k)}</dt><dd>{escaped(v)}</dd>" for k, v in rules.items())
    verdicts = {word: word for word in rules}
    parts = [
        '<section class="first">',
        search_form(query, "annotators", verdicts, "all verdicts"),
        paged_table("Annotators", columns, lines, query, total),
        f'<details class="rules"><summary>Rules of the verdicts</summary><dl>{listed}</dl></details>',
        "</section>",
        *(f"<section>{figure(chart)}</section>" for chart in _charts(tables)),
    ]
    under = "It advises; it never blocks a person by itself."
    return render(frame, "Annotators", *parts, tab="annotators", under=under, live=True)


def _charts(tables: SnapshotTables) -> list[Chart]:
    try:
        if isinstance(tables, LabelTables) and tables.fit.accuracy is not None:
            return [tables.charts.accuracy()]
        return [tables.charts.reliability()]
    except AnnotruthError:  # the model gives no reliability
        return []


def _readout(tables: SnapshotTables) -> Readout:
    return tables.fit.readout if isinstance(tables, LabelTables) else "right"


def _cell(frame: Frame, key: str, row: Mapping[str, Any], activity: Activity) -> str:
    value = row.get(key)
    match key:
        case "annotator":
            return cells.link(frame.address("annotator", id=value), value, 40)
        case "accuracy" | "reliability":
            return cells.estimate(row, key)
        case "over_time":
            return cells.trend([*activity.reliability, row["reliability"]])
        case "seconds":
            return cells.number(activity.seconds, 1)
        case "behavior" | "verdict":
            return cells.tag(value)
        case "matches":
            return cells.percent(value)
        case "ask":
            return "yes" if value else "no"
        case "n_labels":
            return f"{value:,}"
        case _:
            return f'<span class="wrapped">{escaped(value)}</span>'
