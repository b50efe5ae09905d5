"""Counts, connected parts, and equations with the Laplacian of the graph of comparisons."""

from contextlib import closing

import numpy as np
import pytest
from tests.models.pairs.crowds import comparisons

from annotruth.engines import get_engine
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


@pytest.mark.parametrize("engine", ["memory", "reference"])
@pytest.mark.parametrize("n_items", [5, 200])  # a table of all pairs, and sorted pairs
def test_votes_of_pairs_are_counted(n_items, engine):
    votes = random_votes(np.random.default_rng(0), n_items, 1000)
    expected = np.zeros((n_items, n_items, 3))
    np.add.at(expected, (votes.left, votes.right, votes.outcome), 1)
    with closing(get_engine(engine).open(votes)) as session:
        counts = count_pairs(votes, session)
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


def laplacian(n_items, left, right, weight, ridge):
    matrix = np.diag(np.broadcast_to(ridge, (n_items,)).astype(float))
    for i, j, w in zip(left, right, weight, strict=True):
        matrix[[i, j], [i, j]] += w
        matrix[i, j] -= w
        matrix[j, i] -= w
    return matrix


@pytest.mark.parametrize("max_dense", [3000, 0])  # Cholesky, and conjugate gradients
@pytest.mark.parametrize("per_item", [False, True])
def test_equations_are_solved_and_the_inverse_is_right(max_dense, per_item, monkeypatch):
    monkeypatch.setattr(graph, "MAX_DENSE_ITEMS", max_dense)
    rng = np.random.default_rng(1)
    n, n_pairs = 40, 300
    left = rng.integers(n, size=n_pairs)
    right = (left + rng.integers(1, n, size=n_pairs)) % n
    weight = rng.uniform(0.1, 2.0, size=n_pairs)
    ridge = rng.uniform(0.5, 2.0, size=n) if per_item else 0.7
    matrix = laplacian(n, left, right, weight, ridge)
    system = LaplacianSystem(n, left, right, weight, ridge)
    values = rng.normal(size=(n, 2))
    np.testing.assert_allclose(system.solve(values), np.linalg.solve(matrix, values), atol=1e-8)
    np.testing.assert_allclose(
        system.solve(values[:, 0]), np.linalg.solve(matrix, values[:, 0]), atol=1e-8
    )
    exact = np.linalg.inv(matrix)
    if max_dense:
        np.testing.assert_allclose(system.inverse, exact, atol=1e-12)
    else:
        np.testing.assert_allclose(system.inverse, np.diag(exact), rtol=0.1)
    assert system.inverse_trace() == pytest.approx(np.trace(exact), rel=1e-9 if max_dense else 0.02)
