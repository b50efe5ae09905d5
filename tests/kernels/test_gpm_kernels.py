"""The compiled kernels against their plain twins."""

import numpy as np
import pytest

from annotruth.kernels import gpm
from annotruth.kernels.reference import gpm as reference
from annotruth.labels import Labels, Scale


@pytest.fixture(params=[0, 1, 2])
def problem(request, make_labels):
    """A block in the middle of an EM run, with known truths, and random parameters."""
    rng = np.random.default_rng(request.param)
    labels = make_labels(rng, n_items=40, n_annotators=9, n_categories=4)
    labels.known[::7] = 2
    theta = np.zeros(labels.n_cells)
    reference.start(labels.block(), 0, labels.n_items, theta)
    theta *= rng.uniform(0.5, 1.0, size=len(theta))
    eps = rng.random(labels.n_annotators)
    pi = rng.dirichlet(np.ones(4), size=labels.n_annotators)
    return labels, theta, eps, pi


def test_start_equals_its_twin(problem):
    labels, *_ = problem
    fast, plain = np.zeros(labels.n_cells), np.zeros(labels.n_cells)
    gpm.start(labels.block(), 0, labels.n_items, fast)
    reference.start(labels.block(), 0, labels.n_items, plain)
    np.testing.assert_allclose(fast, plain, rtol=0, atol=1e-15)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(("lo", "hi"), [(0, 40), (5, 23)])
def test_step_equals_its_twin(problem, learned, lo, hi):
    labels, theta, eps, pi = problem
    if not learned:
        pi = np.zeros((0, 0))
    results = []
    for step in (gpm.step, reference.step):
        shares = theta.copy()
        serious, irregular, totals = np.zeros(len(eps)), np.zeros(pi.shape), np.zeros(2)
        step(labels.block(), lo, hi, shares, eps, pi, 0.25, serious, irregular, totals)
        results.append((shares, serious, irregular, totals))
    for fast, plain in zip(*results, strict=True):
        np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-13)
    untouched = np.r_[0 : labels.item_ptr[lo], labels.item_ptr[hi] : labels.n_cells]
    np.testing.assert_array_equal(results[0][0][untouched], theta[untouched])


@pytest.mark.parametrize("learned", [False, True])
def test_posterior_and_support_equal_their_twins(problem, learned):
    labels, theta, eps, pi = problem
    if not learned:
        pi = np.zeros((0, 0))
    block = labels.block()
    for fast_kernel, plain_kernel, shapes in [
        (gpm.posterior, reference.posterior, ((labels.n_labels,), None, (1,))),
        (gpm.support, reference.support, (None, (len(eps),), (len(eps),))),
    ]:
        results = []
        for kernel in (fast_kernel, plain_kernel):
            per_label, *sums = (None if s is None else np.zeros(s) for s in shapes)
            sums = [s for s in sums if s is not None]
            state = (theta,) if per_label is None else (theta, per_label)
            kernel(block, 0, labels.n_items, *state, eps, pi, 0.25, *sums)
            results.append([a for a in (per_label, *sums) if a is not None])
        for fast, plain in zip(*results, strict=True):
            np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-13)


def crowd_of(labels_per_item, n_annotators, n_categories, seed=0):
    """Items with these numbers of labels."""
    rng = np.random.default_rng(seed)
    n_labels = int(np.sum(labels_per_item))
    return Labels.from_codes(
        np.repeat(np.arange(len(labels_per_item)), labels_per_item),
        rng.integers(n_annotators, size=n_labels),
        rng.integers(n_categories, size=n_labels),
        items=range(len(labels_per_item)),
        annotators=range(n_annotators),
        scale=Scale.ordinal(list(range(n_categories))),
    )


