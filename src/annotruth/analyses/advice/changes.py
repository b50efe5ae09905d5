"""What more labels or comparisons changed: two fits, most of whose items and annotators are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.analyses.advice.advice import advise
from annotruth.analyses.advice.annotators import verdicts
from annotruth.analyses.advice.standing import standing_table
from annotruth.errors import InputError, counted, shorten, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit, RankFit
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import as_arrow, from_arrow

LEAST_MOVE = 0.05
"""Smaller changes of a reliability are not listed."""

_MAX_LISTED = 5  # in the summary, of items and of annotators


@dataclass(frozen=True, eq=False)
class Changes:
    """The differences between a fit and a later fit with more labels, or more comparisons.

    Attributes
    ----------
    new
        How many labels or comparisons, items and annotators are new, by their names in the singular.
    n_repeated
        How many labels or comparisons were given again, and left out.
    frame
        The caller's frame library.
    item_table
        Items whose label changed, the most confident first: item, before, label, confidence. Of
        comparisons, items whose rank changed, the best first: item, before, rank, score.
    annotator_table
        Annotators whose verdict changed, the standing one if the later fit continues others; the largest
        change of reliability first: annotator, before, verdict, reliability_before, reliability.
    status_table
        Of labels, items that need labels now and did not before, or the reverse: item, before, status.
    reliability_table
        Of labels, annotators whose reliability moved by at least `LEAST_MOVE`, the largest change first:
        annotator, reliability_before, reliability.
    """

    new: Mapping[str, int]
    n_repeated: int
    frame: str
    item_table: pa.Table
    annotator_table: pa.Table
    status_table: pa.Table | None = None
    reliability_table: pa.Table | None = None

    def __repr__(self) -> str:
        return (
            f"Changes({counted(len(self.item_table), 'item')}, "
            f"{counted(len(self.annotator_table), 'annotator')})"
        )

    @property
    def n_labels(self) -> int:
        """How many labels are new."""
        return self.new["label"]

    @property
    def n_items(self) -> int:
        """How many items are new."""
        return self.new["item"]

    @property
    def n_annotators(self) -> int:
        """How many annotators are new."""
        return self.new["annotator"]

    def items(self) -> Any:
        """Return one row per item whose label or rank changed."""
        return from_arrow(self.item_table, self.frame)

    def statuses(self) -> Any:
        """Return one row per item that needs labels now and did not before, or the reverse."""
        return from_arrow(self.status_table, self.frame)

    def annotators(self) -> Any:
        """Return one row per annotator whose verdict changed."""
        return from_arrow(self.annotator_table, self.frame)

    def reliabilities(self) -> Any:
        """Return one row per annotator whose reliability moved."""
        return from_arrow(self.reliability_table, self.frame)

    @property
    def n_finished(self) -> int:
        """How many items needed labels before, and need none now."""
        assert self.status_table is not None
        return int(np.count_nonzero(self.status_table["before"].to_numpy() == "needs labels"))

    @property
    def n_doubtful(self) -> int:
        """How many items needed no labels before, and need some now."""
        assert self.status_table is not None
        return len(self.status_table) - self.n_finished

    def summary(self) -> str:
        """Return the changes in a few lines."""
        unit = next(iter(self.new))
        lines = ["new: " + ", ".join(counted(number, word) for word, number in self.new.items())]
        if self.n_repeated:
            again = counted(self.n_repeated, f"{unit} was", f"{unit}s were")
            lines.append(f"{again} in the fit already")
        what = "label" if unit == "label" else "rank"
        lines += _listed(f"items whose {what} changed", self.item_table, _item_line)
        if self.status_table is not None:
            lines.append(f"items that need no more labels now: {self.n_finished:,}")
            lines.append(f"items that need labels again: {self.n_doubtful:,}")
        verdicts = "annotators whose verdict changed"
        lines += _listed(verdicts, self.annotator_table, _verdict_line)
        if self.reliability_table is not None:
            moved = f"annotators whose reliability moved by {LEAST_MOVE} or more"
            lines += _listed(moved, self.reliability_table, lambda row: _annotator(row, _move(row)))
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the changes in words and numbers that JSON has."""
        new = {f"new_{word}s": number for word, number in self.new.items()}
        items, annotators = self.item_table.to_pylist(), self.annotator_table.to_pylist()
        if self.status_table is None or self.reliability_table is None:
            changed = {"changed_items": items, "changed_annotators": annotators}
            return {**new, "repeated": self.n_repeated, **changed}
        return {
            **new,
            "repeated_labels": self.n_repeated,
            "changed_items": items,
            "finished_items": self.n_finished,
            "doubtful_items": self.n_doubtful,
            "changed_statuses": self.status_table.to_pylist(),
            "changed_annotators": annotators,
            "changed_reliabilities": self.reliability_table.to_pylist(),
        }


