"""The labels that every contender passes over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotruth.labels import Labels
from annotruth.simulate import crowd

LABELS_PER_ITEM = 10
LABELS_PER_ANNOTATOR = 200
CATEGORIES = 5


def simulated(n_labels: int, seed: int = 0) -> Labels:
    """About ``n_labels`` labels; a million of them are 100,000 items by 5,000 annotators."""
    return crowd(
        n_items=max(1, n_labels // LABELS_PER_ITEM),
        n_annotators=max(LABELS_PER_ITEM, n_labels // LABELS_PER_ANNOTATOR),
        n_categories=CATEGORIES,
        labels_per_item=LABELS_PER_ITEM,
        seed=seed,
    ).labels


def peer_frame(labels: Labels) -> pd.DataFrame:
    """The same labels as ``task, worker, label``, item by item.

    The ids are integers, which crowd-kit takes much faster than text.
    """
    cell = labels.cell_of_label()
    codes: dict[str, NDArray[np.integer[Any]]] = {
        "task": labels.item_of_cell()[cell],
        "worker": labels.annotator,
        "label": labels.cell_category[cell],
    }
    back = np.argsort(labels.row)
    return pd.DataFrame({name: code[back].astype(np.int64) for name, code in codes.items()})
