"""What more comparisons changed: two rankings, most of whose items are the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.analyses.advice.annotators import verdicts
from annotruth.errors import counted, shorten
from annotruth.models.result import RankFit
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import as_arrow, from_arrow

_MAX_LISTED = 5  # in the summary, of items and of annotators


@dataclass(frozen=True, eq=False)
class RankChanges:
    """The differences between a fit of comparisons and a later one with more comparisons.

    Attributes
    ----------
    n_comparisons, n_items, n_annotators
        How many are new.
    n_repeated
        How many comparisons were given again, and left out.
    item_table
        Items whose rank changed, the best first: item, before, rank, score.
    annotator_table
        Annotators whose verdict changed: annotator, before, verdict, reliability.
    frame
        The caller's frame library.
    """

    n_comparisons: int
    n_items: int
    n_annotators: int
    n_repeated: int
    item_table: pa.Table
    annotator_table: pa.Table
    frame: str

    def items(self) -> Any:
        """Return one row per item whose rank changed."""
        return from_arrow(self.item_table, self.frame)

    def annotators(self) -> Any:
        """Return one row per annotator whose verdict changed."""
        return from_arrow(self.annotator_table, self.frame)

    def summary(self) -> str:
        """Return the changes in a few lines."""
        new = ", ".join(
            counted(number, word)
            for number, word in (
                (self.n_comparisons, "comparison"),
                (self.n_items, "item"),
                (self.n_annotators, "annotator"),
            )
        )
        lines = [f"new: {new}"]
        if self.n_repeated:
            again = counted(self.n_repeated, "comparison was", "comparisons were")
            lines.append(f"{again} in the fit already")
        lines.append(f"items whose rank changed: {len(self.item_table):,}")
        lines += [
            f"  {shorten(str(row['item']))}: rank {row['before']} before, {row['rank']} now"
            for row in self.item_table.slice(0, _MAX_LISTED).to_pylist()
        ]
        lines.append(f"annotators whose verdict changed: {len(self.annotator_table):,}")
        lines += [
            f"  {shorten(str(row['annotator']))}: {row['before']} before, {row['verdict']} now "
            f"(reliability {row['reliability']:.2f})"
            for row in self.annotator_table.slice(0, _MAX_LISTED).to_pylist()
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the changed items and annotators, as JSON types."""
        return {
            "new_comparisons": self.n_comparisons,
            "new_items": self.n_items,
            "new_annotators": self.n_annotators,
            "repeated": self.n_repeated,
            "changed_items": self.item_table.to_pylist(),
            "changed_annotators": self.annotator_table.to_pylist(),
        }


def rank_changes(before: RankFit, after: RankFit, *, n_repeated: int = 0) -> RankChanges:
    """Return what is different in a later fit.

    Parameters
    ----------
    before, after
        Two fits of comparisons, the second with more of them.
    n_repeated
        How many comparisons were given again, as `update_ranking` returns it.
    """
    old, new = before.data, after.data
    item = match_ids(old.items, new.items)
    known = np.flatnonzero(item >= 0)
    rank_before, rank = before.ranking.rank[known], after.ranking.rank[item[known]]
    moved = np.flatnonzero(rank_before != rank)
    moved = moved[np.argsort(rank[moved], kind="stable")]
    items = pa.table(
        {
            "item": old.items.take(as_arrow(known[moved])),
            "before": rank_before[moved],
            "rank": rank[moved],
            "score": after.scores.mean[item[known[moved]]],
        }
    )
    return RankChanges(
        n_comparisons=new.n_comparisons - old.n_comparisons,
        n_items=new.n_items - len(known),
        n_annotators=new.n_annotators - old.n_annotators,
        n_repeated=n_repeated,
        item_table=items,
        annotator_table=_changed_verdicts(before, after),
        frame=new.frame,
    )


def _changed_verdicts(before: RankFit, after: RankFit) -> pa.Table:
    """Return the annotators whose verdict changed; none for models without reliabilities."""
    names = ("annotator", "before", "verdict", "reliability")
    if before.reliability is None or after.reliability is None:
        return pa.table({name: pa.array([], pa.string()) for name in names})
    place = match_ids(before.data.annotators, after.data.annotators)
    known = np.flatnonzero(place >= 0)
    old, new = verdicts(before)[0][known], verdicts(after)[0][place[known]]
    changed = np.flatnonzero(old != new)
    columns = (
        before.data.annotators.take(as_arrow(known[changed])),
        pa.array(old[changed].tolist(), pa.string()),
        pa.array(new[changed].tolist(), pa.string()),
        after.reliability[place[known[changed]]],
    )
    return pa.table(dict(zip(names, columns, strict=True)))
