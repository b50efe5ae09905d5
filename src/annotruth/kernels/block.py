"""The labels as the kernels see them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Block(NamedTuple):
    """Labels of some items, sorted by item and category.

    Cells of item e are ``item_ptr[e]:item_ptr[e+1]``; all labels of cell c name the category
    ``cell_category[c]`` and stand at ``cell_ptr[c]:cell_ptr[c+1]``, where ``annotator`` says
    who gave each. ``known[e]`` is the category code of a known truth, or -1.
    """

    item_ptr: NDArray[np.int64]
    cell_category: NDArray[np.int32]
    cell_ptr: NDArray[np.int64]
    annotator: NDArray[np.int32]
    known: NDArray[np.int32]
