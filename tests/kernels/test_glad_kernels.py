"""GLAD's compiled kernels against their plain twins, and both against the definition."""

import numpy as np
import pytest
from scipy.special import logsumexp

from annotruth.kernels import glad
from annotruth.kernels.reference import glad as reference


class Problem:
    """A block in the middle of a fit, with known truths and some abilities of zero."""

    def __init__(self, make_labels, seed, n_categories, wildness=1.0):
        rng = np.random.default_rng(seed)
        self.labels = make_labels(rng, n_items=40, n_annotators=9, n_categories=n_categories)
        self.labels.known[::7] = n_categories - 1
        self.n_categories = n_categories
        self.alpha = wildness * rng.normal(1.0, 1.5, size=9)
        self.alpha[:2] = 0.0, 1e-5
        self.b = rng.normal(1.0, wildness, size=40)

    def step(self, kernels, *, lo=0, hi=40, n_moves=1, shift=0.0, alpha=None):
        """Return the state and the sums after a step."""
        cells = self.labels.n_cells
        state = [self.b.copy(), np.full(cells, -1.0), np.full(cells, -1.0), np.full(40, -1.0)]
        sums = [np.zeros(9) for _ in range(5)] + [np.zeros(3)]
        alpha = self.alpha if alpha is None else alpha
        shared = (alpha, shift, n_moves, self.n_categories)
        kernels.step(self.labels.block(), lo, hi, *state, *shared, *sums)
        return state, sums

    def log_posterior_of_items(self, b):
        """Say f of every item, with the truth summed out over every class, by definition."""
        labels, k = self.labels, self.n_categories
        cell = labels.cell_of_label()
        item, category = labels.item_of_cell()[cell], labels.cell_category[cell]
        x = self.alpha[labels.annotator] * np.exp(b[item])
        right, wrong = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x) - np.log(k - 1)
        joint = np.zeros((labels.n_items, k))
        for z in range(k):
            np.add.at(joint[:, z], item, np.where(category == z, right, wrong))
        known = labels.known
        given = joint[np.arange(labels.n_items), known]
        summed = logsumexp(joint, axis=1) - np.log(k)
        return np.where(known >= 0, given, summed) - 0.5 * (b - 1.0) ** 2


@pytest.fixture(params=[(0, 2), (1, 4), (2, 5)], ids=lambda p: f"{p[1]} categories")
def problem(request, make_labels):
    return Problem(make_labels, *request.param)


@pytest.mark.parametrize("n_moves", [0, 1, 3])
@pytest.mark.parametrize(("lo", "hi"), [(0, 40), (5, 23)])
def test_step_equals_its_twin(problem, n_moves, lo, hi):
    options = {"lo": lo, "hi": hi, "n_moves": n_moves, "shift": 0.3}
    fast, plain = (problem.step(kernels, **options) for kernels in (glad, reference))
    for one, other in zip(fast[0] + fast[1], plain[0] + plain[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    outside = np.r_[0:lo, hi:40]
    np.testing.assert_array_equal(fast[0][0][outside], problem.b[outside])
    np.testing.assert_array_equal(fast[0][3][outside], -1.0)


def test_step_equals_its_twin_where_newton_must_be_halved(make_labels, monkeypatch):
    problem = Problem(make_labels, 161, 5)  # one of the few with such an item
    fast, plain = (problem.step(kernels)[0][0] for kernels in (glad, reference))
    np.testing.assert_allclose(fast, plain, rtol=1e-9)
    monkeypatch.setattr(reference, "MOST_HALVINGS", 1)
    unhalved = problem.step(reference)[0][0]
    assert (unhalved != plain).any()


def test_one_category_says_nothing(make_labels):
    problem = Problem(make_labels, 0, 1)
    for kernels in (glad, reference):
        state, sums = problem.step(kernels)
        np.testing.assert_array_equal(state[0], problem.b)
        np.testing.assert_array_equal(state[2], 1.0)
        assert not any(total.any() for total in sums)
        right = np.zeros(9)
        kernels.right(problem.labels.block(), 0, 40, problem.b, problem.alpha, 1, right)
        np.testing.assert_array_equal(right, problem.labels.labels_per_annotator)


@pytest.mark.parametrize(("lo", "hi"), [(0, 40), (5, 23)])
def test_start_and_right_equal_their_twins(problem, lo, hi):
    block, results = problem.labels.block(), []
    for kernels in (glad, reference):
        b, right = problem.b.copy(), np.zeros(9)
        kernels.right(block, lo, hi, b, problem.alpha, problem.n_categories, right)
        kernels.start(block, lo, hi, b)
        results.append((b, right))
    for fast, plain in zip(*results, strict=True):
        np.testing.assert_allclose(fast, plain, rtol=1e-12)
    assert (results[0][0][lo:hi] == 1.0).all()
    assert (results[0][0][hi:] != 1.0).all()


def test_the_log_likelihood_sums_over_every_truth(problem):
    _, sums = problem.step(glad, n_moves=0)
    prior = -0.5 * (problem.b - 1.0) ** 2
    expected = problem.log_posterior_of_items(problem.b) - prior
    np.testing.assert_allclose(sums[5][0], expected.sum(), rtol=1e-12)
    np.testing.assert_allclose(sums[5][1:], [(problem.b - 1).sum(), -2 * prior.sum()], rtol=1e-12)


def test_the_slope_is_that_of_the_log_likelihood(problem):
    """By Fisher's identity EM's slope at its start is the slope of the log-likelihood."""
    _, sums = problem.step(glad, n_moves=0)
    for s in range(9):
        nudge = np.zeros(9)
        nudge[s] = 1e-5
        up, down = (
            problem.step(glad, n_moves=0, alpha=problem.alpha + sign * nudge)[1][5][0]
            for sign in (1, -1)
        )
        assert sums[0][s] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-5)


def test_what_is_missing_flattens_the_log_likelihood(problem):
    """Its curvature in one ability is EM's less what the unknown truth takes away."""
    _, (_, curvature, _, _, missing, _) = problem.step(glad, n_moves=0)
    for s in range(9):
        nudge = np.zeros(9)
        nudge[s] = 1e-4
        up, down = (
            problem.step(glad, n_moves=0, alpha=problem.alpha + sign * nudge)[1][0][s]
            for sign in (1, -1)
        )
        assert missing[s] - curvature[s] == pytest.approx((up - down) / 2e-4, rel=1e-4, abs=1e-4)


def test_the_bounds_bound(problem):
    state, (_, curvature, bound, steepest, *_) = problem.step(glad, n_moves=0)
    assert (bound >= curvature).all()
    beta = np.exp(state[0])
    item = problem.labels.item_of_cell()[problem.labels.cell_of_label()]
    for s in range(9):
        assert steepest[s] ** 0.125 >= beta[item[problem.labels.annotator == s]].max()


@pytest.mark.parametrize("wildness", [1.0, 4.0])
@pytest.mark.parametrize("seed", range(5))
def test_no_item_falls_and_many_moves_reach_a_peak(make_labels, seed, wildness):
    problem = Problem(make_labels, seed, 3, wildness)
    before = problem.log_posterior_of_items(problem.b)
    once = problem.log_posterior_of_items(problem.step(glad, n_moves=1)[0][0])
    assert (once >= before - 1e-10 * (1 + np.abs(before))).all()
    peak = problem.step(glad, n_moves=60)[0][0]
    top = problem.log_posterior_of_items(peak)
    for nudge in (-1e-3, 1e-3):
        assert (problem.log_posterior_of_items(peak + nudge) <= top + 1e-12).all()
