"""Whom to keep, to drop and to ask: a verdict on every annotator, with the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError, counted, option, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import (
    FLAGGED,
    LOW_ACCURACY,
    NO_VERDICT,
    OTHER_OPINION,
    PARTLY_CARELESS,
    SPAMMER_BELOW,
    TOO_FEW,
    UNCLEAR,
    table_of,
)
from annotruth.models.fits.notes import CHANCE
from annotruth.models.pairs.summary import side_preferences
from annotruth.models.result import Fit
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import as_arrow

NOBODY = -1
"""Code of an assignment to a new annotator, where all of those to ask have labelled the item."""

FEW_LABELS = 5
"""Annotators with fewer labels get no verdict where the model gives no interval."""

ASK_FROM = 0.5
"""Annotators whose labels have less than this share of the best ones' information are not asked."""

VERDICTS = ("keep", "drop", "unsure", "too few labels")

RANK_VERDICTS = ("keep", "drop", "unsure", "too few votes")
"""The verdicts on annotators who compare items."""

_LOAD = 4 / 3  # who has more than this many times an even share of the assignments is asked last
_BEST = 0.1  # the share of annotators that information is measured against
_STANDARD_ERRORS, _MARGIN = 3.0, 0.15  # far below the median: by both

N_EXAMPLES = 3
"""How many items a verdict names."""

_NOTICED = {
    LOW_ACCURACY: "accuracy clearly below that of most annotators",
    PARTLY_CARELESS: "a part of the labels does not depend on the items",
    OTHER_OPINION: "agrees with others who differ from the crowd",
    UNCLEAR: "labels follow the items too weakly to tell",
    NO_VERDICT: "labels are too few to tell them from chance",
}
_CAMPS = "it is open which of two sides is right"
_MOST_SHOWN = 24  # characters of an item's name


@dataclass(frozen=True, eq=False)
class AnnotatorAdvice:
    """The verdict on every annotator, one entry per annotator."""

    verdict: NDArray[np.str_]  # one of `VERDICTS`, by the rules that `verdict_rules` states
    information: Floats  # what a label of theirs gains, relative to the mean of the best tenth's
    # whether to give them assignments: not dropped, and information of at least `ASK_FROM`
    ask: NDArray[np.bool_]
    reason: Sequence[str]  # the reason for the verdict, with numbers

    def count(self, verdicts: Sequence[str] = VERDICTS) -> dict[str, int]:
        """Return how many annotators have each verdict."""
        return {verdict: int(np.count_nonzero(self.verdict == verdict)) for verdict in verdicts}

    def table(self, fit: Fit[Any]) -> pa.Table:
        """Return the annotators, their verdicts, whether to ask them, and the reasons."""
        return table_of(
            {
                "annotator": fit.data.annotators,
                "verdict": self.verdict.tolist(),
                "ask": self.ask,
                "reason": self.reason,
            }
        )

    def full_table(self, fit: Fit[Any]) -> pa.Table:
        """Return that table with numbers of labels or comparisons, information and reliability."""
        n_given = as_arrow(fit.data.labels_per_annotator)
        table = self.table(fit).append_column("information", as_arrow(self.information))
        table = table.add_column(1, f"n_{fit.unit}s", n_given)
        if fit.reliability is None:
            return table
        return table.append_column("reliability", as_arrow(fit.reliability))

    def why_nobody(self, done: str) -> str:
        """Return why assignments have no annotator; ``done`` is what those to ask did before."""
        if not self.ask.any():
            return "none of the annotators should be asked, so find new people"
        return f"all of those to ask have {done}, so find new people"


def annotator_advice(fit: Fit, label_gain: Floats) -> AnnotatorAdvice:
    """Return the verdict on every annotator of a fit, given what one label of theirs gains."""
    people = advice_of_verdicts(*verdicts(fit), label_gain)
    # Of two camps, the most informative people would be those of the side that the model took.
    asks_nobody = fit.is_void or fit.verdict == "camps"
    return replace(people, ask=np.zeros_like(people.ask)) if asks_nobody else people


def advice_of_verdicts(
    verdict: NDArray[np.str_], reasons: Sequence[str], gain: Floats
) -> AnnotatorAdvice:
    """Return whom to ask, given the verdicts and what one label or vote of each annotator gains."""
    best = np.sort(gain)[-max(1, round(_BEST * len(gain))) :].mean()
    # Where no label gains anything, as with one category, all are alike.
    information = gain / best if best > 0.0 else np.ones_like(gain)
    ask = (verdict != "drop") & (information >= ASK_FROM)
    low = (information < ASK_FROM).tolist()
    notes = [f"; low information ({value:.2f} of the best)" for value in information.tolist()]
    reason = [
        r + note if is_low else r for r, note, is_low in zip(reasons, notes, low, strict=True)
    ]
    return AnnotatorAdvice(verdict, information, ask, reason)


