"""Simulated labels for the benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.observations import Labels, Scale
from annotruth.simulate import crowd

LABELS_PER_ITEM = 10
LABELS_PER_ANNOTATOR = 200
CATEGORIES = 5


def simulated(n_labels: int, seed: int = 0) -> Labels:
    """Return about ``n_labels`` labels; a million are 100,000 items by 5,000 annotators."""
    return crowd(
        n_items=max(1, n_labels // LABELS_PER_ITEM),
        n_annotators=max(LABELS_PER_ITEM, n_labels // LABELS_PER_ANNOTATOR),
        n_categories=CATEGORIES,
        labels_per_item=LABELS_PER_ITEM,
        seed=seed,
    ).labels


def sorted_labels(n_labels: int, n_annotators: int, seed: int = 0) -> Labels:
    """Return about ``n_labels`` labels, drawn in the order in which Labels stores them.

    Nothing is sorted and there are no ids, so that a hundred million labels take seconds and
    little memory. Of four labels three are near the item's category and one is uniform.
    """
    rng = np.random.default_rng(seed)
    n_items = max(1, n_labels // LABELS_PER_ITEM)
    cells_per_item, labels_per_cell, categories, annotators = [], [], [], []
    for start in range(0, n_items, 1 << 18):
        shape = (min(n_items - start, 1 << 18), LABELS_PER_ITEM)
        near = rng.integers(CATEGORIES, size=(shape[0], 1)) + rng.integers(-1, 2, size=shape)
        uniform = rng.integers(CATEGORIES, size=shape)
        label = np.where(rng.random(shape) < 0.75, near.clip(0, CATEGORIES - 1), uniform)
        label.sort(axis=1)
        is_first = np.ones(shape, dtype=bool)
        is_first[:, 1:] = label[:, 1:] != label[:, :-1]
        cells_per_item.append(is_first.sum(axis=1))
        labels_per_cell.append(np.diff(np.append(np.flatnonzero(is_first), is_first.size)))
        categories.append(label[is_first].astype(np.int32))
        annotators.append(rng.integers(n_annotators, size=is_first.size, dtype=np.int32))

    def pointers(counts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(np.concatenate(counts))])

    return Labels(
        items=pa.nulls(n_items),
        annotators=pa.nulls(n_annotators),
        scale=Scale.ordinal(list(range(CATEGORIES))),
        item_ptr=pointers(cells_per_item),
        cell_category=np.concatenate(categories),
        cell_ptr=pointers(labels_per_cell),
        annotator=np.concatenate(annotators),
        row=np.empty(0, dtype=np.int64),
        known=np.full(n_items, -1, dtype=np.int32),
    )


def peer_frame(labels: Labels) -> pd.DataFrame:
    """Return the labels as a frame of ``task, worker, label``, ordered by item.

    The ids are integers, with which crowd-kit is much faster than with text.
    """
    cell = labels.cell_of_label()
    codes: dict[str, NDArray[np.integer[Any]]] = {
        "task": labels.item_of_cell()[cell],
        "worker": labels.annotator,
        "label": labels.cell_category[cell],
    }
    input_order = np.argsort(labels.row)
    return pd.DataFrame({name: code[input_order].astype(np.int64) for name, code in codes.items()})
