"""Crowds with divided items, certain items and items with few labels."""

import numpy as np
import pytest

from annotruth.observations import Labels

N_CATEGORIES = 5


@pytest.fixture(scope="session")
def three_kinds_of_items():
    """A maker of labels: divided and certain items have 40 labels each, uncertain ones 3."""

    def make(seed, *, ordinal, n_each=15, n_annotators=60):
        rng = np.random.default_rng(seed)
        reliability = np.where(np.arange(n_annotators) % 7 == 0, 0.1, 0.9)
        rows = []

        def add(item, theta, n_labels):
            for s in rng.choice(n_annotators, n_labels, replace=False):
                serious = rng.random() < reliability[s]
                n = rng.choice(N_CATEGORIES, p=theta) if serious else rng.integers(N_CATEGORIES)
                rows.append((item, f"w{s}", int(n) + 1 if ordinal else "abcde"[n]))

        for i in range(n_each):
            half = np.zeros(N_CATEGORIES)
            if ordinal:
                half[[i % (N_CATEGORIES - 1), i % (N_CATEGORIES - 1) + 1]] = 0.5
            else:
                half[[i % N_CATEGORIES, (i + 2) % N_CATEGORIES]] = 0.5
            add(f"divided {i}", half, 40)
            one = np.full(N_CATEGORIES, 0.02)
            one[i % N_CATEGORIES] = 0.92
            add(f"certain {i}", one, 40)
            add(f"uncertain {i}", one, 3)
        return rows

    return make


@pytest.fixture(scope="session")
def classes():
    """A maker of labels with one right label of four, and that label."""

    def make(seed, *, per_item, items=200, people=30, reliability=0.8):
        rng = np.random.default_rng(seed)
        truth = rng.integers(4, size=items)
        annotator = np.argsort(rng.random((items, people)), axis=1)[:, :per_item]
        serious = rng.random(annotator.shape) < reliability
        label = np.where(serious, truth[:, np.newaxis], rng.integers(4, size=annotator.shape))
        item = np.repeat(np.arange(items), per_item)
        rows = zip(item.tolist(), annotator.ravel().tolist(), label.ravel().tolist(), strict=True)
        return Labels.of([(e, s, "abcd"[n]) for e, s, n in rows]), np.array(list("abcd"))[truth]

    return make
