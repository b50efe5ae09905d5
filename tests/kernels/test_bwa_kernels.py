"""The kernels of the Bayesian weighted average against their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Twins

from annotruth.kernels import bwa

reference = Twins("bwa")

RANGES = pytest.mark.parametrize(("lo", "hi"), [(0, 40), (5, 23)])


@pytest.fixture(params=[0, 1, 2])
def problem(request, make_labels):
    rng = np.random.default_rng(request.param)
    labels = make_labels(rng, n_items=40, n_annotators=9, n_categories=4)
    labels.known[::7] = 2
    return labels, (rng.gamma(2.0, size=(9, 4)), rng.dirichlet(np.ones(4)), 1.5)


@RANGES
def test_step_equals_its_twin(problem, lo, hi):
    labels, inputs = problem
    results = []
    for kernels in (bwa, reference):
        sums = np.ones((9, 4)), np.ones((2, 4))
        kernels.step(labels.block(), lo, hi, *inputs, *sums)
        results.append(sums)
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


@RANGES
def test_distribution_equals_its_twin_and_leaves_other_items_alone(problem, lo, hi):
    labels, inputs = problem
    results = []
    for kernels in (bwa, reference):
        theta, right = np.full((40, 4), 7.0), np.ones(9)
        kernels.distribution(labels.block(), lo, hi, theta, *inputs, right)
        results.append((theta, right))
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
    theta = results[0][0]
    assert (np.delete(theta, np.arange(lo, hi), axis=0) == 7.0).all()
    np.testing.assert_allclose(theta[lo:hi].sum(axis=1), 1.0)
    known = np.flatnonzero(labels.known[lo:hi] >= 0) + lo
    assert (theta[known, 2] == 1.0).all()


def test_equal_weights_without_a_prior_give_the_observed_shares(problem):
    labels, _ = problem
    labels.known[:] = -1
    theta = np.zeros((40, 4))
    bwa.distribution(labels.block(), 0, 40, theta, np.ones((9, 4)), np.zeros(4), 0.0, np.zeros(9))
    for e in range(40):
        given = labels.category_of_label()[labels.item_of_label() == e]
        np.testing.assert_allclose(theta[e], np.bincount(given, minlength=4) / len(given))
