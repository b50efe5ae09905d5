"""Where the rows of some items' labels lie, in a table of annotators x labels x kinds.

BaseFit for many items at once: short loops over cells cost more than the work in them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.simd8 import Offsets, spread


@compiled
def most_labels(block: Block, lo: int, hi: int, at_once: int) -> int:
    """Count the labels of the items taken at once that have the most."""
    most = 0
    for some in range(lo, hi, at_once):
        first, last = block.item_ptr[some], block.item_ptr[min(some + at_once, hi)]
        most = max(most, block.cell_ptr[last] - block.cell_ptr[first])
    return most


@compiled
def labels_of(block: Block, lo: int, e: int) -> tuple[int, int]:
    """Say where an item's labels begin and end, counted from those of item ``lo``."""
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
    n_kinds: int,
    category: NDArray[np.int32],
    rows: Offsets,
) -> None:
    """Write each label's category, and where its row begins."""
    first, last = block.item_ptr[lo], block.item_ptr[hi]
    begin, end = block.cell_ptr[first], block.cell_ptr[last]
    spread(block.cell_ptr, first, last, block.cell_category, category)
    annotator = block.annotator[begin:end]
    for j in range(np.uint64(end - begin)):
        rows[j] = (np.int64(annotator[j]) * n_labels + category[j]) * n_kinds