# `step` takes some hundred labels at a time: items larger than that among small ones, at either end
# too, cells of many labels, items of many cells.
SIZES = {
    "one huge item": [5_000],
    "huge items among small ones": [3, 4_000, 1, 2, 1_025, 700, 1_024, 1, 6_000, 1],
    "many items of one label": [1] * 5_000,
    "ever larger items": list(range(1, 300)),
    "many items": [7] * 80_000,
}


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("n_categories", [1, 3, 40])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_step_equals_its_twin_whatever_the_sizes_of_items(sizes, n_categories, learned):
    labels = crowd_of(sizes, 50, n_categories)
    labels.known[::5] = 0
    rng = np.random.default_rng(1)
    theta = rng.random(labels.n_cells)
    eps, pi = rng.random(50), rng.random((50, n_categories))
    if not learned:
        pi = np.zeros((0, 0))
    results = []
    for step in (gpm.step, reference.step):
        shares, serious, irregular, totals = (
            theta.copy(), np.zeros(50), np.zeros(pi.shape), np.zeros(2)
        )  # fmt: skip
        step(labels.block(), 0, len(sizes), shares, eps, pi, 0.01, serious, irregular, totals)
        results.append((shares, serious, irregular, totals))
    for fast, plain in zip(*results, strict=True):
        np.testing.assert_allclose(fast, plain, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("learned", [False, True])
def test_step_equals_its_twin_where_annotators_leave_the_caches(learned):
    n_annotators = 70_000
    labels = crowd_of([3] * 4_000 + [2_000, 1], n_annotators, 2)
    rng = np.random.default_rng(2)
    eps, theta = rng.random(n_annotators), rng.random(labels.n_cells)
    pi = rng.random((n_annotators, 2)) if learned else np.zeros((0, 0))
    results = []
    for step in (gpm.step, reference.step):
        state, sums = theta.copy(), (np.zeros(n_annotators), np.zeros(pi.shape), np.zeros(2))
        step(labels.block(), 0, 4_002, state, eps, pi, 0.5, *sums)
        results.append((state, *sums))
    for fast, plain in zip(*results, strict=True):
        np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-13)


def test_the_hardly_serious_still_decide_theta(make_labels):
    labels = make_labels(np.random.default_rng(4), n_items=30, n_annotators=5, n_categories=3)
    results = []
    for step in (gpm.step, reference.step):
        theta = np.full(labels.n_cells, 0.1)
        none = np.zeros((0, 0))
        eps = np.array([1e-300, 2e-300, 3e-300, 1e-301, 0.0])
        step(labels.block(), 0, 30, theta, eps, none, 1 / 3, np.zeros(5), none, np.zeros(2))
        results.append(theta)
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_log_likelihood_survives_tiny_probabilities(make_labels):
    labels = make_labels(np.random.default_rng(3), n_items=200, n_annotators=5, n_categories=3)
    theta = np.full(labels.n_cells, 1e-250)
    eps, none = np.full(5, 1.0 - 1e-16), np.zeros((0, 0))
    totals, plain = np.zeros(2), np.zeros(2)
    args = (eps, none, 1e-190, np.zeros(5), none)
    gpm.step(labels.block(), 0, 200, theta.copy(), *args, totals)
    reference.step(labels.block(), 0, 200, theta.copy(), *args, plain)
    assert np.isfinite(totals[0])
    np.testing.assert_allclose(totals[0], plain[0], rtol=1e-12)


def test_an_item_nobody_serious_saw_keeps_the_observed_shares(make_labels):
    labels = make_labels(np.random.default_rng(4), n_items=30, n_annotators=5, n_categories=3)
    shares = np.zeros(labels.n_cells)
    gpm.start(labels.block(), 0, 30, shares)
    for step in (gpm.step, reference.step):
        theta = np.full(labels.n_cells, 0.1)
        none = np.zeros((0, 0))
        step(labels.block(), 0, 30, theta, np.zeros(5), none, 1 / 3, np.zeros(5), none, np.zeros(2))
        np.testing.assert_allclose(theta, shares, atol=1e-15)
