"""Distributions: partitions give the same results as all items at once, logarithms as SciPy's."""

import numpy as np
import pytest
from scipy import special

import annotruth as at
from annotruth import simulate
from annotruth.models.distribution import Distribution, entr, xlogy

SHARES = np.r_[0.0, 5e-324, 1e-300, 1e-9, np.linspace(0.0, 1.0, 101)]


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


def summaries(theta):
    return [theta.mode(), theta.confidence(), theta.entropy(), theta.expectation(np.arange(4.0))]


@pytest.mark.parametrize("make", [of_cells, of_dense])
def test_partitions_do_not_change_the_result(labels, monkeypatch, make):
    at_once = make(labels)
    expected = summaries(at_once)
    monkeypatch.setattr("annotruth.models.distribution._ITEMS", 7)
    partitioned = make(labels)
    for name in ("ptr", "category", "probability"):
        np.testing.assert_array_equal(getattr(partitioned, name), getattr(at_once, name))
    for actual, desired in zip(summaries(partitioned), expected, strict=True):
        np.testing.assert_array_equal(actual, desired)


@pytest.mark.parametrize("truth", ["class", "opinions"])
def test_partitions_do_not_change_the_items_table(labels, monkeypatch, truth):
    at_once = at.fit(labels, "robust-gpm", truth=truth).item_table()
    monkeypatch.setattr("annotruth.models.fits.make_fit._ITEMS_AT_ONCE", 7)
    assert at.fit(labels, "robust-gpm", truth=truth).item_table().equals(at_once)


def test_entr_equals_scipy():
    np.testing.assert_allclose(entr(SHARES), special.entr(SHARES), rtol=1e-15)
    assert not np.signbit(entr(np.zeros(2))).any()


def test_xlogy_equals_scipy():
    x, y = np.meshgrid(SHARES, SHARES)
    np.testing.assert_allclose(xlogy(x, y), special.xlogy(x, y), rtol=1e-15)


def test_rounding_does_not_decide_a_tie():
    third = 1.0 / 3.0
    rows = np.array([[third, third, third + 1e-16], [0.4 - 1e-13, 0.2, 0.4]])
    assert Distribution.of_dense(rows).mode().tolist() == [0, 2]
