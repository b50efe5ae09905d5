"""`UnsortedVotes`: comparisons in any order, for what does not depend on who made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats, VoteBlock

if TYPE_CHECKING:
    from annotruth.labels.on_disk.disk import Disk


Code = TypeVar("Code", bound=np.integer[Any])
OutcomeCode = TypeVar("OutcomeCode", bound=np.integer[Any])

EXCHANGED = np.array([1, 0, 2])
"""The code of each outcome with sides exchanged."""


def in_order_of_codes(
    left: NDArray[Code], right: NDArray[Code], outcome: NDArray[OutcomeCode]
) -> tuple[NDArray[Code], NDArray[Code], NDArray[OutcomeCode]]:
    """Return pairs with the smaller code on the left, and the outcomes exchanged where needed.

    Examples
    --------
    >>> in_order_of_codes(np.array([0, 1]), np.array([1, 0]), np.array([0, 0]))[2].tolist()
    [0, 1]
    """
    swapped = left > right
    return (
        np.where(swapped, right, left),
        np.where(swapped, left, right),
        np.where(swapped, EXCHANGED.astype(outcome.dtype)[outcome], outcome),
    )


def covariates_in_order_of_codes(
    left: NDArray[Code], right: NDArray[Code], covariates: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Return covariates, which are differences, negated where `in_order_of_codes` exchanges sides.

    Examples
    --------
    >>> by_name = {"length": np.array([3.0, 3.0])}
    >>> covariates_in_order_of_codes(np.array([0, 1]), np.array([1, 0]), by_name)["length"].tolist()
    [3.0, -3.0]
    """
    swapped = left > right
    return {name: np.where(swapped, -values, values) for name, values in covariates.items()}


@dataclass(frozen=True, eq=False)
class UnsortedVotes:
    """Outcomes of comparisons, in any order.

    They are `annotruth.engines.PassData`, whose partitions are made of comparisons.

    Attributes
    ----------
    n_items
        The number of items.
    left, right, outcome
        As in `annotruth.comparisons.Comparisons`.
    disk
        Where they are, if they are not in memory.

    Examples
    --------
    >>> codes = np.array([0, 1], np.int32)
    >>> UnsortedVotes(2, codes, codes[::-1], np.zeros(2, np.int8)).partition(2).tolist()
    [0, 1, 2]
    """

    n_items: int
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]
    disk: Disk | None = None

    @property
    def n_annotators(self) -> int:
        """0, as annotators are alike."""
        return 0

    @property
    def n_labels(self) -> int:
        """The number of comparisons."""
        return len(self.outcome)

    def length(self, per: str) -> int:
        """Return the number of comparisons."""
        return len(self.outcome)

    def block(self) -> VoteBlock:
        """Return the arrays that kernels read."""
        return VoteBlock(self.left, self.right, self.outcome)

    def partition(self, n_partitions: int) -> NDArray[np.int64]:
        """Return the ``n_partitions + 1`` bounds that divide the comparisons evenly."""
        return np.linspace(0, len(self.outcome), n_partitions + 1).astype(np.int64)

    def zeros(self, shape: int | tuple[int, ...]) -> Floats:
        """Return an array of zeros in memory."""
        return np.zeros(shape)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and exceeds the memory that may be used."""
        if self.disk is not None:
            self.disk.check_room(n_bytes, what)
