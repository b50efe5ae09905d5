"""Partitions of the items, and what kernels are called with for the labels and arrays of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

Rows = Literal["items", "bounds", "labels"]
"""What an array has one row for; "bounds" is one per item and one more at the end."""

MAX_OFFSET = 1 << 32
"""Kernels count labels modulo this number."""


class CardPartition(NamedTuple):
    """Items that are processed at once, and their labels, counted from the first of the card.

    ``first_label`` is the first of these labels, counted from the first of all.

    Examples
    --------
    >>> CardPartition(slice(0, 2), slice(0, 5), first_label=0).rows("bounds")
    slice(0, 3, None)
    """

    items: slice
    labels: slice
    first_label: int

    def rows(self, per: Rows) -> slice:
        """Return the rows of an array that belong to the partition."""
        if per == "labels":
            return self.labels
        return slice(self.items.start, self.items.stop + (per == "bounds"))


class ArrayAccess(NamedTuple):
    """An argument of a kernel: the rows of an array that belong to the partition it processes.

    Examples
    --------
    >>> updates("theta")
    ArrayAccess(name='theta', reads=True, writes=True)
    """

    name: str
    reads: bool
    writes: bool


def reads(name: str) -> ArrayAccess:
    """Return the argument for an array that a kernel reads."""
    return ArrayAccess(name, reads=True, writes=False)


def writes(name: str) -> ArrayAccess:
    """Return the argument for an array that a kernel writes as a whole."""
    return ArrayAccess(name, reads=False, writes=True)


def updates(name: str) -> ArrayAccess:
    """Return the argument for an array that a kernel reads and writes."""
    return ArrayAccess(name, reads=True, writes=True)


def n_items(partition: CardPartition) -> np.int64:
    """Return the argument for the number of items."""
    return np.int64(partition.items.stop - partition.items.start)


def n_labels(partition: CardPartition) -> np.int64:
    """Return the argument for the number of labels."""
    return np.int64(partition.labels.stop - partition.labels.start)


def first_label(partition: CardPartition) -> np.uint32:
    """Return the argument for the number of the first label, modulo 2**32 as in ``begin``."""
    return np.uint32(partition.first_label % MAX_OFFSET)


BEGIN, LABEL, KNOWN = "begin", "label", "known"
"""The names of the arrays that every card has; that of known truths only if there are any."""

LABELS = (reads(BEGIN), reads(LABEL), reads(KNOWN), first_label, n_items)
"""The first arguments of kernels that process items: see ``common.cuh``."""

Launch: TypeAlias = Callable[[Sequence[Any]], None]
"""Starts a kernel with the values of its arguments."""