def _listed(what: str, table: pa.Table, line: Callable[[dict[str, Any]], str]) -> list[str]:
    """Return how many rows a table has, and a line on each of the first ones."""
    rows = table.slice(0, _MAX_LISTED).to_pylist()
    return [f"{what}: {len(table):,}", *(f"  {line(row)}" for row in rows)]


def _item_line(row: dict[str, Any]) -> str:
    line = f"{shorten(str(row['item']))}: {row['before']} -> "
    if "rank" in row:
        return f"{line}{row['rank']}"
    return f"{line}{row['label']} ({row['confidence']:.2f})"


def _verdict_line(row: dict[str, Any]) -> str:
    return _annotator(row, f"{row['before']} -> {row['verdict']}", _move(row))


def _annotator(row: dict[str, Any], *words: str) -> str:
    return f"{shorten(str(row['annotator']))}: {', '.join(filter(None, words))}"


def _words(values: NDArray[np.str_], codes: Codes) -> pa.Array:
    return pa.array(values[codes].tolist(), pa.string())


def _move(row: dict[str, Any]) -> str:
    """Return the reliabilities before and now; nothing for a model without them."""
    if row.get("reliability") is None:
        return ""
    return f"reliability {row['reliability_before']:.2f} -> {row['reliability']:.2f}"


class _Common(NamedTuple):
    """The codes of what two fits have in common, in the first and in the second."""

    before: Codes
    after: Codes

    @classmethod
    def of(cls, before: pa.Array, after: pa.Array) -> _Common:
        code = match_ids(before, after)
        there = np.flatnonzero(code >= 0)
        return cls(there, code[there])

    def take(self, kept: Codes) -> _Common:
        return _Common(self.before[kept], self.after[kept])


def changes(before: Fit, after: Fit, *, n_repeated: int = 0) -> Changes:
    """Return what is different in a later fit.

    Parameters
    ----------
    before, after
        The two fits; items, annotators and categories are matched by their ids and names.
    n_repeated
        How many labels were given again, to be mentioned.
    """
    for each in (before, after):
        if getattr(each, "kind", "") != "labels":
            raise InputError(f"{shown(each)} is no fit of labels: give two fits of annotruth.fit")
    old, new = before.data, after.data
    items = _Common.of(old.items, new.items)
    annotators = _Common.of(old.annotators, new.annotators)
    gone = np.ones(old.n_annotators, dtype=np.bool_)
    gone[annotators.before] = False
    n_removed = int(old.labels_per_annotator[gone].sum())
    advices = [advise(fit) for fit in (before, after)]
    said = [each.of_annotators.verdict for each in advices]
    if after.earlier_fits is not None:
        said = [np.array(standing_table(fit)["standing"]) for fit in (before, after)]
    return Changes(
        new={
            "label": new.n_labels - old.n_labels + n_removed,
            "item": new.n_items - len(items.after),
            "annotator": new.n_annotators - len(annotators.after),
        },
        n_repeated=n_repeated,
        frame=old.frame,
        item_table=_items(before, after, items),
        status_table=_statuses(after, items, *(each.of_items.status for each in advices)),
        annotator_table=_verdicts(before, after, annotators, *said),
        reliability_table=_reliabilities(before, after, annotators),
    )


