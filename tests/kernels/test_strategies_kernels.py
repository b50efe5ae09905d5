"""What weights make of ways and counts of weights, against the plain twins."""

import numpy as np
import pytest

from annotruth.kernels import strategies as ways
from annotruth.kernels.reference import strategies as plain

PEOPLE, LABELS, KINDS, WAYS, FILLED = 30, 4, 32, 45, 64
RANGES = pytest.mark.parametrize(("lo", "hi"), [(0, 30), (7, 23), (29, 30)])
PRIORS = pytest.mark.parametrize("priors", [1, PEOPLE])


def single(values):
    return np.ascontiguousarray(values, dtype=np.float32)


@pytest.fixture
def crowd():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.full(WAYS, 0.05), PEOPLE)
    weights[3] = np.eye(WAYS)[7]
    tables = rng.normal(-2.0, 1.0, (2, WAYS, LABELS, KINDS))
    return rng, single(weights), single(tables), rng.integers(LABELS, size=PEOPLE)


def prior_of(rng, rows):
    prior = np.full((rows, FILLED), ways.NEVER)
    prior[:, :WAYS] = np.log(rng.dirichlet(np.ones(WAYS), rows))
    return single(prior)


@RANGES
@PRIORS
def test_mix_equals_its_twin(crowd, priors, lo, hi):
    rng, weights, tables, repeated = crowd
    prior = prior_of(rng, priors)
    results = []
    for kernels in (ways, plain):
        mixed, apart = np.full((PEOPLE, LABELS, KINDS), 7.0, np.float32), np.full(PEOPLE, 7.0)
        kernels.mix(lo, hi, weights, prior, *tables, repeated, mixed, apart)
        results.append((mixed, apart))
    for fast, slow in zip(*results, strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=2e-6)
        np.testing.assert_array_equal(np.delete(fast, np.s_[lo:hi], axis=0), 7.0)


@RANGES
@PRIORS
def test_weigh_equals_its_twin(crowd, priors, lo, hi):
    rng, _, _, repeated = crowd
    prior = prior_of(rng, priors)
    counts = single(rng.gamma(0.3, 1.0, (PEOPLE, LABELS, KINDS)))
    flat, beyond = counts.reshape(PEOPLE, -1), np.zeros((LABELS, KINDS, FILLED))
    tables = single(rng.normal(size=(LABELS * KINDS, FILLED)))
    beyond[:, :, :WAYS] = rng.normal(size=(LABELS, KINDS, WAYS))
    results = []
    for kernels in (ways, plain):
        weights = np.full((PEOPLE, WAYS), 7.0, np.float32)
        kernels.weigh(lo, hi, flat, tables, counts, prior, single(beyond), repeated, weights)
        results.append(weights)
    np.testing.assert_allclose(*results, rtol=5e-5, atol=1e-7)
    np.testing.assert_allclose(results[0][lo:hi].sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(np.delete(results[0], np.s_[lo:hi], axis=0), 7.0)
