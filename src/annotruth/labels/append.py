"""Labels to which others are added: the old ones stay where they are, the new ones stand beside.

Nothing here but `AppendedLabels.merged` touches all labels, so that adding a few costs little however many
there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes
from annotruth.labels import validate
from annotruth.labels.encode import arrange, as_text, match
from annotruth.labels.options import DuplicatePolicy
from annotruth.labels.scale import Scale
from annotruth.labels.table import Labels
from annotruth.labels.truth import match_truth


class Part(NamedTuple):
    """All labels of some items.

    Attributes
    ----------
    labels
        The labels, in codes of their own.
    item, annotator
        The codes that their items and annotators have in the whole, rising.
    """

    labels: Labels
    item: Codes
    annotator: Codes


class Rows(NamedTuple):
    """Labels in the codes of the whole, one entry a label."""

    item: Codes
    annotator: Codes
    label: Codes

    def take(self, which: NDArray[Any]) -> Rows:
        """Keep some rows."""
        return Rows(*(column[which] for column in self))

    def and_(self, others: Rows) -> Rows:
        """Put other rows behind these."""
        return Rows(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))


_NO_ROWS = Rows(*(np.empty(0, dtype=np.int64),) * 3)


@dataclass(frozen=True, eq=False)
class AppendedLabels:
    """Labels and what was added to them.

    Attributes
    ----------
    base
        The labels at first, never copied.
    items, annotators
        All ids; codes of the base stay, new ones follow.
    added
        The labels added.
    gone
        Places of labels of the base that an added one supersedes, rising.
    known
        Known truths that were added, by item.
    n_dropped
        How many added rows had no label.
    """

    base: Labels
    items: pa.ChunkedArray
    annotators: pa.ChunkedArray
    added: Rows = _NO_ROWS
    gone: Codes = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    known: Mapping[int, int] = field(default_factory=dict)
    n_dropped: int = 0

    @classmethod
    def of(cls, base: Labels) -> AppendedLabels:
        """Begin with nothing added."""
        return cls(base, pa.chunked_array([base.items]), pa.chunked_array([base.annotators]))

    @property
    def scale(self) -> Scale:
        """The scale, which does not grow."""
        return self.base.scale

    @property
    def n_items(self) -> int:
        """How many items have a label."""
        return len(self.items)

    @property
    def n_annotators(self) -> int:
        """How many people gave a label."""
        return len(self.annotators)

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return self.base.n_labels + len(self.added.item) - len(self.gone)

    def and_(
        self, new: Labels, *, gold: Any = None, duplicates: DuplicatePolicy = "refuse"
    ) -> tuple[AppendedLabels, Codes]:
        """Add labels, and known truths of new or old items.

        Returns the whole and the codes of the items that have new labels or a new known truth,
        rising. New labels must be of known categories.
        """
        items, item_codes = _joined(self.items, new.items)
        annotators, annotator_codes = _joined(self.annotators, new.annotators)
        category = self.scale.codes_of(new.scale.categories)
        used = np.unique(np.concatenate([new.cell_category, new.known[new.known >= 0]]))
        validate.check_no_new_categories(
            category[used], new.scale.categories.take(pa.array(used)), self.scale
        )
        came = Rows(
            *(
                codes[new.as_they_came(column)].astype(np.int64)
                for codes, column in (
                    (item_codes, new.item_of_label()),
                    (annotator_codes, new.annotator),
                    (category, new.category_of_label()),
                )
            )
        )
        known = dict(self.known)
        truths = np.flatnonzero(new.known >= 0)  # a file may bring its own
        known.update(_pairs(item_codes[truths], category[new.known[truths]]))
        grown = replace(
            self, items=items, annotators=annotators, n_dropped=self.n_dropped + new.n_dropped
        )
        asked = item_codes[truths]
        if gold is not None:
            truth = match_truth(gold, grown, role="gold")
            known.update(_pairs(truth.item, truth.categories()))
            asked = np.concatenate([asked, truth.item])
        grown = replace(grown, known=known)
        if duplicates != "keep":
            grown = grown._without_repeats(came, refuse=duplicates == "refuse")
        touched = np.unique(np.concatenate([came.item, asked]))
        return replace(grown, added=grown.added.and_(came)), touched

    def _without_repeats(self, came: Rows, *, refuse: bool) -> AppendedLabels:
        """Refuse, or take out, labels that a new one of the same person repeats."""
        places, old = self._old(np.unique(came.item))
        pair = came.item * self.n_annotators + came.annotator
        again = np.isin(old.item * self.n_annotators + old.annotator, pair)
        added = self.added
        added_again = np.isin(added.item * self.n_annotators + added.annotator, pair)
        if not (again.any() or added_again.any()):
            return self
        if refuse:
            twice = old.take(again).and_(added.take(added_again))
            validate.check_no_repeats(
                np.arange(len(twice.item)), self.items, twice.item, self.annotators, twice.annotator
            )
        gone = np.union1d(self.gone, places[again])
        return replace(self, gone=gone, added=added.take(~added_again))

    def part(self, item: Codes, annotator: Codes | None = None) -> Part:
        """Take out all labels of some items, named in rising order.

        ``annotator`` names the annotators to have codes there, in rising order; without it, those
        who labelled the items.
        """
        _, rows = self._old(item)
        rows = rows.and_(self.added.take(np.isin(self.added.item, item)))
        people = np.unique(rows.annotator) if annotator is None else annotator
        code = np.zeros(people.max(initial=-1) + 1, dtype=np.int64)
        code[people] = np.arange(len(people))
        places = np.searchsorted(item, rows.item), code[rows.annotator]
        layout = arrange(*places, rows.label, len(item), len(self.scale))
        old = item[item < self.base.n_items]
        known = np.full(len(item), -1, dtype=np.int32)
        known[: len(old)] = self.base.known[old]
        if self.known:
            known = np.array(
                [self.known.get(e, k) for e, k in zip(item.tolist(), known.tolist(), strict=True)],
                dtype=np.int32,
            )
        labels = Labels(
            items=pa.nulls(len(item)),  # ids are known to the whole
            annotators=pa.nulls(len(people)),
            scale=self.scale,
            **layout._asdict(),
            known=known,
        )
        return Part(labels, item, people)

    def _old(self, item: Codes) -> tuple[Codes, Rows]:
        """Take all labels of some items that the base has, and say at which places."""
        base = self.base
        item = item[item < base.n_items]
        cells = base.item_ptr[item], base.item_ptr[item + 1]
        cell = _ranges(*cells)
        labels = base.cell_ptr[cell], base.cell_ptr[cell + 1]
        place = _ranges(*labels)
        n = labels[1] - labels[0]
        rows = Rows(
            np.repeat(np.repeat(item, cells[1] - cells[0]), n),
            base.annotator[place].astype(np.int64),
            np.repeat(base.cell_category[cell].astype(np.int64), n),
        )
        if len(self.gone):
            here = ~np.isin(place, self.gone)
            place, rows = place[here], rows.take(here)
        return place, rows

    def merged(self) -> Labels:
        """Lay everything out anew, old labels first: this passes over all of them."""
        base, added = self.base, self.added
        here = np.ones(base.n_labels, dtype=np.bool_)
        here[base.row[self.gone]] = False
        columns = (base.item_of_label(), base.annotator, base.category_of_label())
        codes = (
            np.concatenate([base.as_they_came(old)[here], new.astype(np.int32)])
            for old, new in zip(columns, added, strict=True)
        )
        labels = Labels.from_codes(
            *codes,
            items=self.items.combine_chunks(),
            annotators=self.annotators.combine_chunks(),
            scale=self.scale,
            n_dropped=base.n_dropped + self.n_dropped,
            frame=base.frame,
        )
        known = labels.known
        known[: base.n_items] = base.known
        known[list(self.known)] = list(self.known.values())
        annotator_prior = base.annotator_prior
        if annotator_prior is not None:
            annotator_prior = np.pad(
                annotator_prior, ((0, labels.n_annotators - base.n_annotators), (0, 0))
            )
        return replace(labels, annotator_prior=annotator_prior, read_as=base.read_as)


def _joined(ids: pa.ChunkedArray, new: pa.Array) -> tuple[pa.ChunkedArray, Codes]:
    """Add the ids that are new; returns all ids and the code of each of ``new``."""
    codes = match(new, ids)
    strange = np.flatnonzero(codes < 0)
    codes[strange] = len(ids) + np.arange(len(strange))
    if len(strange) == 0:
        return ids, codes
    more = new.take(pa.array(strange))
    if more.type != ids.type:
        try:
            more = more.cast(ids.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            ids, more = as_text(ids), as_text(more)  # words among numbers
    return pa.chunked_array([*ids.chunks, more]), codes


def _pairs(items: Codes, categories: NDArray[np.integer[Any]]) -> dict[int, int]:
    return dict(zip(items.tolist(), categories.tolist(), strict=True))


def _ranges(starts: Codes, ends: Codes) -> Codes:
    """Count from every start to its end, one after the other."""
    n = ends - starts
    counted: Codes = np.arange(n.sum()) + np.repeat(starts - (np.cumsum(n) - n), n)
    return counted
