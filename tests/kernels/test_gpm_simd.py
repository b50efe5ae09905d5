"""The loops of GPM's step on vectors, against NumPy."""

import numpy as np
import pytest

from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import SIMD8, gpm


@compiled
def e_step(annotator, begin, first, last, by_annotator, far, theta, pi, mu, product, exponents):
    gpm.e_step(annotator, begin, first, last, by_annotator, far, theta, pi, mu, product, exponents)


@compiled
def m_step(theta, first, last, mass, total, q, to):
    gpm.m_step(theta, first, last, mass, total, q, to)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 3), (0, 8), (2, 45), (0, 256)])
def test_e_step_equals_numpy(first, last, far, learned):
    rng = np.random.default_rng(last)
    n = 300
    # Few annotators: eight labels often have the same one twice.
    annotator = rng.integers(5, size=n + 20, dtype=np.int32)
    before, theta = rng.random((5, 2)), rng.random(n)
    pi = 1e-9 * rng.random(n) if learned else 7e-10

    def run(step):
        by_annotator, mu = before.copy(), np.full(n, -1.0)
        product, exponents = np.ones(SIMD8), np.zeros(SIMD8, np.int64)
        begin = np.uint64(11)
        step(
            annotator, begin, first, last, by_annotator, far, theta, pi, mu, product, exponents
        )  # fmt: skip
        assert product.min() >= 1.0
        assert product.max() < 2.0
        log_likelihood = np.log(product).sum() + exponents.sum() * np.log(2.0)
        return by_annotator, mu, log_likelihood

    (by_annotator, mu, log_likelihood), expected = run(e_step), run(gpm.e_step.plain)
    np.testing.assert_array_equal(mu, expected[1])
    np.testing.assert_allclose(by_annotator, expected[0], rtol=1e-14)
    np.testing.assert_allclose(log_likelihood, expected[2], rtol=1e-14)


@pytest.mark.parametrize(("first", "last"), [(0, 0), (5, 6), (0, 8), (3, 60)])
def test_m_step_equals_numpy(first, last):
    rng = np.random.default_rng(last)
    n, cells = last - first, np.arange(last - first)
    theta, mass = rng.random(70), 10.0 ** rng.uniform(-300, 2, n)
    total = mass * 10.0 ** rng.uniform(0, 5, n)
    # Cells without mass, and some of an infinite total: neither adds to Q.
    mass[cells % 7 == 2] = 0.0
    total[cells % 7 == 4] = np.inf
    mass[cells % 7 == 4] = 0.0

    def run(step):
        new, q = theta.copy(), np.repeat([1.0, 0.0, 1.0], SIMD8)
        for _ in range(2):
            step(new, first, last, mass, total, q, SIMD8)
        np.testing.assert_array_equal(np.delete(q, np.s_[SIMD8 : 2 * SIMD8]), 1.0)
        return new, q.sum()

    (new, q), expected = run(m_step), run(gpm.m_step.plain)
    np.testing.assert_array_equal(new, expected[0])
    np.testing.assert_allclose(q, expected[1], rtol=1e-14)


def test_logs_of_q_are_exact_to_rounding():
    rng = np.random.default_rng(0)
    shares = np.concatenate([10.0 ** rng.uniform(-300, 0, 500), 1.0 - rng.uniform(0, 1e-3, 500)])
    one = np.ones(1)
    for share in shares:
        q = np.zeros(SIMD8)
        m_step(np.empty(1), 0, 1, np.array([share]), one, q, 0)
        np.testing.assert_allclose(q[0] / share, np.log(share), rtol=1e-15, atol=4e-16)
