"""More labels for a fitted model: EM on the items concerned, all other labels known by sums.

Incremental EM (Neal and Hinton, A View of the EM Algorithm that Justifies Incremental, Sparse, and
Other Variants, 1998): what annotators share is a function of sums over the labels, so the items
with new labels are taken out, their part of the sums is taken away, and EM runs on them alone, the
sums of all other labels added in every step. What it costs follows the labels of these items,
not all labels. The items that annotators who moved pull at most are then let in, up to a bound, and
EM runs once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.labels import DuplicatePolicy, Labels
from annotruth.labels.append import AppendedLabels, Part
from annotruth.labels.buffers import as_arrow
from annotruth.labels.frames import from_arrow
from annotruth.models.base_fit import BaseFit
from annotruth.models.distribution import Distribution, PatchedDistribution
from annotruth.models.em import History, ProgressCallback
from annotruth.models.result import Fit

_ROOM = 50_000  # labels of items that are let in because their annotators moved,
_SHARE = 0.02  # or this share of all labels if that is more
_STIFFEST = 0.05  # how far an item follows its annotators that is sure of its label
_STILL = 1e-6  # items that annotators pull at by less are not let in
_AT_ONCE = 1 << 16  # items looked at together
_MANY = 0.1  # share of labels added from which a pass over all of them is worth its time


class Known(Protocol):
    """What a model knows of all annotators between updates."""

    @property
    def n_labels(self) -> NDArray[np.int64]:
        """How many labels each gave."""

    @property
    def reliability(self) -> Floats:
        """The reliability of each."""

    def with_new_annotators(self, more: int, n_categories: int) -> Self:
        """Make room for annotators of whom nothing is known."""

    def of(self, annotator: Codes) -> Self:
        """Take some annotators."""

    def replaced(self, annotator: Codes, new: Self) -> Self:
        """Put what is now known of some annotators in the place of what was."""


K = TypeVar("K", bound=Known)


class Updatable(Protocol[K]):
    """What a model offers to be updated."""

    def _known(self, fit: Fit) -> K:
        """Add up the sums of all labels; this may pass over all of them."""

    def _settled(
        self, was: K, begin: K, before: Part, after: Part, theta: Distribution
    ) -> tuple[K, Distribution, History]:
        """Fit the items of ``after``; ``before`` has what some had, with these distributions.

        ``was`` is known of the annotators of both parts; ``begin`` has their parameters to begin
        with. What is then known of them is returned.
        """

    def _whole(self, known: K, labels: Labels, theta: Distribution) -> BaseFit:
        """Make a fit of all labels as things stand."""

    def _touched(
        self, known: K, labels: Labels, theta: Distribution, progress: ProgressCallback | None
    ) -> BaseFit:
        """Make a fit of all labels, iterating over all of them."""


@dataclass(frozen=True, eq=False)
class Update:
    """What one update did.

    Attributes
    ----------
    n_labels, n_items, n_annotators
        How many labels came, and how many items and annotators are new.
    n_passed
        How many labels, old and new, EM passed over.
    history
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
    history: History
    item_table: pa.Table
    annotator_table: pa.Table
    frame: str

    def items(self) -> Any:
        """Return one row an item fitted anew: item, before, label, confidence."""
        return from_arrow(self.item_table, self.frame)

    def annotators(self) -> Any:
        """Return one row an annotator of theirs: annotator, n_labels, before, reliability."""
        return from_arrow(self.annotator_table, self.frame)


def update_told(before: Fit, after: Fit, grown: AppendedLabels, touched: Codes) -> Update:
    """Tell what new labels did where all labels were fitted anew."""
    assert before.distribution is not None
    assert after.distribution is not None
    assert before.reliability is not None
    assert after.reliability is not None
    old, data = touched[touched < before.data.n_items], after.data
    annotator = np.unique(grown.part(touched).annotator)
    return Update(
        n_labels=len(grown.added.item),
        n_items=data.n_items - before.data.n_items,
        n_annotators=data.n_annotators - before.data.n_annotators,
        n_passed=data.n_labels,
        history=after.history,
        item_table=_items(
            grown,
            touched,
            PatchedDistribution.of(after.distribution).take(touched),
            PatchedDistribution.of(before.distribution).take(old),
        ),
        annotator_table=_annotators(
            grown, annotator, data.labels_per_annotator, after.reliability, before.reliability
        ),
        frame=data.frame,
    )


class Settled(NamedTuple, Generic[K]):
    """What EM on some items found."""

    after: Part
    theta: Distribution  # of those that are not new, before
    now: K
    found: Distribution
    history: History


