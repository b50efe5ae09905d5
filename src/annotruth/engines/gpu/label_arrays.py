"""The arrays of labels on a card: one word per label, sorted labels, cells, and labels of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.gpu.device import check_room
from annotruth.engines.gpu.streaming import BEGIN, KNOWN, LABEL, CardItems, CardPartition
from annotruth.engines.protocol import Extent
from annotruth.kernels.shared import NEVER, NOT_SAMPLED

if TYPE_CHECKING:
    from annotruth.engines.gpu.session import GPUSession

SORTED = ("row of sorted label", "item of sorted label")
"""The labels sorted by row, which is category x annotators + annotator: the row, and the item.

Where there are enough labels for it, they are sorted within groups of consecutive items, so that what is
read of a group's items is cached.
"""

_BYTES_TO_SORT = 60  # per label
_ITEMS_OF_GROUP = 1 << 19
_LABELS_OF_ROW = 8  # in a group; with fewer, adding to rows takes longer than reading items


def copy_labels(card: CardItems, number: NDArray[np.uint32], category_shift: int) -> None:
    """Make the arrays of labels; ``number`` is the number of each annotator on the card."""
    labels, xp = card.labels, card.device.xp
    card.allocate(BEGIN, "bounds", (), np.uint32)
    if (labels.known >= 0).any():
        card.allocate(KNOWN, "items", (), np.int32)
    card.allocate(LABEL, "labels", (), np.uint32, on_card=card.keeps_labels())
    with card.device.current():
        numbers = xp.asarray(number)
        for one in card.partitions:
            word = numbers[xp.asarray(labels.annotator[card.extent(one, "labels")])]
            category = xp.asarray(labels.cell_category[card.extent(one, "cells")])
            is_first = xp.zeros(len(word), np.int32)
            is_first[xp.asarray(_first_labels(card, one))] = 1
            cell = xp.cumsum(is_first, dtype=np.int32) - np.int32(1)
            word |= category[cell].astype(np.uint32) << np.uint32(category_shift)
            card.store(LABEL, one, word)
            card.store(BEGIN, one, xp.asarray(card.begin(one)))
            if KNOWN in card.arrays:
                card.store(KNOWN, one, xp.asarray(labels.known[card.extent(one, "items")]))


def sort_labels(card: CardItems, n_annotators: int, n_categories: int, category_shift: int) -> None:
    """Make the arrays of sorted labels: of all labels if they are on the card, else by partition."""
    xp = card.device.xp
    n_labels = card.whole.labels.stop
    at_once = card.is_on_card() and _BYTES_TO_SORT * n_labels <= card.room()
    for name in SORTED:
        array = card.allocate(name, "labels", (), np.uint32)
        array.by_partition = not at_once
    shift, mask = np.uint32(category_shift), np.uint32((1 << category_shift) - 1)
    with card.device.current():
        for one in [card.whole] if at_once else card.partitions:
            word = card.load(LABEL, one)
            row = (word >> shift) * np.uint32(n_annotators) + (word & mask)
            n_items = one.items.stop - one.items.start
            item = xp.asarray(
                np.repeat(np.arange(n_items, dtype=np.uint32), card.labels_per_item(one))
            )
            n_rows = n_annotators * n_categories
            key = item // _items_of_group(n_rows, n_items, len(row)) * np.uint64(n_rows)
            key += row
            order = xp.argsort(key, kind="stable")
            for name, values in zip(SORTED, (row, item), strict=True):
                card.store(name, one, values[order])


def _items_of_group(n_rows: int, n_items: int, n_labels: int) -> np.uint64:
    """Return how many items are in a group of sorted labels: all of them if rows would be short."""
    labels_of_group = n_labels / max(n_items, 1) * _ITEMS_OF_GROUP
    has_long_rows = labels_of_group >= _LABELS_OF_ROW * n_rows
    return np.uint64(_ITEMS_OF_GROUP if has_long_rows else max(n_items, 1))


def to_rows(
    card: CardItems, partition: CardPartition, values: NDArray[Any], per: Extent, n_categories: int
) -> NDArray[Any]:
    """Return entries of items, cells or labels as rows of an array on the card.

    ``n_categories`` is 0 if cells have one entry per label on the card.
    """
    if per != "cells":
        return values
    if not n_categories:
        sparse = np.zeros(partition.labels.stop - partition.labels.start, dtype=values.dtype)
        sparse[_first_labels(card, partition)] = values
        return sparse
    dense = np.zeros((partition.items.stop - partition.items.start, n_categories), values.dtype)
    dense[_items_and_categories(card, partition)] = values
    return dense


def cell_entries(card: CardItems, partition: CardPartition, rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows of an array of cells on the card with one entry per cell."""
    entries: NDArray[Any] = (
        rows[_first_labels(card, partition)]
        if rows.ndim == 1
        else rows[_items_and_categories(card, partition)]
    )
    return entries


