"""Ord-bin's kernels against their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Twins

from annotruth.kernels import ordinal_binary
from annotruth.observations import Labels, Scale

reference = Twins("ordinal_binary")

RANGES = [(0, 40), (5, 23)]


@pytest.fixture(params=[(0, 5), (1, 2), (2, 1)], ids="{0[1]} categories".format)
def problem(request, make_labels):
    """Labels with known truths, and logs of random probabilities."""
    seed, n_categories = request.param
    rng = np.random.default_rng(seed)
    labels = make_labels(rng, n_items=40, n_annotators=9, n_categories=n_categories)
    labels.known[::7] = n_categories - 1
    labels.known[3::7] = 0
    yes = rng.random((2, 9, n_categories - 1))
    prevalence = rng.random(n_categories - 1)
    hit, false_alarm = yes
    probabilities = (hit, 1 - hit, false_alarm, 1 - false_alarm, prevalence, 1 - prevalence)
    return labels, [np.log(p) for p in probabilities]


def zero_sums(labels):
    n_thresholds = labels.n_categories - 1
    sums = [np.zeros((labels.n_annotators, n_thresholds)) for _ in range(4)]
    return [*sums, np.zeros(n_thresholds)]


def assert_same(results):
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("lo", "hi"), RANGES)
def test_start_equals_its_twin(problem, lo, hi):
    labels, _ = problem
    results = []
    for kernel in (ordinal_binary.start, reference.start):
        sums = zero_sums(labels)
        kernel(labels.block(), lo, hi, *sums)
        results.append(sums)
    assert_same(results)


@pytest.mark.parametrize(("lo", "hi"), RANGES)
def test_step_equals_its_twin(problem, lo, hi):
    labels, probabilities = problem
    results = []
    for kernel in (ordinal_binary.step, reference.step):
        sums = [*zero_sums(labels), np.zeros(labels.n_categories - 1)]
        kernel(labels.block(), lo, hi, *probabilities, *sums)
        results.append(sums)
    assert_same(results)


@pytest.mark.parametrize(("lo", "hi"), RANGES)
def test_distribution_equals_its_twin(problem, lo, hi):
    labels, probabilities = problem
    results = []
    for kernel in (ordinal_binary.distribution, reference.distribution):
        theta = np.full((40, labels.n_categories), -1.0)
        log_likelihood = np.zeros(labels.n_categories - 1)
        kernel(labels.block(), lo, hi, theta, *probabilities, log_likelihood)
        results.append((theta, log_likelihood))
    assert_same(results)
    theta = results[0][0]
    assert (theta[lo:hi] >= 0).all()
    np.testing.assert_allclose(theta[lo:hi].sum(axis=1), 1.0, atol=1e-14)
    assert (theta[np.r_[0:lo, hi:40]] == -1.0).all()


@pytest.mark.parametrize("kernels", [ordinal_binary, reference], ids=["compiled", "reference"])
def test_sums_are_added_to(problem, kernels):
    labels, probabilities = problem
    once, twice = ([*zero_sums(labels), np.zeros(labels.n_categories - 1)] for _ in range(2))
    kernels.step(labels.block(), 0, 40, *probabilities, *once)
    for _ in range(2):
        kernels.step(labels.block(), 0, 40, *probabilities, *twice)
    for actual, expected in zip(once, twice, strict=True):
        np.testing.assert_allclose(2 * actual, expected, rtol=1e-12)


@pytest.mark.parametrize("kernels", [ordinal_binary, reference], ids=["compiled", "reference"])
def test_impossible_labels_give_no_nan(kernels):
    labels = Labels.from_codes(
        np.array([0, 0, 1]),
        np.array([0, 1, 0]),
        np.array([1, 1, 0]),
        items=["a", "b"],
        annotators=["x", "y"],
        scale=Scale.ordinal([1, 2]),
    )
    # Labels above a threshold are impossible if the truth is below it, and the reverse.
    certain, never = np.zeros((2, 1)), np.full((2, 1), -np.inf)
    half = np.log([0.5])
    theta, log_likelihood = np.zeros((2, 2)), np.zeros(1)
    kernels.distribution(
        *(labels.block(), 0, 2, theta),
        *(certain, never, never, certain, half, half),
        log_likelihood,
    )
    np.testing.assert_array_equal(theta, [[0, 1], [1, 0]])
    np.testing.assert_allclose(log_likelihood, 2 * half)


@pytest.mark.parametrize("kernels", [ordinal_binary, reference], ids=["compiled", "reference"])
@pytest.mark.parametrize(
    ("above", "theta"),
    [
        ([0.9, 0.6, 0.1], [0.1, 0.3, 0.5, 0.1]),
        ([0.4, 0.8, 0.1], [0.4, 0.0, 0.5, 0.1]),  # the mean of 0.4 and 0.8 is 0.6
        ([0.3, 0.2, 0.7], [0.6, 0.0, 0.0, 0.4]),  # the mean of all three is 0.4
        ([0.8, 0.2, 0.6], [0.2, 0.4, 0.0, 0.4]),
    ],
)
def test_increasing_thresholds_are_replaced_by_their_mean(kernels, above, theta):
    labels = Labels.from_codes(
        np.array([0]),
        np.array([0]),
        np.array([0]),
        items=["a"],
        annotators=["x"],
        scale=Scale.ordinal([1, 2, 3, 4]),
    )
    # Labels without information leave mu at the prevalence.
    probabilities = np.full((4, 1, 3), np.log(0.5))
    prevalence = np.array(above)
    result = np.zeros((1, 4))
    kernels.distribution(
        *(labels.block(), 0, 1, result),
        *(*probabilities, np.log(prevalence), np.log1p(-prevalence)),
        np.zeros(3),
    )
    np.testing.assert_allclose(result[0], theta, atol=1e-15)
