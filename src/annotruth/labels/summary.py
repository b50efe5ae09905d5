"""What models know of labels without seeing one: how many there are of what, and their scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.labels.formatting import counted
from annotruth.labels.scale import Scale


class LabelSummary(ABC):
    """How many labels there are of what, wherever they are.

    Attributes
    ----------
    scale
        The categories, their order and their values.
    annotator_prior
        What is known of annotators from earlier work, annotators x 2: how many labels it counts
        for that were serious, and that were not. None where nothing is known of anybody.
    n_dropped
        How many rows had no label.
    frame
        The caller's frame library, in which tables go back.
    read_as
        What the file they came in was taken for; empty for a plain table.
    """

    on_disk: ClassVar[bool] = False
    """Whether there is more of them than memory may hold."""

    scale: Scale
    annotator_prior: NDArray[np.float64] | None
    n_dropped: int
    frame: str
    read_as: str

    @property
    @abstractmethod
    def n_items(self) -> int:
        """How many items have a label."""

    @property
    @abstractmethod
    def n_annotators(self) -> int:
        """How many people gave a label."""

    @property
    @abstractmethod
    def n_labels(self) -> int:
        """How many labels there are."""

    @property
    @abstractmethod
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """Count the labels of each annotator."""

    @property
    @abstractmethod
    def labels_per_category(self) -> NDArray[np.int64]:
        """Count how often each annotator chose each category, annotators x categories."""

    @property
    def n_categories(self) -> int:
        """How many categories the scale has, chosen or not."""
        return len(self.scale)

    def describe(self) -> str:
        """Say in words how many there are of what."""
        kind = self.scale.kind
        return (
            f"{counted(self.n_labels, 'label')} of {counted(self.n_items, 'item')} by "
            f"{counted(self.n_annotators, 'annotator')}, "
            f"{counted(self.n_categories, f'{kind} category', f'{kind} categories')}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"
