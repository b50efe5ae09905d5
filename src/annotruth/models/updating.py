"""More labels for a fitted model: EM on the items concerned, all other labels known by sums.

Incremental EM (Neal and Hinton, A View of the EM Algorithm that Justifies Incremental, Sparse, and
Other Variants, 1998): what annotators share is a function of sums over the labels, so the items
with new labels are taken out, their part of the sums is taken away, and EM runs on them alone, the
sums of all other labels added in every step. What it costs follows the labels of these items,
not all labels. The items of the annotators who moved most are then let in, up to a bound, and EM
runs once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.arrays import Codes, Floats
from annotruth.labels import DuplicatePolicy, Labels
from annotruth.labels.buffers import as_arrow
from annotruth.labels.frames import from_arrow
from annotruth.labels.growth import Grown, Part
from annotruth.models.distribution import Distribution, Patched
from annotruth.models.em import ProgressCallback, Trace
from annotruth.models.result import Fit

_ROOM = 50_000  # labels of items that are let in because their annotators moved,
_SHARE = 0.02  # or this share of all labels if that is more
_STILL = 3e-4  # annotators whose reliability moved by less let no items in
_MANY = 0.1  # share of labels added from which a pass over all of them is worth its time


class Known(Protocol):
    """What a model knows of all annotators between updates."""

    @property
    def n_labels(self) -> NDArray[np.int64]:
        """How many labels each gave."""

    @property
    def reliability(self) -> Floats:
        """The reliability of each."""

    def with_newcomers(self, n_annotators: int, n_categories: int) -> Self:
        """Make room for annotators of whom nothing is known."""


K = TypeVar("K", bound=Known)


class Updatable(Protocol[K]):
    """What a model offers to be updated."""

    def _known(self, fit: Fit) -> K:
        """Add up the sums of all labels; this may pass over all of them."""

    def _settled(
        self, known: K, begin: K, before: Part, after: Part, theta: Distribution
    ) -> tuple[K, Distribution, Trace]:
        """Fit the items of ``after``; ``before`` has what some had, with these distributions.

        ``begin`` has the annotators' parameters to begin with.
        """

    def _whole(
        self,
        known: K,
        labels: Labels,
        theta: Distribution,
        *,
        touch: bool,
        progress: ProgressCallback | None,
    ) -> Fit:
        """Make a fit of all labels: as things stand, or after going on to iterate over all."""


@dataclass(frozen=True, eq=False)
class Update:
    """What one update did.

    Attributes
    ----------
    n_labels, n_items, n_annotators
        How many labels came, and how many items and annotators are new.
    n_passed
        How many labels, old and new, EM passed over.
    trace
        How EM went on these; its log-likelihood is theirs alone.
    item_table, annotator_table
        The items fitted anew and their annotators, before and after, in Arrow.
    frame
        The caller's frame library.
    """

    n_labels: int
    n_items: int
    n_annotators: int
    n_passed: int
    trace: Trace
    item_table: pa.Table
    annotator_table: pa.Table
    frame: str

    def items(self) -> Any:
        """Return one row an item fitted anew: item, before, label, confidence."""
        return from_arrow(self.item_table, self.frame)

    def annotators(self) -> Any:
        """Return one row an annotator of theirs: annotator, n_labels, before, reliability."""
        return from_arrow(self.annotator_table, self.frame)


class Updates(Generic[K]):
    """A fitted model with the labels that came since; the fit's own arrays are never copied."""

    def __init__(self, model: Updatable[K], fit: Fit) -> None:
        assert fit.distribution is not None
        self._model = model
        self._grown = Grown.of(fit.data)
        self._theta = Patched.of(fit.distribution)
        self._known = model._known(fit)
        self.converged = fit.converged

    @property
    def pending(self) -> bool:
        """Whether labels or truths came that no whole fit has yet."""
        return len(self._theta.item) > 0

    @property
    def many(self) -> bool:
        """Whether so many labels came that a whole fit is worth its pass over all labels."""
        return len(self._grown.added.item) > _MANY * self._grown.base.n_labels

    def add(self, new: Labels, *, gold: Any, duplicates: DuplicatePolicy) -> Update:
        """Take labels in; when anything is wrong with them, nothing has changed."""
        was, known = self._grown, self._known
        grown, touched = was.and_(new, gold=gold, duplicates=duplicates)
        known = known.with_newcomers(grown.n_annotators, len(grown.scale))
        after, theta, (settled, found, trace) = self._anew(grown, touched, known, known)
        movers = _movers(grown, known, settled)
        if len(movers):
            concerned = np.union1d(touched, grown.items_of(movers))
            after, theta, (settled, found, trace) = self._anew(grown, concerned, known, settled)
        update = Update(
            n_labels=new.n_labels,
            n_items=grown.n_items - was.n_items,
            n_annotators=grown.n_annotators - was.n_annotators,
            n_passed=after.labels.n_labels,
            trace=trace,
            item_table=_items(grown, after.item, found, theta),
            annotator_table=_annotators(
                grown, after.annotator, settled, known.reliability, was.n_annotators
            ),
            frame=was.base.frame,
        )
        self._grown, self._known = grown, settled
        self._theta = self._theta.replaced(after.item, found)
        self.converged = self.converged and trace.converged
        return update

    def _anew(
        self, grown: Grown, item: Codes, known: K, begin: K
    ) -> tuple[Part, Distribution, tuple[K, Distribution, Trace]]:
        """Fit items; returns their labels, the old ones' distributions, and what was found."""
        after = grown.part(item)
        old = item[item < self._grown.n_items]
        before, theta = self._grown.part(old, after.annotator), self._theta.take(old)
        return after, theta, self._model._settled(known, begin, before, after, theta)

    def whole(self, *, touch: bool = False, progress: ProgressCallback | None = None) -> Fit:
        """Make one fit of everything, which passes over all labels.

        With ``touch`` it goes on to iterate over all labels until the stopping rule is met.
        """
        labels = self._grown.merged()
        theta = self._theta.merged(labels.n_items)
        whole = self._model._whole(self._known, labels, theta, touch=touch, progress=progress)
        if touch:
            return whole
        told = "settled" if self.converged else "NOT settled: a fit or an update reached its cap"
        trace = replace(whole.trace, converged=self.converged, stop_reason=f"updated, {told}")
        return replace(whole, trace=trace)


