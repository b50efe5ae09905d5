"""What fits into the words of the kernels: labels in 32 bits, and sums in 64.

Sums are integers, so that they do not depend on the order of their terms: a number is a multiple of
the inverse of a unit, which is a power of two.
"""

from __future__ import annotations

import numpy as np

from annotruth.labels import Labels

DENSE_CATEGORIES = 16
"""Up to so many categories, an item's distribution is in registers."""

DOUBLE_LABELS = 1 << 22
"""Up to so many labels, gpm and dawid-skene are in double precision."""

MAX_CATEGORIES = 1024
"""The shared memory of a block holds a distribution of so many categories."""

UNIT = 2.0**32
"""The unit of sums of probabilities."""

_WORD_BITS = 32  # of a label: the category, and the annotator

# Of robust-gpm: what a label takes while labels are sorted; an item's share in results; an entry of
# annotators' counts, of which there are eight tables at a time.
_BYTES_PER_LABEL, _BYTES_PER_SHARE, _BYTES_PER_COUNT = 64, 32, 64
_STATES_PER_CLASS, _SHAPES = 3, 32


def category_shift(n_categories: int) -> int:
    """Return how many bits of a label are left for the annotator."""
    return _WORD_BITS - max(n_categories - 1, DENSE_CATEGORIES - 1).bit_length()


def limit_exceeded(labels: Labels) -> str:
    """Return which limit of the engine labels exceed, in words; nothing if they exceed none."""
    n_categories, shift = labels.n_categories, category_shift(labels.n_categories)
    if n_categories > MAX_CATEGORIES:
        return f"{MAX_CATEGORIES:,} categories, not {n_categories:,}"
    if labels.n_annotators > 1 << shift:
        return (
            f"{1 << shift:,} annotators with {n_categories:,} categories, not "
            f"{labels.n_annotators:,}"
        )
    return ""


def resident_bytes(labels: Labels) -> int:
    """Return at most how much memory of a card a fit of robust-gpm takes, with all labels there."""
    n_categories = labels.n_categories
    n_states = max(_STATES_PER_CLASS * n_categories, _SHAPES)
    by_item = 4 * n_states + _BYTES_PER_SHARE * n_categories
    by_annotator = _BYTES_PER_COUNT * n_categories * n_states
    return (
        _BYTES_PER_LABEL * labels.n_labels
        + by_item * labels.n_items
        + by_annotator * labels.n_annotators
    )


def log_unit(n_labels: int) -> np.float32:
    """Return the unit of sums of logs; 64 bits hold them if every label has the least probability."""
    return _power_of_two(62 - 7, n_labels)


def slope_unit(n_labels: int) -> np.float32:
    """Return the unit of sums of slopes of this many labels, each below 2**20."""
    return _power_of_two(62 - 20, n_labels)


def _power_of_two(bits: int, n_labels: int) -> np.float32:
    return np.float32(2.0 ** min(bits - int(np.ceil(np.log2(n_labels + 1))), 32))
