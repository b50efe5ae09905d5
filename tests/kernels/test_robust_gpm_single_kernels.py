"""RobustGPM's kernels in single precision against their NumPy twins."""

import numpy as np
import pytest

from annotruth.kernels import robust_gpm_single
from annotruth.kernels.reference import robust_gpm_single as reference
from annotruth.kernels.shared import LOG_ZERO, pad
from annotruth.labels import Labels, Scale

BOTH = (robust_gpm_single, reference)
CLASSES = 32
ANNOTATORS, LABELS, STRATEGIES, PADDED = 30, 4, 45, 64
RANGES = pytest.mark.parametrize(("lo", "hi"), [(0, 30), (7, 23), (29, 30)])
PRIORS = pytest.mark.parametrize("n_priors", [1, ANNOTATORS])


def single(values):
    return np.ascontiguousarray(values, dtype=np.float32)


def run_step(kernels, labels, log_prior, log_confusion, lo=0, hi=None, dtype=np.float64):
    sums = np.zeros(log_confusion.shape, dtype=dtype), np.zeros(CLASSES), np.zeros(1)
    hi = labels.n_items if hi is None else hi
    kernels.step(labels.block(), lo, hi, log_prior, log_confusion, *sums)
    return sums


@pytest.fixture(scope="module")
def problem(make_labels):
    rng = np.random.default_rng(3)
    # Up to 40 labels per item: few enough to be added up in singles, and more than that.
    labels = make_labels(rng, n_items=300, n_annotators=40, n_categories=4, density=0.35)
    labels.known[::6] = 2
    log_confusion = single(np.log(rng.uniform(1e-12, 1.0, (40, 4, CLASSES))))
    return labels, single(rng.normal(size=(5, CLASSES))), log_confusion


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("lo", "hi"), [(0, 300), (7, 139), (299, 300)])
def test_step_equals_its_twin(problem, lo, hi, dtype):
    counts, classes, log_likelihood = run_step(robust_gpm_single, *problem, lo, hi, dtype)
    expected = run_step(reference, *problem, lo, hi)
    np.testing.assert_allclose(counts, expected[0], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(classes, expected[1], rtol=2e-5, atol=1e-6)
    assert log_likelihood[0] == pytest.approx(expected[2][0], rel=3e-7)
    assert counts.dtype == dtype
    assert counts.sum() == pytest.approx(problem[0].labels_per_item[lo:hi].sum(), rel=1e-6)


def test_leave_one_out_equals_its_twin(problem):
    labels, *inputs = problem
    rng = np.random.default_rng(4)
    tables = single(rng.uniform(1e-6, 1.0, (2, 4, CLASSES, PADDED)))
    tables[..., STRATEGIES:] = 0.0
    repeated = rng.integers(4, size=40)
    results = []
    for kernels in BOTH:
        log_likelihood = np.zeros((40, STRATEGIES))
        for lo, hi in ((0, 139), (139, 300)):
            kernels.leave_one_out(
                labels.block(), lo, hi, *inputs, *tables, repeated, log_likelihood
            )
        results.append(log_likelihood)
    np.testing.assert_allclose(*results, rtol=1e-5)


@pytest.mark.parametrize("kernels", BOTH)
def test_thousands_of_labels_on_an_item_keep_their_digits(kernels):
    n = 20_000
    labels = Labels.from_codes(
        np.zeros(n, dtype=np.int64),
        np.arange(n),
        np.repeat([0, 1], n // 2),
        items=["a"],
        annotators=list(range(n)),
        scale=Scale.ordinal([1, 2]),
    )
    log_confusion = np.full((n, 2, CLASSES), -8.0, dtype=np.float32)
    log_confusion[:, 0, :2], log_confusion[:, 1, :2] = [-0.5, -3.0], [-3.0, -0.5]
    log_prior = single(np.log(np.full((3, CLASSES), 0.2)))
    log_prior[2, 0] = np.log(0.8)
    _, classes, log_likelihood = run_step(kernels, labels, log_prior, log_confusion)
    np.testing.assert_allclose(classes[:3], [0.8, 0.2, 0.0], rtol=1e-6, atol=1e-37)
    assert log_likelihood[0] == pytest.approx(-1.75 * n, rel=1e-9)


def test_impossible_classes_have_no_posterior():
    labels = Labels.from_codes(
        np.array([0, 0]),
        np.array([0, 1]),
        np.array([1, 0]),
        items=["a"],
        annotators=["s", "t"],
        scale=Scale.ordinal([1, 2]),
    )
    log_confusion = np.full((2, 2, CLASSES), -60.0, dtype=np.float32)
    log_confusion[:, :, 5] = 0.0
    log_prior = np.zeros((3, CLASSES), dtype=np.float32)
    counts, classes, log_likelihood = run_step(robust_gpm_single, labels, log_prior, log_confusion)
    np.testing.assert_allclose(classes, np.eye(CLASSES)[5], atol=1e-37)
    np.testing.assert_allclose(counts[[0, 1], [1, 0], 5], 1.0)
    assert log_likelihood[0] == pytest.approx(0.0, abs=1e-12)


@pytest.fixture
def crowd():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.full(STRATEGIES, 0.05), ANNOTATORS)
    weights[3] = np.eye(STRATEGIES)[7]
    tables = rng.normal(-2.0, 1.0, (2, STRATEGIES, LABELS, CLASSES))
    return rng, single(weights), single(tables), rng.integers(LABELS, size=ANNOTATORS)


def make_log_prior(rng, n_rows):
    log_prior = np.log(rng.dirichlet(np.ones(STRATEGIES), n_rows))
    return pad(log_prior, LOG_ZERO)


@pytest.mark.parametrize(("width", "padded"), [(1, 32), (32, 32), (45, 64)])
def test_rows_are_padded_to_a_multiple_of_32(width, padded):
    values = np.random.default_rng(0).random((2, 3, width))
    result = pad(values, 7.0)
    assert result.shape == (2, 3, padded)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result[..., :width], single(values))
    np.testing.assert_array_equal(result[..., width:], 7.0)


