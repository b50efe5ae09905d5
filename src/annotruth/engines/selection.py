"""Some items of data on this machine, as data of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.protocol import Extent, PassData
from annotruth.kernels.arrays import Block


class SelectedItems:
    """The labels of some items, laid out as those of all items are, in memory.

    Annotators keep their codes. ``places`` are where the kept items, cells and labels are among all.
    """

    def __init__(self, data: PassData, kept: NDArray[np.bool_]) -> None:
        block = data.block()
        items = np.flatnonzero(kept)
        cells, item_ptr = _entries(block.item_ptr, items)
        labels, cell_ptr = _entries(block.cell_ptr, cells)
        self.places: dict[Extent, NDArray[np.int64]] = {
            "items": items,
            "cells": cells,
            "labels": labels,
        }
        self._block = Block(
            item_ptr,
            block.cell_category[cells],
            cell_ptr,
            block.annotator[labels],
            block.known[items],
        )
        self._data = data

    @property
    def n_annotators(self) -> int:
        """The number of annotators, with or without labels of these items."""
        return self._data.n_annotators

    @property
    def n_labels(self) -> int:
        """The number of labels of these items."""
        return len(self._block.annotator)

    def length(self, per: Extent) -> int:
        """Return the number of items, cells or labels."""
        return len(self.places[per])

    def block(self) -> Block:
        """Return the arrays that kernels read."""
        return self._block

    def partition(self, n_partitions: int) -> NDArray[np.int64]:
        """Return the ``n_partitions + 1`` item bounds that divide the labels evenly."""
        starts = self._block.cell_ptr[self._block.item_ptr]
        bounds = np.searchsorted(starts, np.linspace(0, self.n_labels, n_partitions + 1))
        bounds[0], bounds[-1] = 0, self.length("items")
        return bounds

    def zeros(self, shape: int | tuple[int, ...]) -> NDArray[Any]:
        """Return an array of zeros in memory."""
        return np.zeros(shape)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Raise if that many bytes exceed the memory that may be used."""
        self._data.check_room(n_bytes, what)


def _entries(
    ptr: NDArray[np.int64], chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the entries ``ptr[i]:ptr[i + 1]`` of each chosen i, and where these begin among them."""
    first, n = ptr[chosen], ptr[chosen + 1] - ptr[chosen]
    new_ptr = np.append(0, np.cumsum(n))
    return np.repeat(first - new_ptr[:-1], n) + np.arange(new_ptr[-1]), new_ptr
