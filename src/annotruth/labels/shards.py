"""Splitting labels by item into parts of about the same work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
