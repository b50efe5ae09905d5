"""RobustGPM's pass in single precision against its plain twin."""

import numpy as np
import pytest

from annotruth.kernels import robust_shapes
from annotruth.kernels.reference import robust_shapes as plain
from annotruth.labels import Labels, Scale

KINDS = 32


def swept(kernels, labels, begin, log_rates, lo=0, hi=None, kind=np.float64):
    counts = np.zeros(log_rates.shape, dtype=kind)
    sums = counts, np.zeros(KINDS), np.zeros(1)
    hi = labels.n_items if hi is None else hi
    kernels.step(labels.block(), lo, hi, begin, log_rates, *sums)
    return sums


@pytest.fixture(scope="module")
def problem(make_labels):
    rng = np.random.default_rng(3)
    # Up to 40 labels an item: few that are added up in singles, and more than that.
    labels = make_labels(rng, n_items=300, n_annotators=40, n_categories=4, density=0.35)
    labels.known[::6] = 2
    log_rates = np.log(rng.uniform(1e-12, 1.0, (40, 4, KINDS))).astype(np.float32)
    return labels, rng.normal(size=(5, KINDS)).astype(np.float32), log_rates


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("lo", "hi"), [(0, 300), (7, 139), (299, 300)])
def test_step_equals_its_twin(problem, lo, hi, kind):
    fast, slow = (
        swept(kernels, *problem, lo, hi, kinds)
        for kernels, kinds in ((robust_shapes, kind), (plain, np.float64))
    )
    np.testing.assert_allclose(fast[0], slow[0], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(fast[1], slow[1], rtol=2e-5, atol=1e-6)
    assert fast[2][0] == pytest.approx(slow[2][0], rel=3e-7)
    assert fast[0].dtype == kind
    assert fast[0].sum() == pytest.approx(problem[0].labels_per_item[lo:hi].sum(), rel=1e-6)


def test_support_equals_its_twin(problem):
    labels, *shared = problem
    rng = np.random.default_rng(4)
    tables = rng.uniform(1e-6, 1.0, (2, 4, KINDS, 2 * KINDS)).astype(np.float32)
    tables[..., 45:] = 0.0
    repeated = rng.integers(4, size=40)
    results = []
    for kernels in (robust_shapes, plain):
        support = np.zeros((40, 45))
        for lo, hi in ((0, 139), (139, 300)):
            kernels.support(labels.block(), lo, hi, *shared, *tables, repeated, support)
        results.append(support)
    np.testing.assert_allclose(*results, rtol=1e-5)


@pytest.mark.parametrize("kernels", [robust_shapes, plain])
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
    log_rates = np.full((n, 2, KINDS), -8.0, dtype=np.float32)
    log_rates[:, 0, :2], log_rates[:, 1, :2] = [-0.5, -3.0], [-3.0, -0.5]
    begin = np.log(np.full((3, KINDS), 0.2)).astype(np.float32)
    begin[2, 0] = np.log(0.8)
    _, kinds, total = swept(kernels, labels, begin, log_rates)
    np.testing.assert_allclose(kinds[:3], [0.8, 0.2, 0.0], rtol=1e-6, atol=1e-37)
    assert total[0] == pytest.approx(-1.75 * n, rel=1e-9)


def test_a_kind_that_cannot_be_has_no_posterior():
    labels = Labels.from_codes(
        np.array([0, 0]),
        np.array([0, 1]),
        np.array([1, 0]),
        items=["a"],
        annotators=["s", "t"],
        scale=Scale.ordinal([1, 2]),
    )
    log_rates = np.full((2, 2, KINDS), -60.0, dtype=np.float32)
    log_rates[:, :, 5] = 0.0
    counts, kinds, total = swept(
        robust_shapes, labels, np.zeros((3, KINDS), dtype=np.float32), log_rates
    )
    np.testing.assert_allclose(kinds, np.eye(KINDS)[5], atol=1e-37)
    np.testing.assert_allclose(counts[[0, 1], [1, 0], 5], 1.0)
    assert total[0] == pytest.approx(0.0, abs=1e-12)
