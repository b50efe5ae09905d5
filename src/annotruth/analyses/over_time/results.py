"""Tables, figures and lines of the summary on labels over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.analyses.advice.over_time import describe_time, name_change
from annotruth.analyses.over_time.clock import Clock
from annotruth.analyses.over_time.crowd import EqualBins, crowd_in_bins
from annotruth.analyses.over_time.seconds import HeldOutGain, SecondsEvidence
from annotruth.analyses.over_time.trajectories import Trajectories
from annotruth.errors import counted
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.fits.further import FurtherResults
from annotruth.observations import Labels

_MOST_LINES = 5  # annotators who changed that the summary names
_SURE = 0.05  # p-values below it are named a trend


def no_results(labels: Labels, reason: str) -> FurtherResults:
    """Return results that say why there are none."""
    return FurtherResults(_tables(labels, None), {"used": False}, [f"over time: {reason}"])


def further_results(
    labels: Labels, trajectories: Trajectories | None, seconds: SecondsEvidence | None
) -> FurtherResults:
    """Return the tables, figures and lines of what was found."""
    tables = _tables(labels, trajectories)
    facts: dict[str, Any] = {"used": True}
    lines = []
    if trajectories is None:
        lines += _no_order_lines(labels)
    else:
        facts |= _order_facts(trajectories)
        lines += _order_lines(labels, trajectories, tables)
    if "seconds" in labels.covariates.labels:
        lines.append(_seconds_line(seconds))
    if seconds is not None:
        facts["seconds"] = {
            **_gain_facts(seconds.gain),
            "log_ratio": seconds.log_ratio.tolist(),
            "median": [None if np.isnan(each) else float(each) for each in seconds.median],
        }
    return FurtherResults(tables, facts, lines)


def _tables(labels: Labels, trajectories: Trajectories | None) -> dict[str, pa.Table]:
    if trajectories is None:
        none, nothing = np.empty(0, np.int64), np.empty(0)
        ids, times = labels.annotators.take(pa.array(none)), pa.array([], pa.float64())
        texts = pa.array([], pa.string())
        return {
            "over_time": _reliability_table(ids, times, times, none, nothing, nothing, nothing),
            "changes_over_time": _change_table(ids, times, none, none, nothing, nothing, nothing),
            "crowd_over_time": _crowd_table([], texts, texts, none, nothing, nothing, nothing),
        }
    return {
        "over_time": _reliability_over_time(labels, trajectories),
        "changes_over_time": _changes(labels, trajectories),
        "crowd_over_time": _crowd(trajectories),
    }


def _reliability_table(
    annotator: pa.Array,
    first: pa.Array,
    last: pa.Array,
    n_labels: Codes,
    reliability: Floats,
    low: Floats,
    high: Floats,
) -> pa.Table:
    return pa.table(
        {
            "annotator": annotator,
            "from": first,
            "to": last,
            "n_labels": n_labels,
            "reliability": reliability,
            "low": low,
            "high": high,
        }
    )


def _change_table(
    annotator: pa.Array,
    at: pa.Array,
    n_before: Codes,
    n_after: Codes,
    probability: Floats,
    before: Floats,
    after: Floats,
) -> pa.Table:
    return pa.table(
        {
            "annotator": annotator,
            "at": at,
            "n_before": n_before,
            "n_after": n_after,
            "probability": probability,
            "before": before,
            "after": after,
        }
    )


def _crowd_table(
    by: list[str],
    first: pa.Array,
    last: pa.Array,
    n_labels: Codes,
    reliability: Floats,
    low: Floats,
    high: Floats,
) -> pa.Table:
    return pa.table(
        {
            "by": pa.array(by, pa.string()),
            "from": first,
            "to": last,
            "n_labels": n_labels,
            "reliability": reliability,
            "low": low,
            "high": high,
        }
    )


def _reliability_over_time(labels: Labels, trajectories: Trajectories) -> pa.Table:
    """Return one row per window of an annotator's labels."""
    clock, windows = trajectories.clock, trajectories.windows
    annotator = np.repeat(clock.annotator, windows.end - windows.begin)
    return _reliability_table(
        labels.annotators.take(pa.array(annotator)),
        clock.at(windows.place),
        clock.at(windows.place + windows.n_labels - 1),
        windows.n_labels,
        *trajectories.shown.T,
    )


def _changes(labels: Labels, trajectories: Trajectories) -> pa.Table:
    """Return one row per change."""
    clock, (place, probability) = trajectories.clock, trajectories.changes
    sequence = np.searchsorted(clock.begin, place, side="right") - 1
    return _change_table(
        labels.annotators.take(pa.array(clock.annotator[sequence])),
        clock.at(place),
        place - clock.begin[sequence],
        clock.end[sequence] - place,
        probability,
        trajectories.before,
        trajectories.after,
    )