def verdicts(fit: Fit[Any]) -> tuple[NDArray[np.str_], list[str]]:
    """Return the verdict on every annotator, one of `VERDICTS` or `RANK_VERDICTS`, and the reasons.

    A model of comparisons must have reliabilities.
    """
    if fit.is_void:
        n = fit.data.n_annotators
        return np.full(n, "unsure"), [why_void(fit)] * n
    if fit.reliability is None:
        return _verdicts_by_matches(cast("Fit", fit))
    judge = _verdicts_by_flags if has_flags(fit) else _verdicts_by_reliability
    found = judge(fit)
    return _with_changes(fit, *found) if "over_time" in fit.further else found


def verdict_table(fit: Fit[Any]) -> pa.Table:
    """Return annotator, verdict and reason, for a fit of comparisons or of sets."""
    if fit.reliability is None:
        raise AnnotruthError(
            f"{fit.model} says nothing about annotators: rank with {option('model', 'pair-gpm')}"
        )
    verdict, reason = verdicts(fit)
    columns = {"verdict": verdict.tolist(), "reason": reason}
    return table_of({"annotator": fit.data.annotators, **columns})


def has_flags(fit: Fit[Any]) -> bool:
    """Whether the fit's model flags annotators."""
    return FLAGGED in fit.annotator_columns


def verdict_rules(fit: Fit[Any]) -> dict[str, str]:
    """Return the rule for each verdict that the fit's model can give."""
    if fit.is_void:
        return {"unsure": f"everybody: {why_void(fit)}"}
    if fit.reliability is None:
        return {
            "keep": "matches the recovered labels about as often as the median annotator",
            "unsure": "matches them far less often than the median annotator",
            "too few labels": f"fewer than {FEW_LABELS} labels",
        }
    if has_flags(fit):
        return {
            "keep": "labels follow the items",
            "drop": "labels are careless or consistently wrong, by strong evidence that plain counts "
            "support",
            "unsure": "accuracy clearly below the crowd's, careless in part, or another opinion",
            "too few labels": f"{TOO_FEW}, or labels that follow the items too weakly: more would tell",
        }
    interval = "reliability" if fit.low is None else "whole 95% interval of the reliability"
    rules = {
        "keep": f"{interval} {SPAMMER_BELOW} or more",
        "drop": f"{interval} below {SPAMMER_BELOW}",
        "unsure": f"interval on both sides of {SPAMMER_BELOW}",
        fit.too_few[0]: fit.too_few[1],
    }
    if not _may_drop(fit):
        del rules["drop"]
        rules["unsure"] = f"{interval} below {SPAMMER_BELOW}, by spam or by mistakes"
    return rules


def why_void(fit: Fit[Any]) -> str:
    """Return why a fit says nothing about people."""
    return f"labels {CHANCE}" if fit.verdict == "chance" else "labels hardly agree"


def _may_drop(fit: Fit[Any]) -> bool:
    """Whether the fit can tell spam from mistakes, and its labels from chance."""
    return fit.p_serious is not None and fit.verdict != "chance"


def _verdicts_by_reliability(fit: Fit[Any]) -> tuple[NDArray[np.str_], list[str]]:
    """Judge by the interval of the reliability, or by the reliability where there is none.

    A model that cannot tell spam from mistakes drops nobody, nor do labels no better than chance.
    """
    assert fit.reliability is not None
    low = fit.reliability if fit.low is None else fit.low
    high = fit.reliability if fit.high is None else fit.high
    n_labels = fit.data.labels_per_annotator
    few_verdict, few_behavior = fit.too_few
    few = (n_labels < FEW_LABELS) & (fit.low is None)
    if fit.behavior is not None:
        few |= np.array(fit.behavior) == few_behavior
    below = high < SPAMMER_BELOW
    verdict = np.select(
        [few, low >= SPAMMER_BELOW, below & _may_drop(fit)],
        [few_verdict, "keep", "drop"],
        default="unsure",
    )
    because = {
        "keep": f"not below {SPAMMER_BELOW:g}",
        "drop": f"below {SPAMMER_BELOW:g}",
        "unsure": f"may be on either side of {SPAMMER_BELOW:g}",
        few_verdict: few_behavior,
    }
    why_not = f"{fit.model} cannot tell spam from mistakes"
    if fit.verdict == "chance":
        why_not = f"{fit.unit}s {CHANCE}"
    mistakes = f"below {SPAMMER_BELOW:g}, but {why_not}"
    behavior = fit.behavior or ["serious"] * len(verdict)
    side = side_preferences(fit) if fit.kind == "comparisons" else [""] * len(verdict)
    reasons = []
    for s, word in enumerate(verdict.tolist()):
        estimate = f"reliability {fit.reliability[s]:.2f}"
        if fit.low is not None and fit.high is not None:
            estimate += f" ({fit.low[s]:.2f} to {fit.high[s]:.2f})"
        estimate += f" on {counted(int(n_labels[s]), fit.unit)}"
        if behavior[s] not in ("serious", few_behavior):
            estimate += f", {behavior[s]}"
        if side[s]:
            estimate += f", prefers the {side[s]} side"
        cause = mistakes if word == "unsure" and below[s] else because[word]
        reasons.append(f"{estimate}: {cause}")
    return verdict, reasons


