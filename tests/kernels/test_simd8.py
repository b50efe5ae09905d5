"""Eight numbers at once, against NumPy."""

import numpy as np
import pytest

from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import simd8 as lanes


@compiled
def each(function, values):
    """Call a function of one number for each of them."""
    return np.array([function(value) for value in values])


def numbers():
    rng = np.random.default_rng(0)
    near_one = 1.0 + rng.uniform(-1e-3, 1e-3, size=1000)
    roots = np.sqrt([0.5, 2.0])
    edges = [1.0, 2.0, 0.5, np.finfo(float).tiny, np.finfo(float).max, 1 - 2**-53, 1 + 2**-52]
    return np.concatenate(
        [
            10.0 ** rng.uniform(-307, 307, size=10_000),
            rng.random(10_000),
            near_one,
            edges,
            roots,
            np.nextafter(roots, 0.0),
            np.nextafter(roots, 2.0),
        ]
    )


def test_log_is_exact_to_rounding():
    values = numbers()
    np.testing.assert_allclose(each(lanes.log, values), np.log(values), rtol=1e-15, atol=4e-16)


def test_log_of_one_is_zero_and_of_zero_finite():
    one, zero = each(lanes.log, np.array([1.0, 0.0]))
    assert one == 0.0
    assert np.isfinite(zero)


@pytest.mark.parametrize(("lo", "hi"), [(0, 49), (17, 44)])
def test_cells_are_filled_and_added_up(lo, hi):
    lengths = np.concatenate([np.arange(1, 40), [1, 1, 1, 8, 8, 9, 1, 16, 17, 1]])
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    some, n = lengths[lo:hi], ptr[hi] - ptr[lo]
    values = np.random.default_rng(0).random(len(lengths))
    out = np.full(n + lanes.EIGHT, np.nan)
    lanes.spread(ptr, lo, hi, values, out)
    np.testing.assert_array_equal(out[:n], np.repeat(values[lo:hi], some))

    # Codes as well as numbers.
    codes, spread = np.arange(len(lengths), dtype=np.int32), np.empty(n + lanes.EIGHT, np.int32)
    lanes.spread(ptr, lo, hi, codes, spread)
    np.testing.assert_array_equal(spread[:n], np.repeat(codes[lo:hi], some))

    # What stands after a cell is never part of its sum, even if it is not a number.
    labels = np.full(n + lanes.EIGHT, np.nan)
    labels[:n] = np.random.default_rng(1).random(n)
    sums = np.empty(len(some))
    lanes.sums(ptr, lo, hi, labels, sums)
    np.testing.assert_allclose(sums, np.add.reduceat(labels[:n], ptr[lo:hi] - ptr[lo]), rtol=1e-14)
