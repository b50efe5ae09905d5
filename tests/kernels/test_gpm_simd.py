"""GPM's loops over vectors, against NumPy."""

import numba
import numpy as np
import pytest

from annotruth.kernels.simd import gpm as gpm_lanes
from annotruth.kernels.simd.simd8 import EIGHT


@numba.njit
def weigh(annotator, begin, first, last, people, far, share, behavior, mu, product, exponents):
    gpm_lanes.weigh(
        annotator, begin, first, last, people, far, share, behavior, mu, product, exponents
    )


@numba.njit
def renew(theta, first, last, mass, total, q, to):
    gpm_lanes.renew(theta, first, last, mass, total, q, to)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 3), (0, 8), (2, 45), (0, 256)])
def test_labels_are_weighed(first, last, far, learned):
    rng = np.random.default_rng(last)
    begin, n = 11, 300
    # Few annotators: eight labels often have one of them twice.
    annotator = rng.integers(5, size=n, dtype=np.int32)
    eps, before = rng.random(5), rng.random(5)
    share, behavior = rng.random(n), (rng.random(n) if learned else np.full(n, 0.7)) * 1e-9
    people, mu = np.column_stack([eps, before]), np.full(n, -1.0)
    product, exponents = np.ones(EIGHT), np.zeros(EIGHT, np.int64)
    pi = behavior if learned else behavior[0]
    weigh(
        annotator, np.uint64(begin), first, last, people, far, share, pi, mu, product, exponents
    )  # fmt: skip

    who = annotator[begin + first : begin + last]
    serious = eps[who] * share[first:last]
    p = serious + (1.0 - eps[who]) * behavior[first:last]
    expected = np.full(n, -1.0)
    expected[first:last] = serious / p
    np.testing.assert_array_equal(mu, expected)
    sums = before + np.bincount(who, expected[first:last], minlength=5)
    np.testing.assert_allclose(people, np.column_stack([eps, sums]), rtol=1e-14)
    assert product.min() >= 1.0
    assert product.max() < 2.0
    total = np.log(product).sum() + exponents.sum() * np.log(2.0)
    np.testing.assert_allclose(total, np.log(p).sum(), rtol=1e-14)


@pytest.mark.parametrize(("first", "last"), [(0, 0), (5, 6), (0, 8), (3, 60)])
def test_shares_are_renewed(first, last):
    rng = np.random.default_rng(last)
    n, cells = last - first, np.arange(last - first)
    theta, mass = rng.random(70), 10.0 ** rng.uniform(-300, 2, n)
    total = mass * 10.0 ** rng.uniform(0, 5, n)
    # Cells that nobody serious has chosen, and some of an infinite total, which count for nothing.
    mass[cells % 7 == 2] = 0.0
    total[cells % 7 == 4] = np.inf
    mass[cells % 7 == 4] = 0.0
    new, q = theta.copy(), np.repeat([1.0, 0.0, 1.0], EIGHT)
    for _ in range(2):
        renew(new, first, last, mass, total, q, EIGHT)

    expected, share = theta.copy(), mass / total
    expected[first:last] = share
    np.testing.assert_array_equal(new, expected)
    q_of_cells = mass * np.log(np.where(share > 0.0, share, 1.0))
    np.testing.assert_allclose(q[EIGHT : 2 * EIGHT].sum(), 2.0 * q_of_cells.sum(), rtol=1e-14)
    np.testing.assert_array_equal(np.delete(q, np.s_[EIGHT : 2 * EIGHT]), 1.0)


def test_each_log_is_exact_to_rounding():
    rng = np.random.default_rng(0)
    shares = np.concatenate([10.0 ** rng.uniform(-300, 0, 500), 1.0 - rng.uniform(0, 1e-3, 500)])
    one = np.ones(1)
    for share in shares:
        q = np.zeros(EIGHT)
        renew(np.empty(1), 0, 1, np.array([share]), one, q, 0)
        np.testing.assert_allclose(q[0] / share, np.log(share), rtol=1e-15, atol=4e-16)
