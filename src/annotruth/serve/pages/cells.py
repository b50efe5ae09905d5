"""Cells of tables: small charts, tags, times and links, escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from annotruth.errors import shorten
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.report.charts.drawing import Axis, Drawing, escaped
from annotruth.report.charts.over_time import short_day

_MARK_WIDTH, _MARK_HEIGHT = 96.0, 16.0
_BARS_HEIGHT = 30.0
_GOOD = {"keep", "needs no more labels", "known truth", "serious", "delivered"}
_BAD = re.compile(
    r"(drop|divided|irregular|random|repeated|inverted|mixed|always|favours|failed|careless|consistently)"
)


def link(address: str, text: object, max_length: int = 60) -> str:
    """Return a link; long texts are cut."""
    full = str(text)
    tip = f' data-tip="{escaped(full)}"' if len(full) > max_length else ""
    return (
        f'<a href="{escaped(address)}"{tip}>{escaped(shorten(full, max_length)) or "(empty)"}</a>'
    )


def tag(word: object) -> str:
    """Return a word on a background, colored by whether it is good."""
    text = str(word)
    tone = " good" if text in _GOOD else " bad" if _BAD.match(text) else ""
    return f'<span class="tag{tone}">{escaped(text)}</span>' if text else ""


def number(value: float | None, digits: int = 2) -> str:
    """Return a number; nothing where it is missing."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:,.{digits}f}"


def percent(value: float | None) -> str:
    """Return a share in percent; nothing where it is missing."""
    return "" if value is None or not math.isfinite(value) else f"{value:.0%}"


def moment(time: datetime | None) -> str:
    """Return a time in UTC, which the page's script shows in the visitor's time zone as a tip."""
    if time is None:
        return ""
    utc = time.astimezone(UTC)
    return f'<time datetime="{utc:%Y-%m-%dT%H:%M:%SZ}">{moment_text(utc)}</time>'


def moment_text(time: datetime) -> str:
    """Return a time in UTC, to the minute."""
    utc = time.astimezone(UTC)
    return f"{short_day(utc)} {utc:%Y, %H:%M}"


def interval(
    value: float | None, low: float | None, high: float | None, *, is_bad: bool | None = None
) -> str:
    """Return an accuracy or a reliability as a number and a small chart with its 95% interval.

    ``is_bad`` is whether it is colored as a warning; None for reliabilities that `SPAMMER_BELOW` judges.
    """
    if value is None or not math.isfinite(value):
        return ""
    drawing = Drawing(_MARK_WIDTH, _MARK_HEIGHT)
    axis, y = Axis(0.0, 1.0, 5.0, _MARK_WIDTH - 5.0), _MARK_HEIGHT / 2
    drawing.line(5, y, _MARK_WIDTH - 5, y, "at-grid")
    known = low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
    if is_bad is None:
        limit = axis(SPAMMER_BELOW)
        drawing.line(limit, 2, limit, _MARK_HEIGHT - 2, "at-grid")
        is_bad = (high if known and high is not None else value) < SPAMMER_BELOW  # the verdict drop
    text = f"{value:.2f}"
    if known and low is not None and high is not None:
        css = "at-warn-range at-thick" if is_bad else "at-range at-thick"
        drawing.line(axis(low), y, axis(high), y, css)
        text += f" (95% interval {low:.2f} to {high:.2f})"
    drawing.circle(axis(value), y, 4, "at-warn" if is_bad else "at-mark")
    return (
        f'<span class="cell" data-tip="{text}"><span>{value:.2f}</span>'
        f'<span class="mark">{drawing.svg(text)}</span></span>'
    )


def estimate(row: Mapping[str, Any], key: str) -> str:
    """Return the accuracy or the reliability in a row of annotators, as `interval` draws it."""
    prefix = "accuracy_" if key == "accuracy" else ""
    # Of a model that flags people, the verdict says who is bad, else the interval.
    is_bad = row["verdict"] == "drop" if row.get("accuracy") is not None else None
    return interval(row.get(key), row.get(f"{prefix}low"), row.get(f"{prefix}high"), is_bad=is_bad)


def bars(shares: Sequence[float], colors: Sequence[int], names: Sequence[str]) -> str:
    """Return a distribution over the categories as small bars."""
    n = max(len(shares), 1)
    width = min(max(n * 16.0, 64.0), 112.0)
    drawing, step = Drawing(width, _BARS_HEIGHT), width / n
    drawing.line(0, _BARS_HEIGHT - 0.5, width, _BARS_HEIGHT - 0.5, "at-grid")
    for k, share in enumerate(shares):
        if share > 0.0:
            tall = max(share * (_BARS_HEIGHT - 2), 1.0)
            left = k * step + min(1.0, step / 8)
            room = max(step - min(2.0, step / 4), 0.8)
            drawing.rect(left, _BARS_HEIGHT - 1 - tall, room, tall, f"at-k{colors[k]}")
    first = sorted(range(len(shares)), key=lambda k: -shares[k])[:6]
    tip = " · ".join(f"{names[k]}: {shares[k]:.0%}" for k in first if shares[k] >= 0.005)
    return f'<span data-tip="{escaped(tip)}">{drawing.svg("distribution")}</span>'


def category(code: int, colors: Sequence[int], names: Sequence[str]) -> str:
    """Return a category with its color."""
    return (
        '<span class="cell"><svg class="chip" width="12" height="12" aria-hidden="true"><rect '
        f'class="at-k{colors[code]}" width="12" height="12" rx="3"/></svg>'
        f"<span>{escaped(shorten(names[code]))}</span></span>"
    )


def trend(values: Sequence[float | None]) -> str:
    """Return shares from 0 to 1 over time as a small line."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return ""
    drawing = Drawing(_MARK_WIDTH, 24.0)
    x, y = Axis(0, len(known) - 1, 3.0, _MARK_WIDTH - 3.0), Axis(0.0, 1.0, 22.0, 2.0)
    drawing.line(0, y(SPAMMER_BELOW), _MARK_WIDTH, y(SPAMMER_BELOW), "at-limit")
    drawing.path([(x(k), y(value)) for k, value in enumerate(known)], "at-mark-line")
    tip = f"reliability over time: {known[0]:.2f} at first, {known[-1]:.2f} now"
    return f'<span data-tip="{tip}">{drawing.svg(tip)}</span>'


def plain(value: Any) -> str:
    """Return a value as text; nothing where it is missing."""
    return "" if value is None else escaped(value)