def rank_changes(before: RankFit, after: RankFit, *, n_repeated: int = 0) -> Changes:
    """Return what is different in a later fit of comparisons; arguments are as for `changes`."""
    old, new = before.data, after.data
    items = _Common.of(old.items, new.items)
    rank_before, rank = before.ranking.rank, after.ranking.rank
    moved = items.take(np.flatnonzero(rank_before[items.before] != rank[items.after]))
    moved = moved.take(np.argsort(rank[moved.after], kind="stable"))
    item_table = pa.table(
        {
            "item": old.items.take(as_arrow(moved.before)),
            "before": rank_before[moved.before],
            "rank": rank[moved.after],
            "score": after.scores.mean[moved.after],
        }
    )
    return Changes(
        new={
            "comparison": new.n_comparisons - old.n_comparisons,
            "item": new.n_items - len(items.after),
            "annotator": new.n_annotators - old.n_annotators,
        },
        n_repeated=n_repeated,
        frame=new.frame,
        item_table=item_table,
        annotator_table=_verdicts(
            before,
            after,
            _Common.of(old.annotators, new.annotators),
            *(_verdicts_of_rankings(fit) for fit in (before, after)),
        ),
    )


def _items(before: Fit, after: Fit, items: _Common) -> pa.Table:
    was, now = before.label, after.label
    if was is None or now is None or after.distribution is None:
        return pa.table({"item": after.data.items[:0]})
    confidence = after.distribution.confidence()
    names_before, names = before.data.scale.categories, after.data.scale.categories
    label_before = match_ids(names_before, names)[was[items.before]]  # -1 for one that is gone
    changed = items.take(np.flatnonzero(label_before != now[items.after]))
    changed = changed.take(np.argsort(-confidence[changed.after], kind="stable"))
    return pa.table(
        {
            "item": after.data.items.take(as_arrow(changed.after)),
            "before": names_before.take(as_arrow(was[changed.before])),
            "label": names.take(as_arrow(now[changed.after])),
            "confidence": as_arrow(confidence[changed.after]),
        }
    )


def _statuses(after: Fit, items: _Common, was: NDArray[np.str_], now: NDArray[np.str_]) -> pa.Table:
    needed, needs = (status == "needs labels" for status in (was[items.before], now[items.after]))
    changed = items.take(np.flatnonzero(needed != needs))
    return pa.table(
        {
            "item": after.data.items.take(as_arrow(changed.after)),
            "before": _words(was, changed.before),
            "status": _words(now, changed.after),
        }
    )


def _verdicts(
    before: Fit[Any], after: Fit[Any], people: _Common, was: NDArray[np.str_], now: NDArray[np.str_]
) -> pa.Table:
    changed = people.take(np.flatnonzero(was[people.before] != now[people.after]))
    columns: dict[str, Any] = {}
    if before.reliability is not None and after.reliability is not None:
        moved = after.reliability[changed.after] - before.reliability[changed.before]
        changed = changed.take(np.argsort(-np.abs(moved), kind="stable"))
        columns = _reliability_columns(before.reliability, after.reliability, changed)
    return pa.table(
        {
            "annotator": after.data.annotators.take(as_arrow(changed.after)),
            "before": _words(was, changed.before),
            "verdict": _words(now, changed.after),
            **columns,
        }
    )


def _verdicts_of_rankings(fit: RankFit) -> NDArray[np.str_]:
    """Return the verdicts; all alike of a model without reliabilities, which has none."""
    if fit.reliability is None:
        return np.full(fit.data.n_annotators, "")
    return verdicts(fit)[0]


def _reliabilities(before: Fit, after: Fit, people: _Common) -> pa.Table:
    if before.reliability is None or after.reliability is None:
        return pa.table({"annotator": after.data.annotators[:0]})
    moved = np.abs(after.reliability[people.after] - before.reliability[people.before])
    order = np.argsort(-moved, kind="stable")
    people = people.take(order[moved[order] >= LEAST_MOVE])
    return pa.table(
        {
            "annotator": after.data.annotators.take(as_arrow(people.after)),
            **_reliability_columns(before.reliability, after.reliability, people),
        }
    )


def _reliability_columns(before: Floats, after: Floats, people: _Common) -> dict[str, pa.Array]:
    return {
        "reliability_before": as_arrow(before[people.before]),
        "reliability": as_arrow(after[people.after]),
    }