@RANGES
@PRIORS
def test_mix_equals_its_twin(crowd, n_priors, lo, hi):
    rng, weights, tables, repeated = crowd
    log_prior = make_log_prior(rng, n_priors)
    results = []
    for kernels in BOTH:
        mixed = np.full((ANNOTATORS, LABELS, CLASSES), 7.0, np.float32)
        divergence = np.full(ANNOTATORS, 7.0)
        kernels.mix(lo, hi, weights, log_prior, *tables, repeated, mixed, divergence)
        results.append((mixed, divergence))
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6)
        np.testing.assert_array_equal(np.delete(actual, np.s_[lo:hi], axis=0), 7.0)


@RANGES
@PRIORS
def test_strategy_weights_equal_their_twin(crowd, n_priors, lo, hi):
    rng, _, _, repeated = crowd
    log_prior = make_log_prior(rng, n_priors)
    counts = single(rng.gamma(0.3, 1.0, (ANNOTATORS, LABELS, CLASSES)))
    flat = counts.reshape(ANNOTATORS, -1)
    plain = single(rng.normal(size=(LABELS * CLASSES, PADDED)))
    extra = pad(rng.normal(size=(LABELS, CLASSES, STRATEGIES)))
    results = []
    for kernels in BOTH:
        weights = np.full((ANNOTATORS, STRATEGIES), 7.0, np.float32)
        kernels.strategy_weights(lo, hi, flat, plain, counts, log_prior, extra, repeated, weights)
        results.append(weights)
    np.testing.assert_allclose(*results, rtol=5e-5, atol=1e-7)
    np.testing.assert_allclose(results[0][lo:hi].sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(np.delete(results[0], np.s_[lo:hi], axis=0), 7.0)
