"""The arrays of labels on a card: one word per label, the same sorted by annotator, and cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.gpu.streaming import BEGIN, KNOWN, LABEL, CardItems, CardPartition
from annotruth.engines.protocol import Extent

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
