"""The labels as kernels read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Block(NamedTuple):
    """Labels of some items, sorted by item and category.

    A cell is all labels of one item that name the same category. The cells of item e are
    ``item_ptr[e]:item_ptr[e+1]``. The labels of cell c are ``cell_ptr[c]:cell_ptr[c+1]``, of the
    category ``cell_category[c]``; ``annotator`` has one entry per label. ``known[e]`` is the category
    code of the item's known truth, or -1.
    """

    item_ptr: NDArray[np.int64]
    cell_category: NDArray[np.int32]
    cell_ptr: NDArray[np.int64]
    annotator: NDArray[np.int32]
    known: NDArray[np.int32]
