"""Rows of 32 numbers at once, against NumPy."""

import numpy as np

from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import simd32 as wide


@compiled
def exponentials(values, top):
    return wide.exponentials(values, 0, top)


@compiled
def logarithms(values):
    wide.logarithms(values, 0)


@compiled
def largest(values):
    return wide.largest(values, 0)


def rows(values):
    return np.resize(np.asarray(values, dtype=np.float32), (-(-len(values) // 32), 32))


def test_exponentials_are_exact_to_rounding():
    for row in rows(np.concatenate([-np.logspace(-8, np.log10(86.9), 999), [0.0, -86.9]])):
        found = row + np.float32(3.0)
        wanted = np.exp(found.astype(np.float64) - 3.0)
        total = exponentials(found, np.float32(3.0))
        np.testing.assert_allclose(found, wanted, rtol=2e-7)
        np.testing.assert_allclose(total, wanted.sum(), rtol=1e-6)


def test_what_is_far_below_is_next_to_nothing():
    found = np.array([0.0, -88.0, -1e30, *[-200.0] * 29], dtype=np.float32)
    assert exponentials(found, np.float32(0.0)) == 1.0
    assert (found[1:] < 2e-38).all()
    assert (found[1:] >= 0.0).all()


def test_logarithms_are_exact_to_rounding():
    rng = np.random.default_rng(0)
    root = np.float32(np.sqrt(0.5))
    edges = [1.0, 2.0, root, np.nextafter(root, np.float32(0)), np.finfo(np.float32).tiny, 3e38]
    values = np.concatenate([10.0 ** rng.uniform(-37, 38, 2000), rng.random(2000), edges])
    for row in rows(values):
        found = row.copy()
        logarithms(found)
        np.testing.assert_allclose(found, np.log(row.astype(np.float64)), rtol=3e-7, atol=1e-7)


def test_the_largest_is_found_wherever_it_stands():
    for k in range(32):
        row = -np.arange(1, 33, dtype=np.float32)
        row[k] = -0.5
        assert largest(row) == np.float32(-0.5)
