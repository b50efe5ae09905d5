"""What more labels changed: two fits, the second with all items of the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.errors import counted
from annotruth.labels.frames import as_arrow, from_arrow
from annotruth.models.result import Fit

_MAX_LISTED = 5  # in the summary, of items and of annotators


@dataclass(frozen=True, eq=False)
class Changes:
    """The differences between a fit and a later fit with more labels.

    Attributes
    ----------
    n_labels, n_items, n_annotators
        How many the later fit has more.
    item_table
        Items whose label changed, the most confident first: item, before, label, confidence.
    annotator_table
        Annotators whose verdict changed, the largest change of reliability first: annotator,
        before, verdict, reliability_before, reliability.
    frame
        The caller's frame library.

    Examples
    --------
    >>> import annotruth as at
    >>> before = at.fit([("a", "x", 1), ("a", "y", 2), ("b", "x", 2)], "majority")
    >>> after = at.update(before, [("a", "z", 2)], refit=True)
    >>> at.changes(before, after).to_dict()["changed_items"]
    [{'item': 'a', 'before': 1, 'label': 2, 'confidence': 0.6666666666666666}]
    """

    n_labels: int
    n_items: int
    n_annotators: int
    item_table: pa.Table
    annotator_table: pa.Table
    frame: str

    def __repr__(self) -> str:
        return (
            f"Changes({counted(len(self.item_table), 'item')}, "
            f"{counted(len(self.annotator_table), 'annotator')})"
        )

    def _repr_html_(self) -> str:
        from annotruth.report.notebook import changes_block

        return changes_block(self)

    def items(self) -> Any:
        """Return one row per item whose label changed."""
        return from_arrow(self.item_table, self.frame)

    def annotators(self) -> Any:
        """Return one row per annotator whose verdict changed."""
        return from_arrow(self.annotator_table, self.frame)

    def summary(self) -> str:
        """Return the changes in a few lines."""
        items, people = self.item_table, self.annotator_table
        new = ", ".join(
            counted(number, word)
            for number, word in (
                (self.n_labels, "label"),
                (self.n_items, "item"),
                (self.n_annotators, "annotator"),
            )
        )
        lines = [
            f"new: {new}",
            f"items whose label changed: {len(items):,}",
        ]
        lines += [
            f"  {row['item']}: {row['before']} -> {row['label']} ({row['confidence']:.2f})"
            for row in items.slice(0, _MAX_LISTED).to_pylist()
        ]
        lines.append(f"annotators whose verdict changed: {len(people):,}")
        lines += [
            f"  {row['annotator']}: {row['before']} -> {row['verdict']} (reliability "
            f"{row['reliability_before']:.2f} -> {row['reliability']:.2f})"
            for row in people.slice(0, _MAX_LISTED).to_pylist()
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Tell the changes in words and numbers that JSON has."""
        return {
            "new_labels": self.n_labels,
            "new_items": self.n_items,
            "new_annotators": self.n_annotators,
            "changed_items": self.item_table.to_pylist(),
            "changed_annotators": self.annotator_table.to_pylist(),
        }


def changes(before: Fit, after: Fit) -> Changes:
    """Return the changes; items and annotators of the first fit must come first in the second."""
    old, new = before.data, after.data
    return Changes(
        n_labels=new.n_labels - old.n_labels,
        n_items=new.n_items - old.n_items,
        n_annotators=new.n_annotators - old.n_annotators,
        item_table=_items(before, after),
        annotator_table=_annotators(before, after),
        frame=old.frame,
    )


def _items(before: Fit, after: Fit) -> pa.Table:
    was, now = before.label, after.label
    if was is None or now is None or after.distribution is None:
        return pa.table({"item": after.data.items[:0]})
    confidence = after.distribution.confidence()
    changed = np.flatnonzero(was != now[: len(was)])
    changed = changed[np.argsort(-confidence[changed], kind="stable")]
    names = after.data.scale.categories
    return pa.table(
        {
            "item": after.data.items.take(as_arrow(changed)),
            "before": names.take(as_arrow(was[changed])),
            "label": names.take(as_arrow(now[changed])),
            "confidence": as_arrow(confidence[changed]),
        }
    )


def _annotators(before: Fit, after: Fit) -> pa.Table:
    if before.reliability is None or after.reliability is None:
        return pa.table({"annotator": after.data.annotators[:0]})
    verdicts = [fit.verdict_table()["verdict"].to_pylist() for fit in (before, after)]
    n = before.data.n_annotators
    pairs = zip(*verdicts, strict=False)
    changed = np.array([was != now for was, now in pairs], dtype=np.bool_).nonzero()[0]
    moved = np.abs(after.reliability[:n] - before.reliability)
    changed = changed[np.argsort(-moved[changed], kind="stable")]
    return pa.table(
        {
            "annotator": after.data.annotators.take(as_arrow(changed)),
            "before": pa.array([verdicts[0][s] for s in changed], pa.string()),
            "verdict": pa.array([verdicts[1][s] for s in changed], pa.string()),
            "reliability_before": as_arrow(before.reliability[changed]),
            "reliability": as_arrow(after.reliability[changed]),
        }
    )
