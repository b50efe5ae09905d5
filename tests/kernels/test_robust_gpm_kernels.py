"""RobustGPM's kernels against their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Twins

from annotruth.kernels import robust_gpm
from annotruth.observations import Labels, Scale

reference = Twins("robust_gpm")

BOTH = (robust_gpm, reference)
RANGES = pytest.mark.parametrize(("lo", "hi"), [(0, 40), (7, 23), (39, 40)])
CLASSES, STRATEGIES = 7, 5


@pytest.fixture(scope="module")
def problem(make_labels):
    """Labels, some known truths, and the prior, truth likelihood and confusion of the classes."""
    rng = np.random.default_rng(3)
    labels = make_labels(rng, n_items=40, n_annotators=11, n_categories=4)
    labels.known[::6] = 2
    confusion = rng.uniform(1e-12, 1.0, (11, 4, CLASSES))
    return labels, rng.dirichlet(np.ones(CLASSES)), rng.random((4, CLASSES)), confusion


def assert_same(results, rtol=1e-12):
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-13)


@RANGES
def test_start_equals_its_twin(problem, lo, hi):
    labels, *_ = problem
    results = []
    for kernels in BOTH:
        counts, classes = np.zeros((11, 4, 4)), np.zeros(4)
        kernels.start(labels.block(), lo, hi, counts, classes)
        results.append((counts, classes))
    assert_same(results)
    assert results[0][1].sum() == pytest.approx(hi - lo)


@RANGES
def test_step_equals_its_twin(problem, lo, hi):
    labels, *inputs = problem
    results = []
    for kernel in (robust_gpm.step, reference.step):
        sums = np.zeros((11, 4, CLASSES)), np.zeros(CLASSES), np.zeros(1)
        kernel(labels.block(), lo, hi, *inputs, *sums)
        results.append(sums)
    assert_same(results)
    counts, classes, _ = results[0]
    assert counts.sum() == pytest.approx(labels.labels_per_item[lo:hi].sum())
    assert classes.sum() == pytest.approx(hi - lo)


@RANGES
def test_leave_one_out_equals_its_twin(problem, lo, hi):
    labels, *inputs = problem
    rng = np.random.default_rng(4)
    tables = rng.random((2, 4, CLASSES, STRATEGIES))
    repeated = rng.integers(4, size=11)
    results = []
    for kernels in BOTH:
        log_likelihood = np.zeros((11, STRATEGIES))
        kernels.leave_one_out(labels.block(), lo, hi, *inputs, *tables, repeated, log_likelihood)
        results.append((log_likelihood,))
    assert_same(results, rtol=1e-11)


@RANGES
def test_count_agreements_equals_its_twin(problem, lo, hi):
    labels, *inputs = problem
    place = np.random.default_rng(6).permutation(11)
    results = []
    for kernels in BOTH:
        sums = [np.zeros((11, 11)) for _ in range(3)]
        kernels.count_agreements(labels.block(), lo, hi, *inputs, place, *sums)
        results.append(sums)
    assert_same(results)
    same, _, common = results[0]
    n_labels = labels.labels_per_item[lo:hi]
    assert common.sum() == (n_labels * (n_labels - 1) // 2).sum()
    per_cell = np.diff(labels.cell_ptr[labels.item_ptr[lo] : labels.item_ptr[hi] + 1])
    assert same.sum() == (per_cell * (per_cell - 1) // 2).sum()
    assert np.tril(common, -1).sum() == 0


def test_expected_agreements_are_those_of_independent_labels():
    labels = Labels.of([("a", "ann", 0), ("a", "bob", 1)])
    confusion = np.array([[[0.9, 0.2], [0.1, 0.8]], [[0.6, 0.3], [0.4, 0.7]]])
    prior, truth = np.array([0.5, 0.5]), np.ones((2, 2))
    sums = [np.zeros((2, 2)) for _ in range(3)]
    robust_gpm.count_agreements(labels.block(), 0, 1, prior, truth, confusion, np.arange(2), *sums)
    same, expected, common = (one[0, 1] for one in sums)
    weights = np.array([0.9 * 0.4, 0.2 * 0.7])  # P(0 by ann, 1 by bob | class)
    p_equal = np.array([0.9 * 0.6 + 0.1 * 0.4, 0.2 * 0.3 + 0.8 * 0.7])
    assert (same, common) == (0.0, 1.0)
    assert expected == pytest.approx(weights @ p_equal / weights.sum())


@RANGES
def test_posterior_equals_its_twin(problem, lo, hi):
    labels, *inputs = problem
    results = []
    for kernels in BOTH:
        posterior = np.full((40, CLASSES), 7.0)
        kernels.posterior(labels.block(), lo, hi, posterior, *inputs)
        results.append((posterior,))
    assert_same(results)
    ((posterior,), _) = results
    np.testing.assert_array_equal(np.delete(posterior, np.s_[lo:hi], axis=0), 7.0)
    np.testing.assert_allclose(posterior[lo:hi].sum(axis=1), 1.0)


@RANGES
def test_summarize_equals_its_twin(problem, lo, hi):
    labels, *inputs = problem
    rng = np.random.default_rng(5)
    opinions, values = rng.dirichlet(np.ones(4), CLASSES), rng.random(CLASSES)
    serious = rng.random((11, 4, CLASSES))
    results = []
    for kernels in BOTH:
        shapes = (40, 4), (40, 4), (40, 3), (labels.n_labels,)
        state = [np.full(shape, 7.0) for shape in shapes]
        log_likelihood = np.zeros(1)
        of_classes = opinions, opinions.argmax(axis=1), values, serious
        kernels.summarize(labels.block(), lo, hi, *state, *inputs, *of_classes, log_likelihood)
        results.append((*state, log_likelihood))
    assert_same(results)
    theta = results[0][0]
    np.testing.assert_array_equal(np.delete(theta, np.s_[lo:hi], axis=0), 7.0)
    known = np.flatnonzero(labels.known[lo:hi] >= 0) + lo
    np.testing.assert_array_equal(theta[known], np.eye(4)[[2] * len(known)])


@pytest.mark.parametrize("step", [robust_gpm.step, reference.step])
def test_thousands_of_labels_on_an_item_do_not_underflow(step):
    n = 2000
    labels = Labels.from_codes(
        np.zeros(n, dtype=np.int64),
        np.arange(n),
        np.repeat([0, 1], n // 2),
        items=["a"],
        annotators=list(range(n)),
        scale=Scale.ordinal([1, 2]),
    )
    confusion = np.empty((n, 2, 2))
    confusion[:, 0], confusion[:, 1] = [0.55, 0.05], [0.05, 0.55]
    sums = np.zeros((n, 2, 2)), np.zeros(2), np.zeros(1)
    step(labels.block(), 0, 1, np.array([0.8, 0.2]), np.eye(2), confusion, *sums)
    np.testing.assert_allclose(sums[1], [0.8, 0.2], rtol=1e-9)
    assert sums[2][0] == pytest.approx(1000 * np.log(0.55 * 0.05), rel=1e-12)


def test_the_only_label_of_an_item_is_evaluated_by_the_prior():
    labels = Labels.from_codes(
        np.array([0]),
        np.array([0]),
        np.array([1]),
        items=["a"],
        annotators=["s"],
        scale=Scale.ordinal([1, 2]),
    )
    prior, confusion = np.array([0.3, 0.7]), np.array([[[0.5, 0.5], [0.01, 0.9]]])
    table = np.array([[[0.2, 0.4], [0.6, 0.8]], [[0.1, 0.3], [0.5, 0.7]]])
    log_likelihood = np.zeros((1, 2))
    inputs = (prior, np.eye(2), confusion, table, table, np.array([0]))
    robust_gpm.leave_one_out(labels.block(), 0, 1, *inputs, log_likelihood)
    np.testing.assert_allclose(log_likelihood[0], np.log(prior @ table[1]), rtol=1e-13)
