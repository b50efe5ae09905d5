"""Crowds with items that are divided, settled and open."""

import numpy as np
import pytest

from annotruth.labels import Labels

N = 5


@pytest.fixture(scope="session")
def three_sorts():
    """A maker of labels: divided and settled items have 40 labels each, open ones 3."""

    def make(seed, *, ordinal, each=15, people=60):
        rng = np.random.default_rng(seed)
        reliability = np.where(np.arange(people) % 7 == 0, 0.1, 0.9)
        rows = []

        def add(item, theta, labels):
            for s in rng.choice(people, labels, replace=False):
                serious = rng.random() < reliability[s]
                n = rng.choice(N, p=theta) if serious else rng.integers(N)
                rows.append((item, f"w{s}", int(n) + 1 if ordinal else "abcde"[n]))

        for i in range(each):
            half = np.zeros(N)
            half[[i % (N - 1), i % (N - 1) + 1] if ordinal else [i % N, (i + 2) % N]] = 0.5
            add(f"divided {i}", half, 40)
            one = np.full(N, 0.02)
            one[i % N] = 0.92
            add(f"settled {i}", one, 40)
            add(f"open {i}", one, 3)
        return rows

    return make


@pytest.fixture(scope="session")
def classes():
    """A maker of labels with one right answer of four, and that answer."""

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
