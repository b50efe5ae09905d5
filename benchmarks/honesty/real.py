"""Real labels of classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from annotruth.kernels.arrays import Codes
from annotruth.observations import Labels
from benchmarks.truth.sets import find_sets, load_set, why_left_out


def class_sets(data: Path) -> Iterator[tuple[str, Labels]]:
    """Return every set of classes under a folder, by name, as `benchmarks/truth` finds them."""
    for folder in find_sets(data, None):
        found = load_set(folder, "nominal")
        if why_left_out(found) is None:
            yield found.name, found.labels


def votes(labels: Labels) -> Codes:
    """Return how often each item was given each class, items x classes."""
    counts = np.zeros((labels.n_items, labels.n_categories), dtype=np.int64)
    np.add.at(counts, (labels.item_of_label(), labels.category_of_label()), 1)
    return counts
