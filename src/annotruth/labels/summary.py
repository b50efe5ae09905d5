"""What is known about labels without the labels themselves: counts and the scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.labels.formatting import counted
from annotruth.labels.scale import Scale


class LabelSummary(ABC):
    """The scale and the counts of labels, wherever the labels are.

    Attributes
    ----------
    scale
        The categories, their order and their values.
    annotator_prior
        What is known about annotators from earlier work, annotators x 2: pseudo-counts of serious
        and of irregular labels. None where nothing is known.
    n_dropped
        The number of rows without a label.
    frame
        The caller's frame library, in which tables are returned.
    read_as
        The format that the file was read as; empty for a long table.
    """

    on_disk: ClassVar[bool] = False
    """Whether the labels are on disk, because they exceed the memory that may be used."""

    scale: Scale
    annotator_prior: NDArray[np.float64] | None
    n_dropped: int
    frame: str
    read_as: str

    @property
    @abstractmethod
    def n_items(self) -> int:
        """The number of items, each of which has a label."""

    @property
    @abstractmethod
    def n_annotators(self) -> int:
        """The number of annotators, each of whom gave a label."""

    @property
    @abstractmethod
    def n_labels(self) -> int:
        """The number of labels."""

    @property
    @abstractmethod
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """The number of labels of each annotator."""

    @property
    @abstractmethod
    def labels_per_category(self) -> NDArray[np.int64]:
        """How often each annotator chose each category, annotators x categories."""

    @property
    def n_categories(self) -> int:
        """The number of categories of the scale, whether chosen or not."""
        return len(self.scale)

    def describe(self) -> str:
        """Return the counts and the kind of scale as one line."""
        kind = self.scale.kind
        return (
            f"{counted(self.n_labels, 'label')} of {counted(self.n_items, 'item')} by "
            f"{counted(self.n_annotators, 'annotator')}, "
            f"{counted(self.n_categories, f'{kind} category', f'{kind} categories')}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"
