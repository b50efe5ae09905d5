"""Operations on rows of 32 numbers at once, against NumPy."""

import numpy as np
import pytest

from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import SIMD32, simd32


@compiled
def exp_and_sum(values, top):
    return simd32.exp_and_sum(values, 0, top)


@compiled
def log_row(values):
    simd32.log_row(values, 0)


@compiled
def largest(values):
    return simd32.largest(values, 0)


@compiled
def scale_row(values, at, factor):
    simd32.scale_row(values, at, factor)


@compiled
def sum_rows(start, at, table, rows, first, last, sums, to):
    simd32.sum_rows(start, at, table, rows, first, last, sums, to)


@compiled
def add_weighted_rows(table, rows, offset, weights, n, sums, to):
    simd32.add_weighted_rows(table, rows, offset, weights, n, sums, to)


@compiled
def add_to_rows(table, rows, first, last, values, at):
    simd32.add_to_rows(table, rows, first, last, values, at)


def rows_of(values):
    return np.resize(np.asarray(values, dtype=np.float32), (-(-len(values) // SIMD32), SIMD32))


def random_rows(n, seed=0):
    return np.random.default_rng(seed).random(n * SIMD32, dtype=np.float32)


def test_exponentials_are_exact_to_rounding():
    for row in rows_of(np.concatenate([-np.logspace(-8, np.log10(86.9), 999), [0.0, -86.9]])):
        actual = row + np.float32(3.0)
        expected = np.exp(actual.astype(np.float64) - 3.0)
        total = exp_and_sum(actual, np.float32(3.0))
        np.testing.assert_allclose(actual, expected, rtol=2e-7)
        np.testing.assert_allclose(total, expected.sum(), rtol=1e-6)


def test_exponentials_of_very_low_numbers_are_almost_0():
    actual = np.array([0.0, -88.0, -1e30, *[-200.0] * 29], dtype=np.float32)
    assert exp_and_sum(actual, np.float32(0.0)) == 1.0
    assert (actual[1:] < 2e-38).all()
    assert (actual[1:] >= 0.0).all()


def test_logs_are_exact_to_rounding():
    rng = np.random.default_rng(0)
    root = np.float32(np.sqrt(0.5))
    edges = [1.0, 2.0, root, np.nextafter(root, np.float32(0)), np.finfo(np.float32).tiny, 3e38]
    values = np.concatenate([10.0 ** rng.uniform(-37, 38, 2000), rng.random(2000), edges])
    for row in rows_of(values):
        actual = row.copy()
        log_row(actual)
        np.testing.assert_allclose(actual, np.log(row.astype(np.float64)), rtol=3e-7, atol=1e-7)


def test_the_largest_is_found_at_any_place():
    for k in range(SIMD32):
        row = -np.arange(1, SIMD32 + 1, dtype=np.float32)
        row[k] = -0.5
        assert largest(row) == np.float32(-0.5)


def test_one_row_is_scaled():
    values = random_rows(3)
    expected = values.copy()
    scale_row(values, SIMD32, np.float32(0.3))
    simd32.scale_row.plain(expected, SIMD32, np.float32(0.3))
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(("first", "last"), [(0, 0), (1, 3), (0, 5)])
def test_rows_are_added_up(first, last):
    table, rows = random_rows(7), SIMD32 * np.array([4, 0, 6, 4, 2])
    sums, expected = random_rows(2, seed=1), random_rows(2, seed=1)
    arguments = (random_rows(2, seed=2), SIMD32, table, rows, first, last)
    sum_rows(*arguments, sums, SIMD32)
    simd32.sum_rows.plain(*arguments, expected, SIMD32)
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_weighted_rows_are_added(n):
    table, rows = random_rows(8), 2 * SIMD32 * np.array([3, 0, 1, 2])
    weights = np.random.default_rng(1).random(4, dtype=np.float32)
    sums, expected = random_rows(2, seed=1), random_rows(2, seed=1)
    add_weighted_rows(table, rows, SIMD32, weights, n, sums, SIMD32)
    simd32.add_weighted_rows.plain(table, rows, SIMD32, weights, n, expected, SIMD32)
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    np.testing.assert_array_equal(sums[:SIMD32], expected[:SIMD32])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_added_to_rows_of_either_precision(dtype):
    values, rows = random_rows(2), SIMD32 * np.array([4, 0, 4, 1])
    table = random_rows(5, seed=1).astype(dtype)
    expected = table.copy()
    add_to_rows(table, rows, 0, 3, values, SIMD32)
    simd32.add_to_rows.plain(expected, rows, 0, 3, values, SIMD32)
    np.testing.assert_array_equal(table, expected)
