"""Frames of task, worker, label."""

import numpy as np
import pandas as pd
import pytest

LABELS = ["cat", "dog", "eel"]


def make_frame(rows):
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


@pytest.fixture(scope="session")
def frame_of():
    """A frame of task, worker, label from rows."""
    return make_frame


@pytest.fixture(scope="session")
def frame():
    """Labels of seven workers, two of whom guess; no task has a tie; rows are in random order."""
    return without_ties(n_labels=3)


@pytest.fixture(scope="session")
def binary_frame():
    """As ``frame``, with two labels."""
    return without_ties(n_labels=2)


def without_ties(n_labels):
    rng = np.random.default_rng(5)
    rows = []
    for task in range(40):
        truth = task % n_labels
        is_right = rng.random(7) < [0.9, 0.85, 0.9, 0.8, 0.9, 0.34, 0.34]
        votes = np.where(is_right, truth, rng.integers(n_labels, size=7))
        top = np.sort(np.bincount(votes, minlength=n_labels))
        if top[-1] > top[-2]:
            rows += [(f"t{task:02d}", f"w{s}", LABELS[v]) for s, v in enumerate(votes)]
    return make_frame([rows[place] for place in rng.permutation(len(rows))])
