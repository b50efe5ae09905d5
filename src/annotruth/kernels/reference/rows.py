"""A block written out label by label, as the equations have it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats


class LabelRows(NamedTuple):
    """Items ``lo:hi`` of a block with one entry per label."""

    item: Codes
    cell: Codes
    category: Codes
    annotator: Codes
    place: Codes  # the index of the label in the block


def label_rows(block: Block, lo: int, hi: int) -> LabelRows:
    """Return the labels of items ``lo:hi`` of a block, one entry per label."""
    cells = np.arange(block.item_ptr[lo], block.item_ptr[hi])
    cell = np.repeat(cells, np.diff(block.cell_ptr)[cells])
    place = np.arange(block.cell_ptr[cells[0]], block.cell_ptr[cells[-1] + 1])
    item = np.repeat(np.arange(lo, hi), np.diff(block.item_ptr)[lo:hi])[cell - cells[0]]
    category = block.cell_category[cell].astype(np.int64)
    return LabelRows(item, cell, category, block.annotator[place].astype(np.int64), place)


def cell_shares(block: Block, lo: int, hi: int) -> tuple[Codes, Codes, Floats]:
    """Return the item and the category of each cell of items ``lo:hi``, and its share of the labels."""
    cells = slice(block.item_ptr[lo], block.item_ptr[hi])
    item = np.repeat(np.arange(lo, hi), np.diff(block.item_ptr[lo : hi + 1]))
    n_labels = np.diff(block.cell_ptr[block.item_ptr[lo : hi + 1]])
    shares = np.diff(block.cell_ptr)[cells] / n_labels[item - lo]
    return item, block.cell_category[cells].astype(np.int64), shares