def _verdicts_by_matches(fit: Fit) -> tuple[NDArray[np.str_], list[str]]:
    """Judge by how often labels are the recovered ones, for models without a reliability."""
    rate, n_labels = match_rate(fit), fit.data.labels_per_annotator
    verdict = np.select(
        [n_labels < FEW_LABELS, far_below_median(fit)], ["too few labels", "unsure"], "keep"
    )
    because = {
        "keep": "not far below the median",
        "unsure": "far below the median",
        "too few labels": TOO_FEW,
    }
    median = np.median(rate)
    reasons = [
        f"matches the recovered label on {rate[s]:.0%} of {counted(int(n_labels[s]), 'label')}, "
        f"median {median:.0%}: {because[word]}"
        for s, word in enumerate(verdict.tolist())
    ]
    return verdict, reasons


def recovered_labels(fit: Fit) -> Codes:
    """Return the code of each item's label; for a score, of the category nearest to it."""
    if fit.label is not None:
        return fit.label.astype(np.int64)
    assert fit.expectation is not None  # a model gives one or the other
    values = fit.data.scale.values
    middles = (values[1:] + values[:-1]) / 2
    return np.searchsorted(middles, fit.expectation).astype(np.int64)


def match_rate(fit: Fit) -> Floats:
    """Return the share of each annotator's labels that are the recovered label, own included."""
    data = fit.data
    same = data.cell_category == recovered_labels(fit)[data.item_of_cell()]
    matches = np.bincount(data.annotator, same[data.cell_of_label()], data.n_annotators)
    rate: Floats = matches / data.labels_per_annotator
    return rate


def far_below_median(fit: Fit) -> NDArray[np.bool_]:
    """Return who matches the recovered labels far less often than the median annotator."""
    rate, median = match_rate(fit), np.median(match_rate(fit))
    error = np.sqrt(np.maximum(median * (1.0 - median), 1e-9) / fit.data.labels_per_annotator)
    far: NDArray[np.bool_] = (rate < median - _STANDARD_ERRORS * error) & (rate < median - _MARGIN)
    return far


def _verdicts_by_flags(fit: Fit[Any]) -> tuple[NDArray[np.str_], list[str]]:
    """Return the verdict on every annotator of a fit whose model flags them, and the reasons."""
    assert fit.behavior is not None
    flagged = np.asarray(fit.annotator_columns[FLAGGED], dtype=np.bool_)
    behavior = np.array(fit.behavior, dtype=object)
    noticed = np.isin(behavior, list(_NOTICED))
    needs_more = np.isin(behavior, [TOO_FEW, UNCLEAR])
    noticed &= ~needs_more
    verdict = np.select(
        [flagged, needs_more, noticed], ["drop", "too few labels", "unsure"], "keep"
    )
    examples = example_items(fit, flagged | noticed) if fit.kind == "labels" else {}
    reasons = [
        _reason(fit, s, word) + examples.get(s, "") for s, word in enumerate(verdict.tolist())
    ]
    return verdict, reasons


def _reason(fit: Fit[Any], s: int, verdict: str) -> str:
    """Return the evidence for a verdict in one sentence."""
    assert fit.behavior is not None
    columns, behavior = fit.annotator_columns, fit.behavior[s]
    n_labels = counted(int(fit.data.labels_per_annotator[s]), fit.unit)
    said = f"on {n_labels}"
    if "accuracy" in columns:
        low, high = columns["accuracy_low"][s], columns["accuracy_high"][s]
        said = f"accuracy {columns['accuracy'][s]:.2f} ({low:.2f} to {high:.2f}) on {n_labels}"
    if verdict == "drop":
        odds = f"{10 ** min(float(columns['evidence'][s]), 9):,.0f}"
        return (
            f"{said}: {behavior}; {odds} times likelier if labels do not follow the items, agreement with "
            f"others {columns['agreement'][s]:+.2f} (0: own labels shuffled)"
        )
    if verdict == "too few labels":
        return f"{said}: {_NOTICED.get(behavior, TOO_FEW)}"
    if verdict == "unsure":
        noticed = _CAMPS if fit.verdict == "camps" else _NOTICED[behavior]
        return f"{said}: {behavior}, {noticed}"
    return f"{said}: {behavior}"


