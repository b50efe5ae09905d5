"""Where the rows of items' labels begin, in a table of annotators x labels x latent classes.

They are computed for many items at once: short loops over cells cost more than the work in them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Block
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.simd8 import Offsets, repeat_by_cell


@compiled
def most_labels(block: Block, lo: int, hi: int, n_at_once: int) -> int:
    """Return the largest number of labels of ``n_at_once`` successive items."""
    most = 0
    for start in range(lo, hi, n_at_once):
        first, last = block.item_ptr[start], block.item_ptr[min(start + n_at_once, hi)]
        most = max(most, block.cell_ptr[last] - block.cell_ptr[first])
    return most


@compiled
def item_labels(block: Block, lo: int, e: int) -> tuple[int, int]:
    """Return where an item's labels begin and end, counted from those of item ``lo``."""
    base = block.cell_ptr[block.item_ptr[lo]]
    return (
        block.cell_ptr[block.item_ptr[e]] - base,
        block.cell_ptr[block.item_ptr[e + 1]] - base,
    )


@compiled
def find_rows(
    block: Block,
    lo: int,
    hi: int,
    n_labels: int,
    n_classes: int,
    category: NDArray[np.int32],
    rows: Offsets,
) -> None:
    """Write the category of each label of items ``lo:hi``, and where its row begins."""
    first, last = block.item_ptr[lo], block.item_ptr[hi]
    begin, end = block.cell_ptr[first], block.cell_ptr[last]
    repeat_by_cell(block.cell_ptr, first, last, block.cell_category, category)
    annotator = block.annotator[begin:end]
    for j in range(np.uint64(end - begin)):
        rows[j] = (np.int64(annotator[j]) * n_labels + category[j]) * n_classes
