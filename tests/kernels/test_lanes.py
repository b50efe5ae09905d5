"""Eight numbers at once, against NumPy."""

import numpy as np
import pytest

from annotruth.kernels import lanes
from annotruth.kernels.compiled import compiled


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


def test_a_number_is_its_fraction_by_a_power_of_two():
    values = numbers()
    exponent, fraction = each(lanes.exponent, values), each(lanes.fraction, values)
    np.testing.assert_array_equal(np.ldexp(fraction, exponent), values)
    assert fraction.min() >= 1.0
    assert fraction.max() < 2.0


@pytest.mark.parametrize("offset", [0, 17])
def test_cells_are_filled_and_added_up(offset):
    lengths = np.concatenate([np.arange(1, 40), [1, 1, 1, 8, 8, 9, 1, 16, 17, 1]])
    ptr = offset + np.concatenate([[0], np.cumsum(lengths)])
    n = lengths.sum()
    values = np.random.default_rng(0).random(len(lengths))
    out = np.full(n + lanes.EIGHT, np.nan)
    lanes.spread(ptr, values, out)
    np.testing.assert_array_equal(out[:n], np.repeat(values, lengths))

    # Codes as well as numbers.
    codes, spread = np.arange(len(lengths), dtype=np.int32), np.empty(n + lanes.EIGHT, np.int32)
    lanes.spread(ptr, codes, spread)
    np.testing.assert_array_equal(spread[:n], np.repeat(codes, lengths))

    # What stands after a cell is never part of its sum, even if it is not a number.
    labels = np.full(n + lanes.EIGHT, np.nan)
    labels[:n] = np.random.default_rng(1).random(n)
    sums = np.empty(len(lengths))
    lanes.sums(ptr, labels, sums)
    np.testing.assert_allclose(sums, np.add.reduceat(labels[:n], ptr[:-1] - offset), rtol=1e-14)
