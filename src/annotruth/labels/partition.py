"""The labels of some items."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes
from annotruth.labels.table import Labels


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