class Updates(Generic[K]):
    """A fitted model with the labels that came since; the fit's own arrays are never copied."""

    def __init__(self, model: Updatable[K], fit: Fit) -> None:
        assert fit.distribution is not None
        self._model = model
        self._grown = AppendedLabels.of(fit.data)
        self._theta = PatchedDistribution.of(fit.distribution)
        self._known = model._known(fit)
        sure = fit.distribution.confidence()
        self._follows = _STIFFEST + np.sqrt(sure * (1.0 - sure))
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
        more = grown.n_annotators - was.n_annotators
        if more:
            known = known.with_new_annotators(more, len(grown.scale))
        settled = self._anew(grown, touched, known)
        others = self._let_in(grown, known, settled)
        if len(others):
            settled = self._anew(grown, np.union1d(touched, others), known, settled)
        item, people = settled.after.item, settled.after.annotator
        self._known = known.replaced(people, settled.now)
        update = Update(
            n_labels=new.n_labels,
            n_items=grown.n_items - was.n_items,
            n_annotators=grown.n_annotators - was.n_annotators,
            n_passed=settled.after.labels.n_labels,
            history=settled.history,
            item_table=_items(grown, item, settled.found, settled.theta),
            annotator_table=_annotators(
                grown,
                people,
                self._known.n_labels,
                self._known.reliability,
                known.reliability[: was.n_annotators],
            ),
            frame=was.base.frame,
        )
        self._grown = grown
        self._theta = self._theta.replaced(item, settled.found)
        self.converged = self.converged and settled.history.converged
        return update

    def _anew(
        self, grown: AppendedLabels, item: Codes, known: K, last: Settled[K] | None = None
    ) -> Settled[K]:
        """Fit items, beginning where the last round ended, whose items are among them."""
        after = grown.part(item)
        old = item[item < self._grown.n_items]
        before, theta = self._grown.part(old, after.annotator), self._theta.take(old)
        begin = was = known.of(after.annotator)
        if last is not None:
            begin = was.replaced(np.searchsorted(after.annotator, last.after.annotator), last.now)
        return Settled(after, theta, *self._model._settled(was, begin, before, after, theta))

    def _let_in(self, grown: AppendedLabels, known: K, last: Settled[K]) -> Codes:
        """Name items to fit next: those that annotators who moved decide most, while there is room.

        An item follows its annotators the more, the less it is sure of its label.
        """
        moved = np.zeros(grown.n_annotators)
        people = last.after.annotator
        moved[people] = np.abs(last.now.reliability - known.reliability[people])
        base = grown.base
        pull = self._follows * _summed_by_item(base, moved)
        pull[last.after.item[last.after.item < base.n_items]] = 0.0
        room = max(_ROOM, _SHARE * grown.n_labels)
        most = min(int(room / (grown.n_labels / grown.n_items)) + 1, base.n_items)
        chosen: Codes = np.argpartition(-pull, most - 1)[:most]
        return chosen[pull[chosen] > _STILL]

    def whole(self, *, touch: bool = False, progress: ProgressCallback | None = None) -> Fit:
        """Make one fit of everything, which passes over all labels.

        With ``touch`` it goes on to iterate over all labels until the stopping rule is met.
        """
        labels = self._grown.merged()
        theta = self._theta.merged(labels.n_items)
        if touch:
            return cast("Fit", self._model._touched(self._known, labels, theta, progress))
        whole = cast("Fit", self._model._whole(self._known, labels, theta))
        told = "settled" if self.converged else "NOT settled: a fit or an update reached its cap"
        history = replace(whole.history, converged=self.converged, stop_reason=f"updated, {told}")
        return replace(whole, history=history)


def _summed_by_item(labels: Labels, of_annotator: Floats) -> Floats:
    """Add up a value of annotators over each item's labels, some items at a time."""
    first = labels.cell_ptr[labels.item_ptr]
    sums = np.empty(labels.n_items)
    for at in slices(labels.n_items, _AT_ONCE):
        start = first[at.start : at.stop + 1]
        values = of_annotator[labels.annotator[start[0] : start[-1]]]
        sums[at] = np.add.reduceat(values, start[:-1] - start[0])
    return sums


def _items(grown: AppendedLabels, item: Codes, found: Distribution, old: Distribution) -> pa.Table:
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
    grown: AppendedLabels,
    annotator: Codes,
    n_labels: NDArray[np.int64],
    reliability: Floats,
    before: Floats,
) -> pa.Table:
    """Tell of annotators; those whom ``before`` does not reach are new."""
    new = int(np.count_nonzero(annotator >= len(before)))
    was = before[annotator[: len(annotator) - new]]
    return pa.table(
        {
            "annotator": grown.annotators.take(as_arrow(annotator)),
            "n_labels": as_arrow(n_labels[annotator]),
            "before": pa.chunked_array([as_arrow(was), pa.nulls(new, pa.float64())]),
            "reliability": as_arrow(reliability[annotator]),
        }
    )