def example_items(fit: Fit, which: NDArray[np.bool_]) -> dict[int, str]:
    """Return, for some annotators, the labels that most contradict what was recovered, in words.

    Only items that others labelled, too.
    """
    data, theta = fit.data, fit.distribution
    if theta is None or fit.label is None or not which.any():
        return {}
    cell = data.cell_of_label()
    item = data.item_of_cell()[cell]
    chosen = np.flatnonzero(which[data.annotator] & (data.labels_per_item[item] > 1))
    p_own = theta.of_each_cell(data)[cell[chosen]]
    order = np.lexsort((chosen, p_own, data.annotator[chosen]))
    annotator = data.annotator[chosen][order]
    first = np.flatnonzero(np.diff(annotator, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    kept = order[(rank < N_EXAMPLES) & (p_own[order] < 0.5)]
    found: dict[int, list[str]] = {}
    names: Sequence[str] = data.scale.names
    for place in chosen[kept].tolist():
        e = int(item[place])
        name = str(data.items[e].as_py())
        short = name if len(name) <= _MOST_SHOWN else f"{name[: _MOST_SHOWN - 3]}..."
        given = names[data.cell_category[cell[place]]]
        text = f"{short}: {given} instead of {names[fit.label[e]]}"
        found.setdefault(int(data.annotator[place]), []).append(text)
    return {s: f"; for example {', '.join(texts)}" for s, texts in found.items()}


def describe_time(at: Any) -> str:
    """Return a date as "3 May 2024", and a number as it is."""
    return f"{at.day} {at:%B %Y}" if isinstance(at, datetime) else f"{at:g}"


def describe_change(row: Mapping[str, Any]) -> str:
    """Return a row of the table of changes in words: what changed, and when."""
    at = row["at"]
    when = f"{'on' if isinstance(at, datetime) else 'at'} {describe_time(at)}"
    return f"changed {when}: reliability {row['before']:.2f} before, {row['after']:.2f} after"


def name_change(row: Mapping[str, Any]) -> str:
    """Return a row of the table of changes in words, with the annotator."""
    return f"annotator {shown(row['annotator'])} {describe_change(row)}"


def _with_changes(
    fit: Fit[Any], verdict: NDArray[np.str_], reasons: Sequence[str]
) -> tuple[NDArray[np.str_], list[str]]:
    """Return verdicts and reasons that take annotators' last changes into account.

    Nobody is kept without reserve who is a spammer since.
    """
    table = fit.further_table("over_time", "changes_over_time")
    places = match_ids(table["annotator"].combine_chunks(), fit.data.annotators).tolist()
    verdict, reasons = verdict.copy(), list(reasons)
    last = dict(zip(places, table.to_pylist(), strict=True))
    for s, row in last.items():
        reasons[s] += f"; {describe_change(row)}"
        if verdict[s] == "keep" and row["after"] < SPAMMER_BELOW:
            verdict[s] = "unsure"
    return verdict, reasons


class Workload:
    """How many assignments everybody has, to choose whom to ask next.

    ``limit`` is how many assignments one annotator gets. If it ``is_strict``, annotators at the limit are
    never chosen; otherwise they are, if nobody else is left, those with the fewest assignments first.
    """

    def __init__(self, people: AnnotatorAdvice, limit: int, *, is_strict: bool) -> None:
        order = np.argsort(-people.information[people.ask], kind="stable")
        self._asked: list[int] = np.flatnonzero(people.ask)[order].tolist()
        self._below_limit = self._asked
        self._load = np.zeros(len(people.ask), dtype=np.int64)
        self._limit, self._is_strict = limit, is_strict

    def choose(self, wanted: int, excluded: set[int]) -> list[int]:
        """Return up to so many of the most informative annotators, and count their assignments."""
        eligible = (s for s in self._below_limit if s not in excluded)
        chosen = list(islice(eligible, wanted))
        if len(chosen) < wanted and not self._is_strict:
            others = (s for s in self._asked if s not in excluded and s not in chosen)
            chosen += sorted(others, key=self._load.__getitem__)[: wanted - len(chosen)]
        self._load[chosen] += 1
        if chosen and self._load[chosen].max() >= self._limit:
            self._below_limit = [s for s in self._below_limit if self._load[s] < self._limit]
        return chosen


def even_workload(people: AnnotatorAdvice, n_assignments: int) -> Workload:
    """Return a workload in which nobody gets much more than an even share, as far as possible."""
    n_ask = max(int(people.ask.sum()), 1)
    return Workload(people, math.ceil(_LOAD * n_assignments / n_ask), is_strict=False)
