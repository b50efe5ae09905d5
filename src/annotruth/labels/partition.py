"""Splitting labels by item: into parts of about the same work, or those of some items alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes
from annotruth.labels.table import Labels


def split(labels: Labels, n_parts: int) -> NDArray[np.int64]:
    """Return the n_parts + 1 item bounds that share the labels out evenly.

    The bounds depend on the labels alone, never on the number of threads, so sums added up
    part by part are the same on every machine.
    """
    starts = labels.cell_ptr[labels.item_ptr]
    targets = np.linspace(0, labels.n_labels, n_parts + 1)
    bounds = np.searchsorted(starts, targets).astype(np.int64)
    bounds[0], bounds[-1] = 0, labels.n_items
    return bounds


def of_items(labels: Labels, item: Codes) -> tuple[Labels, Codes, Codes]:
    """Take the labels of some items, named in any order and as often as one likes.

    Returns them, the code that each named item has there, and the codes that their annotators
    had before.
    """
    asked, place = np.unique(item, return_inverse=True)
    among = np.zeros(labels.n_items, dtype=np.bool_)
    among[asked] = True
    kept = among[labels.item_of_label()]
    return labels.subset(kept), place, np.unique(labels.annotator[kept])
