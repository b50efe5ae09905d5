"""The kernels of the subject-bias model against their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Twins

from annotruth.kernels import subject_bias, subject_bias_posterior
from annotruth.kernels.shared import propose_variances

BOTH = (subject_bias, Twins("subject_bias"))
N_ITEMS, N_ANNOTATORS, N_GROUPS = 40, 9, 5
RANGES = pytest.mark.parametrize(("lo", "hi"), [(0, N_ITEMS), (5, 23)])


@pytest.fixture(params=[0, 1, 2])
def problem(request, make_labels):
    """A block in the middle of a fit, with known truths and some ambiguities at 0."""
    rng = np.random.default_rng(request.param)
    labels = make_labels(rng, n_items=N_ITEMS, n_annotators=N_ANNOTATORS, n_categories=5)
    labels.known[::7] = 2
    state = {
        "psi": rng.uniform(1, 5, N_ITEMS),
        "a2": rng.uniform(0, 1.5, N_ITEMS) * (rng.random(N_ITEMS) < 0.7),
        "precision": np.zeros(N_ITEMS),
    }
    b, v2 = rng.normal(0, 0.4, N_ANNOTATORS), rng.uniform(0.1, 1.5, N_ANNOTATORS)
    values = np.array([1.0, 2.0, 3.5, 4.0, 6.0])
    return labels.block(), state, values, b, v2


def assert_same(name, block, lo, hi, state, inputs, shapes, modules=BOTH):
    """Run kernel and twin on copies; what they write must be equal, and within ``lo:hi``."""
    results = []
    for module in modules:
        copies = [array.copy() for array in state]
        sums = [np.full(shape, 0.5) for shape in shapes]  # sums are added to, not written
        getattr(module, name)(block, lo, hi, *copies, *inputs, *sums)
        results.append((*copies, *sums))
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)
    for before, after in zip(state, results[0], strict=False):
        outside = np.r_[0:lo, hi:N_ITEMS]
        np.testing.assert_array_equal(before[outside], after[outside])
    return results[0]


@RANGES
def test_start_equals_its_twin(problem, lo, hi):
    block, state, values, *_ = problem
    arrays = (state["psi"], state["a2"])
    assert_same("start", block, lo, hi, arrays, (values, 0.5), [(N_ANNOTATORS, 2)])


@pytest.mark.parametrize("rounds", [0, 1, 3])
@RANGES
def test_step_equals_its_twin(problem, rounds, lo, hi):
    block, state, values, b, v2 = problem
    shapes = [(N_ANNOTATORS, 5), (2,)]
    psi, a2, _, _, (before, after) = assert_same(
        "step", block, lo, hi, state.values(), (values, b, v2, rounds), shapes
    )
    assert after > before
    known = np.arange(lo, hi)[block.known[lo:hi] >= 0]
    np.testing.assert_array_equal(psi[known], values[2])
    assert (a2 >= 0).all()
    moved = not np.array_equal(a2, state["a2"])
    assert moved == (rounds > 0)


@RANGES
def test_log_likelihood_by_annotator_equals_its_twin(problem, lo, hi):
    block, state, values, b, v2 = problem
    inputs = (values, b, np.stack([v2, 2 * v2, v2 / 3]))
    arrays = (state["psi"], state["a2"])
    assert_same("log_likelihood_by_annotator", block, lo, hi, arrays, inputs, [(3, N_ANNOTATORS)])


@RANGES
def test_shifting_the_level_equals_its_twin(problem, lo, hi):
    block, state, values, b, v2 = problem
    arrays = (state["psi"], state["a2"])
    psi, *_ = assert_same("shift_level", block, lo, hi, arrays, (values, b, v2, 0.3), [(2,)])
    moved = np.flatnonzero(psi != state["psi"])
    np.testing.assert_array_equal(moved, np.arange(lo, hi)[block.known[lo:hi] < 0])


@RANGES
def test_groups_equal_their_twins(problem, lo, hi):
    block, state, values, b, v2 = problem
    rng = np.random.default_rng(9)
    group, group_a2 = rng.integers(N_GROUPS, size=N_ITEMS), rng.random(N_GROUPS)
    psi, a2 = state["psi"], state["a2"]
    inputs = (values, b, v2)
    assert_same("set_ambiguity", block, lo, hi, (a2, group), (group_a2,), [])
    assert_same("moments_by_group", block, lo, hi, (psi, a2, group), inputs, [(N_GROUPS, 4)])
    inputs = (*inputs, np.stack([group_a2, 2 * group_a2]))
    assert_same("log_likelihood_by_group", block, lo, hi, (psi, group), inputs, [(2, N_GROUPS)])


def test_the_safe_variance_never_decreases_the_likelihood():
    rng = np.random.default_rng(4)
    gains = []
    for _ in range(3000):
        n = int(rng.integers(1, 12))
        x, floor = 10 ** rng.uniform(-4, 2), 10 ** rng.uniform(-5, 0)
        x = max(x, floor)
        other = 10 ** rng.uniform(-5, 2, n) * (rng.random(n) < 0.7)
        r = rng.normal(size=n) * 10 ** rng.uniform(-3, 2)
        w = 1 / (x + other)
        safe, scoring = propose_variances(x, n, w.sum(), (w**2).sum(), ((w * r) ** 2).sum(), floor)

        def value(x, other=other, r=r):
            return -0.5 * (np.log(x + other) + r**2 / (x + other)).sum()

        assert min(safe, scoring) >= floor
        assert value(safe) >= value(x) - 1e-12 * (1 + abs(value(x)))
        gains.append(value(scoring) - value(safe))
    # Neither is always better: both are needed.
    assert np.mean(np.array(gains) > 0.1) > 0.1
    assert np.mean(np.array(gains) < -0.1) > 0.01


def test_scoring_is_exact_if_the_rest_of_the_variance_is_zero():
    r = np.array([0.3, -1.2, 0.8, 2.0])
    x = 0.7
    _, scoring = propose_variances(x, 4, 4 / x, 4 / x**2, (r**2).sum() / x**2, 0.0)
    assert scoring == pytest.approx((r**2).mean(), rel=1e-14)


POSTERIOR = (subject_bias_posterior, Twins("subject_bias_posterior"))
LEVELS = pytest.mark.parametrize("levels", [[0.0], [0.0, 0.3, 2.0]])
COUPLED = pytest.mark.parametrize("coupled", [True, False])


@LEVELS
@COUPLED
@RANGES
def test_posterior_step_equals_its_twin(problem, levels, coupled, lo, hi):
    block, state, values, b, v2 = problem
    log_prior = np.log(np.full(len(levels), 1 / len(levels)))
    log_hyper = np.stack([log_prior, log_prior - np.arange(len(levels))])
    variance, v2_levels = 0.9 * v2, np.array([0.1, 0.5, 2.5])
    inputs = (values, b, v2, variance, np.array(levels), log_prior, v2_levels, log_hyper)
    n = N_ANNOTATORS if coupled else 0
    shapes = [(N_ANNOTATORS, 3), (N_ANNOTATORS, 3), (N_ANNOTATORS, 2), (2,), (n, n)]
    arrays = (state["a2"],)
    assert_same("step", block, lo, hi, arrays, inputs, shapes, POSTERIOR)


@LEVELS
@COUPLED
@RANGES
def test_score_moments_equal_their_twin(problem, levels, coupled, lo, hi):
    block, state, values, b, v2 = problem
    rng = np.random.default_rng(0)
    root = rng.normal(size=(N_ANNOTATORS, N_ANNOTATORS))
    covariance = 0.01 * root @ root.T if coupled else np.empty((0, 0))
    moments = rng.uniform(0.1, 1, (N_ANNOTATORS, 3))
    log_prior = np.log(np.full(len(levels), 1 / len(levels)))
    arrays = (state["a2"], *(np.zeros(N_ITEMS) for _ in range(3)))
    inputs = (values, b, 0.1 * v2, covariance, v2, moments, np.array(levels), log_prior)
    _, mean, variance, spread = assert_same(
        "score_moments", block, lo, hi, arrays, inputs, [], POSTERIOR
    )
    known = np.arange(lo, hi)[block.known[lo:hi] >= 0]
    np.testing.assert_array_equal(mean[known], values[2])
    unknown = np.arange(lo, hi)[block.known[lo:hi] < 0]
    assert (variance[unknown] > 0).all()
    assert (variance[known] == 0).all()
    assert (spread[unknown] > 0).all()
