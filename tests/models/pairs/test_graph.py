"""Counts, connected parts, and equations with the Laplacian of the graph of comparisons."""

import numpy as np
import pytest
from tests.models.pairs.crowds import comparisons

from annotruth.models.pairs import graph
from annotruth.models.pairs.graph import (
    LaplacianSystem,
    center_in_parts,
    connected_parts,
    count_pairs,
)


def random_votes(rng, n_items, n_votes):
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    annotator = rng.integers(7, size=n_votes)
    annotator[:7] = np.arange(7)
    return comparisons(left, right, rng.integers(3, size=n_votes), annotator, n_items=n_items)


@pytest.mark.parametrize("n_items", [5, 200])  # a table of all pairs, and sorted pairs
def test_votes_of_pairs_are_counted(n_items):
    votes = random_votes(np.random.default_rng(0), n_items, 1000)
    expected = np.zeros((n_items, n_items, 3))
    np.add.at(expected, (votes.left, votes.right, votes.outcome), 1)
    counts = count_pairs(votes)
    actual = np.zeros_like(expected)
    actual[counts.left, counts.right] = counts.votes
    np.testing.assert_array_equal(actual, expected)
    key = counts.left * n_items + counts.right
    assert (np.diff(key) > 0).all()
    assert (counts.votes.sum(axis=1) > 0).all()


def test_parts_are_numbered_by_size_then_by_their_first_item():
    left, right = np.array([5, 1, 3, 0]), np.array([6, 2, 4, 7])
    assert connected_parts(9, left, right).tolist() == [0, 1, 1, 2, 2, 3, 3, 0, 4]


def test_values_are_centered_within_parts():
    part = np.array([0, 1, 0, 1, 2])
    centered = center_in_parts(np.array([1.0, 5.0, 3.0, 7.0, 9.0]), part)
    assert centered.tolist() == [-1.0, -1.0, 1.0, 1.0, 0.0]
    both = center_in_parts(np.array([[1.0, 0.0], [3.0, 4.0]]), np.zeros(2, np.int64))
    assert both.tolist() == [[-1.0, -2.0], [1.0, 2.0]]


@pytest.mark.parametrize("max_dense", [3000, 0])  # Cholesky, and conjugate gradients
def test_equations_are_solved_and_the_inverse_is_right(max_dense, monkeypatch):
    monkeypatch.setattr(graph, "MAX_DENSE_ITEMS", max_dense)
    rng = np.random.default_rng(1)
    n, n_pairs, ridge = 40, 300, 0.7
    left = rng.integers(n - 3, size=n_pairs)
    right = (left + rng.integers(1, n - 3, size=n_pairs)) % (n - 3)
    left, right = np.r_[left, n - 3], np.r_[right, n - 2]  # a part of two, and one of one item
    weight = rng.uniform(0.1, 2.0, size=n_pairs + 1)
    matrix = ridge * np.eye(n)
    for i, j, w in zip(left, right, weight, strict=True):
        difference = np.eye(n)[i] - np.eye(n)[j]
        matrix += w * np.outer(difference, difference)
    part = connected_parts(n, left, right)
    system = LaplacianSystem(left, right, weight, ridge, part)

    values = rng.normal(size=(n, 2))
    expected = np.linalg.solve(matrix, values)
    np.testing.assert_allclose(system.solve(values), expected, atol=1e-8)
    np.testing.assert_allclose(system.solve(values[:, 0]), expected[:, 0], atol=1e-8)
    exact = center_in_parts(center_in_parts(np.linalg.inv(matrix), part).T, part)
    if max_dense:
        np.testing.assert_allclose(system.centered_inverse, exact, atol=1e-12)
        assert system.centered_trace() == pytest.approx(np.trace(exact))
    else:
        large = np.bincount(part)[part] > 2
        np.testing.assert_allclose(system.centered_inverse[large], np.diag(exact)[large], rtol=0.1)
        np.testing.assert_allclose(system.centered_inverse, np.diag(exact), rtol=0.4)
        assert system.centered_trace() == pytest.approx(np.trace(exact), rel=0.1)


def test_comparisons_from_codes_are_sorted_copies():
    codes = np.array([[0, 1, 2], [1, 2, 0], [1, 0, 1]], dtype=np.int32)
    votes = comparisons(codes[0], codes[1], np.array([0, 1, 2]), codes[2], n_items=3)
    codes[:] = 99
    assert votes.left.tolist() == [1, 0, 2]
    assert votes.outcome.tolist() == [1, 0, 2]
    assert votes.row.tolist() == [1, 0, 2]
    assert votes.annotator_ptr.tolist() == [0, 1, 3]
    assert votes.subset(votes.outcome > 0).left.tolist() == [1, 2]