def _first_labels(card: CardItems, partition: CardPartition) -> NDArray[np.int64]:
    """Return the first label of each cell, counted from that of the partition."""
    first: NDArray[np.int64] = (
        card.labels.cell_ptr[card.extent(partition, "cells")] - partition.first_label
    )
    return first


def _items_and_categories(card: CardItems, partition: CardPartition) -> tuple[NDArray[Any], ...]:
    """Return the item, counted from that of the partition, and the category of each cell."""
    items = card.extent(partition, "items")
    per_item = np.diff(card.labels.item_ptr[items.start : items.stop + 1])
    category = card.labels.cell_category[card.extent(partition, "cells")]
    return np.repeat(np.arange(len(per_item)), per_item), category


@dataclass(frozen=True, eq=False)
class LabelBlock:
    """Labels on the card, sorted by item and category."""

    session: GPUSession  # the session they belong to
    begin: Any  # where the labels of each item begin, and one word per label
    label: Any
    known: Any  # the category of each item's known truth, or -1; None if none is known
    items: Any = None  # which of the session's items these are; None: all of them
    fold: Any = None  # the fold of each label; None where no label is held out

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.begin) - 1

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.label)

    def of_items(self, values: Any) -> Any:
        """Return an array of the session's items for the items of the block."""
        return values if self.items is None else values[self.items]

    def item_of_label(self) -> Any:
        """Return the place of each label's item in the block."""
        xp = self.session.device.xp
        labels = xp.arange(self.n_labels, dtype=np.uint32)
        return xp.searchsorted(self.begin[1:], labels, side="right").astype(np.uint32)

    @property
    def row(self) -> Any:
        """The rows of the labels sorted by row: annotator x categories + category."""
        return self._by_row[0]

    @property
    def item(self) -> Any:
        """The items of the labels sorted by row."""
        return self._by_row[1]

    @cached_property
    def _by_row(self) -> tuple[Any, Any]:
        session, shift = self.session, np.uint32(self.session.category_shift)
        mask = (np.uint32(1) << shift) - np.uint32(1)
        check_room(session.device, 40 * self.n_labels, "the labels sorted by annotator")
        row = (self.label & mask) * np.uint32(session.n_categories)
        row += self.label >> shift
        order = session.device.xp.argsort(row, kind="stable")
        return row[order], self.item_of_label()[order]

    def where(self, is_kept: Any) -> LabelBlock:
        """Return the block of the labels that are kept, without items that have none of them."""
        session, xp = self.session, self.session.device.xp
        check_room(session.device, 20 * self.n_labels, "the labels of a sample")
        n_before = xp.zeros(self.n_labels + 1, np.int64)
        n_before[1:] = xp.cumsum(is_kept)
        begin = n_before[self.begin.astype(np.int64)]
        item = xp.flatnonzero(begin[1:] > begin[:-1])
        return LabelBlock(
            session,
            xp.concatenate([begin[item], begin[-1:]]).astype(np.uint32),
            self.label[is_kept],
            None if self.known is None else self.known[item],
            item if self.items is None else self.items[item],
            None if self.fold is None else self.fold[is_kept],
        )


def all_labels(session: GPUSession) -> LabelBlock:
    """Return all labels of a session."""
    return session.cached(
        "all labels", lambda: LabelBlock(session, session.begin, session.label, session.known)
    )


def sampled_labels(session: GPUSession, fold: str) -> LabelBlock:
    """Return the labels of items that are in folds; ``fold`` is the name of the array of folds."""

    def make() -> LabelBlock:
        folds = session.array(fold, np.int8)
        block = LabelBlock(session, session.begin, session.label, session.known, fold=folds)
        return block.where(folds != np.int8(NOT_SAMPLED))

    return session.cached("sampled labels", make)


def kept_labels(session: GPUSession, fold: str, held: int) -> LabelBlock:
    """Return the labels that are kept while the fold ``held`` is held out; all if it is NEVER."""
    if held == NEVER:
        return all_labels(session)
    sampled = sampled_labels(session, fold)
    return session.cached(
        f"labels but those of fold {held}", lambda: sampled.where(sampled.fold != np.int8(held))
    )
