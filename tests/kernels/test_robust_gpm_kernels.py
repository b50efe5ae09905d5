"""RobustGPM's kernels against their plain twins."""

import numpy as np
import pytest

from annotruth.kernels import robust_few, robust_gpm
from annotruth.kernels.reference import robust_gpm as plain
from annotruth.labels import Labels, Scale

BOTH = (robust_gpm, plain)
RANGES = pytest.mark.parametrize(("lo", "hi"), [(0, 40), (7, 23), (39, 40)])
KINDS, WAYS = 7, 5


@pytest.fixture(scope="module")
def problem(make_labels):
    rng = np.random.default_rng(3)
    labels = make_labels(rng, n_items=40, n_annotators=11, n_categories=4)
    labels.known[::6] = 2
    rates = rng.uniform(1e-12, 1.0, (11, 4, KINDS))
    return labels, rng.dirichlet(np.ones(KINDS)), rng.random((4, KINDS)), rates


def assert_same(results, rtol=1e-12):
    for fast, slow in zip(*results, strict=True):
        np.testing.assert_allclose(fast, slow, rtol=rtol, atol=1e-13)


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
@pytest.mark.parametrize("fast", [robust_gpm, robust_few])
def test_step_equals_its_twin(problem, fast, lo, hi):
    labels, *shared = problem
    results = []
    for kernels in (fast, plain):
        sums = np.zeros((11, 4, KINDS)), np.zeros(KINDS), np.zeros(1)
        kernels.step(labels.block(), lo, hi, *shared, *sums)
        results.append(sums)
    assert_same(results)
    counts, kinds, _ = results[0]
    assert counts.sum() == pytest.approx(labels.labels_per_item[lo:hi].sum())
    assert kinds.sum() == pytest.approx(hi - lo)


@RANGES
def test_support_equals_its_twin(problem, lo, hi):
    labels, *shared = problem
    rng = np.random.default_rng(4)
    tables = rng.random((2, 4, KINDS, WAYS))
    repeated = rng.integers(4, size=11)
    results = []
    for kernels in BOTH:
        support = np.zeros((11, WAYS))
        kernels.support(labels.block(), lo, hi, *shared, *tables, repeated, support)
        results.append((support,))
    assert_same(results, rtol=1e-11)


@RANGES
def test_judge_equals_its_twin(problem, lo, hi):
    labels, *shared = problem
    results = []
    for kernels in BOTH:
        posterior = np.full((40, KINDS), 7.0)
        kernels.judge(labels.block(), lo, hi, posterior, *shared)
        results.append((posterior,))
    assert_same(results)
    ((posterior,), _) = results
    np.testing.assert_array_equal(np.delete(posterior, np.s_[lo:hi], axis=0), 7.0)
    np.testing.assert_allclose(posterior[lo:hi].sum(axis=1), 1.0)


@RANGES
def test_read_out_equals_its_twin(problem, lo, hi):
    labels, *shared = problem
    rng = np.random.default_rng(5)
    opinions, values = rng.dirichlet(np.ones(4), KINDS), rng.random(KINDS)
    serious = rng.random((11, 4, KINDS))
    results = []
    for kernels in BOTH:
        shapes = (40, 4), (40, 4), (40, 3), (labels.n_labels,)
        state = [np.full(shape, 7.0) for shape in shapes]
        totals = np.zeros(1)
        told = opinions, opinions.argmax(axis=1), values, serious
        kernels.read_out(labels.block(), lo, hi, *state, *shared, *told, totals)
        results.append((*state, totals))
    assert_same(results)
    theta = results[0][0]
    np.testing.assert_array_equal(np.delete(theta, np.s_[lo:hi], axis=0), 7.0)
    known = np.flatnonzero(labels.known[lo:hi] >= 0) + lo
    np.testing.assert_array_equal(theta[known], np.eye(4)[[2] * len(known)])


@pytest.mark.parametrize("kernels", [*BOTH, robust_few])
def test_thousands_of_labels_on_an_item_do_not_underflow(kernels):
    n = 2000
    labels = Labels.from_codes(
        np.zeros(n, dtype=np.int64),
        np.arange(n),
        np.repeat([0, 1], n // 2),
        items=["a"],
        annotators=list(range(n)),
        scale=Scale.ordinal([1, 2]),
    )
    rates = np.empty((n, 2, 2))
    rates[:, 0], rates[:, 1] = [0.55, 0.05], [0.05, 0.55]
    sums = np.zeros((n, 2, 2)), np.zeros(2), np.zeros(1)
    kernels.step(labels.block(), 0, 1, np.array([0.8, 0.2]), np.eye(2), rates, *sums)
    np.testing.assert_allclose(sums[1], [0.8, 0.2], rtol=1e-9)
    assert sums[2][0] == pytest.approx(1000 * np.log(0.55 * 0.05), rel=1e-12)


def test_a_label_of_ones_own_is_left_out():
    # Alone on an item, an annotator is judged by the prior over kinds.
    labels = Labels.from_codes(
        np.array([0]),
        np.array([0]),
        np.array([1]),
        items=["a"],
        annotators=["s"],
        scale=Scale.ordinal([1, 2]),
    )
    prior, rates = np.array([0.3, 0.7]), np.array([[[0.5, 0.5], [0.01, 0.9]]])
    table = np.array([[[0.2, 0.4], [0.6, 0.8]], [[0.1, 0.3], [0.5, 0.7]]])
    support = np.zeros((1, 2))
    args = (prior, np.eye(2), rates, table, table, np.array([0]), support)
    robust_gpm.support(labels.block(), 0, 1, *args)
    np.testing.assert_allclose(support[0], np.log(prior @ table[1]), rtol=1e-13)
