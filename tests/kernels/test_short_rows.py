"""Rows of four to eight numbers, against NumPy."""

import numpy as np
import pytest

from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import short_rows

WIDTHS = pytest.mark.parametrize("width", range(short_rows.MIN_WIDTH, short_rows.MAX_WIDTH + 1))


@compiled
def multiply_short_rows(table, rows, first, last, width, begin, products, at):
    short_rows.multiply_short_rows(table, rows, first, last, width, begin, products, at)


@compiled
def add_to_short_rows(table, rows, first, last, width, values, at):
    short_rows.add_to_short_rows(table, rows, first, last, width, values, at)


@compiled
def sum_short_row(values, at, width):
    return short_rows.sum_short_row(values, at, width)


@compiled
def scale_short_row(values, at, width, factor, totals):
    short_rows.scale_short_row(values, at, width, factor, totals)


@compiled
def entries(table, rows, j, k, start):
    short_rows.set_row_start(rows, j, start)
    return short_rows.row_start(rows, j), short_rows.row_entry(table, rows, j, k)


def some_rows(width):
    """Return a table of ten rows, and where six of them begin, two the same."""
    table = np.random.default_rng(width).random(10 * width)
    return table, (width * np.array([3, 0, 9, 3, 1, 7])).view(np.float64)


def assert_same(kernel, *args):
    """Check that a function and its NumPy version return and write the same, and nothing else."""
    plain = [np.copy(each) if isinstance(each, np.ndarray) else each for each in args]
    expected = getattr(short_rows, kernel.__name__).plain(*plain)
    actual = kernel(*args)
    if expected is not None:
        assert actual == pytest.approx(expected, rel=1e-15)
    for each, other in zip(args, plain, strict=True):
        np.testing.assert_array_equal(each, other)


@WIDTHS
@pytest.mark.parametrize(("first", "last"), [(0, 0), (1, 4), (0, 6)])
def test_rows_are_multiplied_and_added_as_in_numpy(width, first, last):
    table, rows = some_rows(width)
    values = np.random.default_rng(last).random(3 * width)
    begin = np.linspace(1.0, 2.0, width)
    assert_same(multiply_short_rows, table, rows, first, last, width, begin, values, width)
    assert_same(add_to_short_rows, table, rows, first, last, width, values, width)


@WIDTHS
def test_a_row_is_added_up_and_scaled_as_in_numpy(width):
    values, totals = np.random.default_rng(width).random(20), np.ones(8)
    assert_same(sum_short_row, values, 3, width)
    assert_same(scale_short_row, values, 3, width, 0.3, totals)


def test_starts_and_entries_are_read_as_written():
    table, rows = some_rows(5)
    assert entries(table, rows, 2, 4, 35) == (35, table[39])
    assert rows.view(np.int64).tolist() == [15, 0, 35, 15, 5, 35]