def _crowd(trajectories: Trajectories) -> pa.Table:
    """Return one row per bin of the crowd's labels, by position of the label and by time."""
    clock, sample = trajectories.clock, trajectories.sample
    lengths = trajectories.sequences.lengths
    at_least = np.cumsum(np.bincount(lengths)[:0:-1])[::-1]  # annotators with so many labels
    positions = np.arange(1.0, len(at_least) + 1.0)
    own: Floats = sample.position.astype(np.float64) + 1.0
    bins = {"position": (EqualBins.of(positions, sample=own, n_labels=at_least), own)}
    if clock.kind == "time":
        own = clock.numbers[clock.order[sample.place]]
        times = clock.numbers[np.isfinite(clock.numbers)]
        bins["time"] = EqualBins.of(times, sample=own), own
    parts = []
    for by, (each, numbers) in bins.items():
        crowd = crowd_in_bins(sample, each.codes(numbers))
        begin, end = (_as_text(by, clock, ends) for ends in (each.first, each.last))
        parts.append(_crowd_table([by] * len(begin), begin, end, each.n_labels, *crowd))
    return pa.concat_tables(parts)


def _as_text(by: str, clock: Clock, values: Floats) -> pa.Array:
    """Return the ends of bins as text: numbers, or dates."""
    if by == "time" and clock.is_date:
        dates = pa.array(values.astype(np.int64)).cast(clock.values.type)
        return pa.array([f"{date.as_py():%Y-%m-%d %H:%M:%S}" for date in dates])
    return pa.array([f"{value:g}" for value in values])


def _order_facts(trajectories: Trajectories) -> dict[str, Any]:
    trend = trajectories.trend
    return {
        "by": trajectories.clock.kind,
        "n_labels": len(trajectories.clock.order),
        "n_changes": len(trajectories.changes.place),
        "order": _gain_facts(trajectories.gain),
        "trend": None if trend is None else trend._asdict(),
    }


def _gain_facts(gain: HeldOutGain) -> dict[str, Any]:
    return {
        "informative": gain.is_clear,
        "gain_per_label": gain.mean,
        "standard_error": gain.standard_error,
    }


def _no_order_lines(labels: Labels) -> list[str]:
    """Return why nothing is said about changes, where a time or order was given."""
    given = [kind for kind in ("time", "order") if kind in labels.covariates.labels]
    if not given:
        return []
    what = " and ".join(given)
    return [f"over time: the {what} is the same for all labels of an annotator: nothing to say"]


def _order_lines(
    labels: Labels, trajectories: Trajectories, tables: dict[str, pa.Table]
) -> list[str]:
    clock, table = trajectories.clock, tables["changes_over_time"]
    missing = labels.n_labels - len(clock.order)
    without = f", {counted(missing, 'label')} without one" if missing else ""
    changed = len(set(table["annotator"].to_pylist()))
    ends = np.nanargmin(clock.numbers), np.nanargmax(clock.numbers)
    first, last = (describe_time(clock.values[int(place)].as_py()) for place in ends)
    span = first if first == last else f"{first} to {last}"
    n_annotators = counted(labels.n_annotators, "annotator")
    lines = [f"over time: {changed:,} of {n_annotators} changed ({clock.kind} {span}{without})"]
    rows = table.to_pylist()
    lines += [f"  {name_change(row)}" for row in rows[:_MOST_LINES]]
    if len(rows) > _MOST_LINES:
        lines.append(f"  and {counted(len(rows) - _MOST_LINES, 'more change')}")
    lines.append(f"  {_gain_text('order of labels', trajectories.gain)}")
    lines += [f"  {line}" for line in _trend_lines(trajectories, tables["crowd_over_time"])]
    return lines


def _gain_text(what: str, gain: HeldOutGain) -> str:
    """Return whether something predicts held-out labels, in words."""
    figures = f"{gain.mean:+.5f} nats per held-out label, standard error {gain.standard_error:.5f}"
    return f"{what}: {'informative' if gain.is_clear else 'not informative'} ({figures})"


def _trend_lines(trajectories: Trajectories, crowd: pa.Table) -> list[str]:
    """Return what the crowd's trend is, if there is one."""
    if trajectories.trend is None:
        return []
    by_position = [row for row in crowd.to_pylist() if row["by"] == "position"]
    first, last = by_position[0], by_position[-1]
    slope, p_value = trajectories.trend
    word = "no trend" if p_value >= _SURE else "rises" if slope > 0 else "falls"
    ends = ", ".join(
        f"{row['reliability']:.2f} in labels {row['from']} to {row['to']}" for row in (first, last)
    )
    return [f"the crowd's reliability over annotators' labels: {word} ({ends}; p = {p_value:.2g})"]


def _seconds_line(seconds: SecondsEvidence | None) -> str:
    """Return what the seconds per answer say, in words."""
    if seconds is None:
        return "seconds per answer: too few, or the same for all labels of an annotator"
    line = _gain_text("seconds per answer", seconds.gain)
    if not seconds.gain.is_clear:
        return line
    ratios = np.exp(seconds.log_ratio[np.isfinite(seconds.median)])  # without empty fifths
    return (
        f"{line}; the odds that a label is serious are multiplied by {ratios[0]:.2f} in the fastest "
        f"fifth of an annotator's labels, by {ratios[-1]:.2f} in the slowest"
    )
