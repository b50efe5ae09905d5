"""Real labels of classes: every folder with labels.csv and a truth.csv of the same classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from annotruth.errors import InputError
from annotruth.io.readers import read_labels, read_table
from annotruth.kernels.arrays import Codes
from annotruth.labels import Labels
from annotruth.labels.truth import match_truth

MOST_CLASSES = 60


def read_classes(folder: Path) -> Labels:
    """Return the labels of a folder as classes; of repeated labels the last one counts."""
    return read_labels(folder / "labels.csv", scale="nominal", duplicates="last")


def class_sets(data: Path) -> Iterator[tuple[str, Labels]]:
    """Return every set of classes under a folder, by name."""
    for path in sorted(data.glob("*/truth.csv")):
        if not (path.parent / "labels.csv").exists():
            continue
        labels = read_classes(path.parent)
        if labels.n_categories <= MOST_CLASSES and _truth_is_classes(path, labels):
            yield path.parent.name, labels


def _truth_is_classes(path: Path, labels: Labels) -> bool:
    try:
        match_truth(read_table(path), labels, role="truth").categories()
    except InputError:
        return False
    return True


def votes(labels: Labels) -> Codes:
    """Return how often each item was given each class, items x classes."""
    counts = np.zeros((labels.n_items, labels.n_categories), dtype=np.int64)
    np.add.at(counts, (labels.item_of_label(), labels.category_of_label()), 1)
    return counts
