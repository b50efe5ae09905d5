"""A block written out label by label, as the equations have it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Arrays, Block, Codes, Floats


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


def log_known_truth(block: Block, lo: int, hi: int, known_truth: Floats) -> Floats:
    """Return the log-likelihood of what is known about each item; 0 where nothing is."""
    known = block.known[lo:hi]
    with np.errstate(divide="ignore"):
        logs: Floats = np.where(known[:, np.newaxis] < 0, 0.0, np.log(known_truth)[known])
    return logs


def class_posteriors(
    block: Block, lo: int, hi: int, item: Codes, probability: Floats, a: Arrays
) -> tuple[Floats, Floats]:
    """Return items' posteriors over classes, and log-likelihoods, given labels' probabilities in each.

    If the labels are impossible in every class, the prior, or what is known beside them, remains.
    """
    known = block.known[lo:hi, np.newaxis]
    with np.errstate(divide="ignore"):
        log_joint = np.log(a.prior) + log_known_truth(block, lo, hi, a.known_truth)
        np.add.at(log_joint, item - lo, np.log(probability))
    top = log_joint.max(axis=1, keepdims=True)
    possible = np.isfinite(top)
    without_labels = np.where(known < 0, a.prior, a.known_truth[known[:, 0]])
    joint = np.where(possible, np.exp(log_joint - np.where(possible, top, 0.0)), without_labels)
    total = joint.sum(axis=1, keepdims=True)
    return joint / total, (top + np.log(total))[:, 0]