def _movers(grown: Grown, before: K, after: K) -> Codes:
    """Name annotators whose items to let in: those who moved most, while there is room."""
    moved = np.abs(after.reliability - before.reliability)
    order = np.argsort(-moved, kind="stable")
    order = order[moved[order] > _STILL]
    # As many labels as if they shared no item.
    labels = after.n_labels * (grown.n_labels / grown.n_items)
    room = max(_ROOM, _SHARE * grown.n_labels)
    chosen: Codes = order[np.cumsum(labels[order]) <= room]
    return chosen


def _items(grown: Grown, item: Codes, found: Distribution, old: Distribution) -> pa.Table:
    """Tell of items, of which the first have ``old`` distributions and the others are new."""
    names = grown.scale.categories
    new = len(found) - len(old)
    before = names.take(as_arrow(old.mode())) if len(old) else names[:0]
    return pa.table(
        {
            "item": grown.items.take(as_arrow(item)),
            "before": pa.chunked_array([before, pa.nulls(new, names.type)]),
            "label": names.take(as_arrow(found.mode())),
            "confidence": as_arrow(found.confidence()),
        }
    )


def _annotators(
    grown: Grown, annotator: Codes, known: Known, before: Floats, n_before: int
) -> pa.Table:
    """Tell of annotators; those from ``n_before`` on are new."""
    new = int(np.count_nonzero(annotator >= n_before))
    was = before[annotator[: len(annotator) - new]]
    return pa.table(
        {
            "annotator": grown.annotators.take(as_arrow(annotator)),
            "n_labels": as_arrow(known.n_labels[annotator]),
            "before": pa.chunked_array([as_arrow(was), pa.nulls(new, pa.float64())]),
            "reliability": as_arrow(known.reliability[annotator]),
        }
    )
