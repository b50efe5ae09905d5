"""Labels over time: from a fit of labels with times to a fit that uses them, with its tables and lines."""

from __future__ import annotations

from contextlib import closing
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.analyses.advice.annotators import describe_time, name_change
from annotruth.analyses.over_time.changes import Trajectories, find_trajectories
from annotruth.analyses.over_time.crowd import (
    EqualBins,
    HeldOutGain,
    SecondsEvidence,
    crowd_in_bins,
    learn_seconds,
)
from annotruth.analyses.over_time.sequences import Clock, read_clock, sample_annotators
from annotruth.engines import Session, get_engine
from annotruth.errors import counted
from annotruth.kernels.arrays import Floats, slices
from annotruth.models.base import EMEstimator, Estimator
from annotruth.models.fits.further import FurtherResults
from annotruth.models.latent_classes import LabelEvidence
from annotruth.models.result import Fit
from annotruth.observations import Labels

_MOST_LINES = 5  # annotators who changed that the summary names
_SURE = 0.05  # p-values below it are named a trend
_COLUMNS = {
    "over_time": "annotator from to n_labels reliability low high",
    "changes_over_time": "annotator at n_before n_after probability before after",
    "crowd_over_time": "by from to n_labels reliability low high",
}


def add_over_time(fit: Fit, estimator: Estimator) -> Fit:
    """Return a fit with results over time; ``estimator`` holds the fit, and fits again if need be.

    Where annotators change, the labels before and after are fitted as those of two annotators, and the
    results of items and annotators are those of that fit; ``p_serious`` is by the reliability at each
    label. Without changes results stay as they are, except that ``p_serious`` uses the seconds per
    answer where these are informative. Where an engine does not run the kernels over time, all of it is
    computed in memory.
    """
    engine = get_engine(getattr(estimator, "engine", "memory"))
    can_run = engine.capabilities.over_time or engine.capabilities.distributed
    if isinstance(estimator, EMEstimator) and not can_run:
        engine = get_engine("memory")
        estimator = copy(estimator)
        estimator.engine = engine.name
    problem = ""
    if fit.verdict == "chance":
        problem = "labels agree no better than chance"
    elif engine.capabilities.distributed:
        problem = f"the engine {engine.name} does not use times"
    evidence = None if problem else estimator.label_evidence()
    if evidence is None:
        why = f"over time: {problem or f'{fit.model} does not use times'}"
        results = FurtherResults(_tables(fit.data, None), {"used": False}, [why])
        return replace(fit, further={**fit.further, "over_time": results})
    with closing(engine.open(fit.data)) as session:
        return _analyse(fit, estimator, session, evidence)


def _analyse(fit: Fit, estimator: Estimator, session: Session, evidence: LabelEvidence) -> Fit:
    labels, further = fit.data, fit.further
    clock, sampled = read_clock(session, labels), sample_annotators(labels)
    trajectories = seconds = None
    if clock is not None:
        trajectories = find_trajectories(session, clock, evidence, sampled)
    if "seconds" in labels.covariates.labels:
        reliability = _reliability_of_labels(labels, evidence, trajectories, sampled)
        seconds = learn_seconds(session, labels, evidence, reliability, sampled)
    if trajectories is not None and len(trajectories.changes.place):
        parts = trajectories.parts(labels)
        parted = estimator.fit_parts(parts)
        assert parted is not None  # a model with evidence of labels can fit parts of them
        trajectories = trajectories.with_parts(parts, parted)
        fit = parted.fit
        if fit.p_serious is not None:
            fit = replace(fit, p_serious=trajectories.update(fit.p_serious))
    if seconds is not None and seconds.gain.is_clear and fit.p_serious is not None:
        fit = replace(fit, p_serious=seconds.update(fit.p_serious))
    results = further_results(labels, trajectories, seconds)
    return replace(fit, further={**further, "over_time": results})


def _reliability_of_labels(
    labels: Labels,
    evidence: LabelEvidence,
    trajectories: Trajectories | None,
    sampled: NDArray[np.bool_],
) -> Floats:
    """Return the reliability at each label of a sample without its own evidence.

    It is constant for labels without a time.
    """
    reliability = np.full(labels.n_labels, np.nan)
    is_constant = sampled[labels.annotator]
    if trajectories is not None:
        place = trajectories.clock.order[trajectories.sample.place]
        reliability[place] = trajectories.sample.changing
        is_constant[place] = False
    places = np.flatnonzero(is_constant)
    for some in slices(len(places), 1 << 16):
        j = places[some]
        serious, irregular = evidence.if_serious[j], evidence.if_irregular[j]
        p = irregular[:, np.newaxis] + np.outer(serious - irregular, evidence.levels)
        weights = evidence.weights[labels.annotator[j]] / p
        reliability[j] = weights @ evidence.levels / weights.sum(axis=1)
    return reliability


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
        trend = trajectories.trend
        facts |= {
            "by": trajectories.clock.kind,
            "n_labels": len(trajectories.clock.order),
            "n_changes": len(trajectories.changes.place),
            "order": _gain_facts(trajectories.gain),
            "trend": None if trend is None else trend._asdict(),
        }
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
    """Return the tables, which have no rows if there are no trajectories."""
    if trajectories is not None:
        return {
            "over_time": _reliability_over_time(labels, trajectories),
            "changes_over_time": _changes(labels, trajectories),
            "crowd_over_time": _crowd(trajectories),
        }
    number, nothing = np.empty(0, np.int64), [np.empty(0)] * 3
    ids, times, text = labels.annotators[:0], pa.array([], pa.float64()), pa.array([], pa.string())
    return {
        "over_time": _table("over_time", ids, times, times, number, *nothing),
        "changes_over_time": _table("changes_over_time", ids, times, number, number, *nothing),
        "crowd_over_time": _table("crowd_over_time", *[text] * 3, number, *nothing),
    }


def _table(name: str, *columns: Any) -> pa.Table:
    return pa.table(dict(zip(_COLUMNS[name].split(), columns, strict=True)))


def _reliability_over_time(labels: Labels, trajectories: Trajectories) -> pa.Table:
    """Return one row per window of an annotator's labels."""
    clock, windows = trajectories.clock, trajectories.windows
    annotator = np.repeat(clock.annotator, windows.end - windows.begin)
    return _table(
        "over_time",
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
    return _table(
        "changes_over_time",
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
        name = pa.array([by] * len(begin), pa.string())
        parts.append(_table("crowd_over_time", name, begin, end, each.n_labels, *crowd))
    return pa.concat_tables(parts)


def _as_text(by: str, clock: Clock, values: Floats) -> pa.Array:
    """Return the ends of bins as text: numbers, or dates."""
    if by == "time" and clock.is_date:
        dates = pa.array(values.astype(np.int64)).cast(clock.values.type)
        return pa.array([f"{date.as_py():%Y-%m-%d %H:%M:%S}" for date in dates])
    return pa.array([f"{value:g}" for value in values])


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
    percent, word = 100.0 * np.expm1(gain.mean), "more" if gain.mean >= 0 else "less"
    error = 100.0 * gain.standard_error
    figures = f"held-out labels {abs(percent):.3f}% {word} probable, standard error {error:.3f}%"
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
