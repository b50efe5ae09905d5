"""Distributions worked on in parts are those worked on whole."""

import numpy as np
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.models.distribution import Distribution


@pytest.fixture(scope="module")
def labels():
    crowd = simulate.crowd(n_items=31, n_annotators=9, n_categories=4, seed=2).labels
    items = crowd.items.to_pylist()
    return crowd.with_gold({items[0]: 1, items[12]: 4, items[30]: 2})


def of_cells(labels):
    return Distribution.of_cells(labels, np.random.default_rng(1).random(labels.n_cells))


def of_dense(labels):
    theta = np.random.default_rng(1).random((labels.n_items, 4))
    theta[::3, :2] = 0.0
    return Distribution.of_dense(theta)


@pytest.mark.parametrize("make", [of_cells, of_dense])
def test_parts_make_the_whole(labels, monkeypatch, make):
    whole = make(labels)
    answers = [whole.mode(), whole.confidence(), whole.entropy(), whole.expectation(np.arange(4.0))]
    monkeypatch.setattr("annotruth.models.distribution._ITEMS", 7)
    parts = make(labels)
    for name in ("ptr", "category", "probability"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    again = [parts.mode(), parts.confidence(), parts.entropy(), parts.expectation(np.arange(4.0))]
    for one, other in zip(answers, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("truth", ["class", "opinions"])
def test_columns_of_items_are_the_same_in_parts(labels, monkeypatch, truth):
    whole = at.fit(labels, "robust-gpm", truth=truth).item_table()
    monkeypatch.setattr("annotruth.models.robust_gpm.results._ITEMS", 7)
    assert at.fit(labels, "robust-gpm", truth=truth).item_table().equals(whole)
