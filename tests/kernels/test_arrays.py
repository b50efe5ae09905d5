"""Helpers that work on slices of arrays on all cores."""

import numpy as np
import pytest

from annotruth.kernels.arrays import concatenate, map_slices, reduce_rows


def test_slices_are_mapped_in_order():
    numbers = np.arange(10)
    parts = map_slices(lambda part: numbers[part].sum(), 10, size=4)
    assert parts == [0 + 1 + 2 + 3, 4 + 5 + 6 + 7, 8 + 9]
    assert map_slices(lambda part: len(numbers[part]), 0) == [0]


def test_concatenate_equals_numpy():
    parts = [np.arange(6).reshape(3, 2), np.empty((0, 2), dtype=np.int64), np.ones((1, 2))]
    whole = concatenate(parts)
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert whole.dtype == np.float64


@pytest.mark.parametrize("n_columns", [1, 2, 5, 7, 8, 40])
def test_rows_are_reduced_as_numpy_does(n_columns):
    values = np.random.default_rng(n_columns).normal(size=(30, n_columns))
    for function in (np.add, np.maximum):
        result = reduce_rows(function, values)
        np.testing.assert_array_equal(result, function.reduce(values, axis=1))
        assert not np.shares_memory(result, values)
