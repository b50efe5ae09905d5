"""Operations on eight numbers at once, against NumPy."""

import numpy as np
import pytest

from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import SIMD8, simd8


@compiled
def each(function, values):
    """Call a function of one number for each of them."""
    return np.array([function(value) for value in values])


@compiled
def load_word(text, begin):
    return simd8.load_word(text, begin)


@compiled
def prefetch(values, place):
    simd8.prefetch(values, place)


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
    np.testing.assert_allclose(each(simd8.log, values), np.log(values), rtol=1e-15, atol=4e-16)


def test_log_of_one_is_zero_and_of_zero_finite():
    one, zero = each(simd8.log, np.array([1.0, 0.0]))
    assert one == 0.0
    assert np.isfinite(zero)


@pytest.mark.parametrize(("lo", "hi"), [(0, 49), (17, 44)])
def test_cells_are_filled_and_added_up(lo, hi):
    lengths = np.concatenate([np.arange(1, 40), [1, 1, 1, 8, 8, 9, 1, 16, 17, 1]])
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    some, n = lengths[lo:hi], ptr[hi] - ptr[lo]
    values = np.random.default_rng(0).random(len(lengths))
    out = np.full(n + SIMD8, np.nan)
    simd8.repeat_by_cell(ptr, lo, hi, values, out)
    np.testing.assert_array_equal(out[:n], np.repeat(values[lo:hi], some))

    # Codes as well as numbers.
    codes, repeated = np.arange(len(lengths), dtype=np.int32), np.empty(n + SIMD8, np.int32)
    simd8.repeat_by_cell(ptr, lo, hi, codes, repeated)
    np.testing.assert_array_equal(repeated[:n], np.repeat(codes[lo:hi], some))

    # What follows a cell is never part of its sum, even if it is not a number.
    labels = np.full(n + SIMD8, np.nan)
    labels[:n] = np.random.default_rng(1).random(n)
    sums = np.empty(len(some))
    simd8.sum_by_cell(ptr, lo, hi, labels, sums)
    np.testing.assert_allclose(sums, np.add.reduceat(labels[:n], ptr[lo:hi] - ptr[lo]), rtol=1e-14)


@pytest.mark.parametrize("begin", [0, 1, 5, 8])
def test_a_word_may_begin_anywhere(begin):
    text = np.frombuffer(b"somewhere between bytes", dtype=np.uint8)
    assert load_word(text, begin) == simd8.load_word.plain(text, begin)


def test_prefetching_past_the_end_changes_nothing():
    values = np.arange(3.0)
    for place in (0, 2, 1000):
        prefetch(values, place)
    np.testing.assert_array_equal(values, [0.0, 1.0, 2.0])
