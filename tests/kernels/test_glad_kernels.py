"""GLAD's kernels against their NumPy twins, and both against the definition."""

import numpy as np
import pytest
from scipy.special import logsumexp
from tests.kernels.twins import Kernels, Twins

glad, reference = Kernels("glad"), Twins("glad")


class Problem:
    """A block in the middle of a fit, with known truths and some abilities of zero."""

    def __init__(self, make_labels, seed, n_categories, spread=1.0):
        rng = np.random.default_rng(seed)
        self.labels = make_labels(rng, n_items=40, n_annotators=9, n_categories=n_categories)
        self.labels.known[::7] = n_categories - 1
        self.n_categories = n_categories
        self.alpha = spread * rng.normal(1.0, 1.5, size=9)
        self.alpha[:2] = 0.0, 1e-5
        self.b = rng.normal(1.0, spread, size=40)

    def step(self, kernels, *, lo=0, hi=40, n_steps=1, shift=0.0, alpha=None):
        """Return the state and the sums after a step."""
        cells = self.labels.n_cells
        state = [self.b.copy(), np.full(cells, -1.0), np.full(cells, -1.0), np.full(40, -1.0)]
        sums = [np.zeros(9) for _ in range(5)] + [np.zeros(3)]
        alpha = self.alpha if alpha is None else alpha
        inputs = (alpha, shift, n_steps, self.n_categories)
        kernels.step(self.labels.block(), lo, hi, *state, *inputs, *sums)
        return state, sums

    def item_log_posterior(self, b):
        """Return f of every item by its definition, the truth summed over all classes."""
        labels, k = self.labels, self.n_categories
        cell = labels.cell_of_label()
        item, category = labels.item_of_cell()[cell], labels.cell_category[cell]
        x = self.alpha[labels.annotator] * np.exp(b[item])
        correct, wrong = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x) - np.log(k - 1)
        joint = np.zeros((labels.n_items, k))
        for z in range(k):
            np.add.at(joint[:, z], item, np.where(category == z, correct, wrong))
        known = labels.known
        given = joint[np.arange(labels.n_items), known]
        summed = logsumexp(joint, axis=1) - np.log(k)
        return np.where(known >= 0, given, summed) - 0.5 * (b - 1.0) ** 2


@pytest.fixture(params=[(0, 2), (1, 4), (2, 5)], ids=lambda p: f"{p[1]} categories")
def problem(request, make_labels):
    return Problem(make_labels, *request.param)


def test_step_equals_its_twin_where_a_newton_step_is_halved(make_labels, monkeypatch):
    problem = Problem(make_labels, 161, 5)  # one of the few with such an item
    actual, expected = (problem.step(kernels)[0][0] for kernels in (glad, reference))
    np.testing.assert_allclose(actual, expected, rtol=1e-9)
    monkeypatch.setattr("annotruth.kernels.reference.glad.GLAD_MAX_HALVINGS", 1)
    unhalved = problem.step(reference)[0][0]
    assert (unhalved != expected).any()


def test_one_category_changes_nothing(make_labels):
    problem = Problem(make_labels, 0, 1)
    for kernels in (glad, reference):
        state, sums = problem.step(kernels)
        np.testing.assert_array_equal(state[0], problem.b)
        np.testing.assert_array_equal(state[2], 1.0)
        assert not any(total.any() for total in sums)
        correct = np.zeros(9)
        kernels.sum_correct(problem.labels.block(), 0, 40, problem.b, problem.alpha, 1, correct)
        np.testing.assert_array_equal(correct, problem.labels.labels_per_annotator)


def test_the_log_likelihood_sums_over_every_truth(problem):
    _, sums = problem.step(glad, n_steps=0)
    prior = -0.5 * (problem.b - 1.0) ** 2
    expected = problem.item_log_posterior(problem.b) - prior
    np.testing.assert_allclose(sums[5][0], expected.sum(), rtol=1e-12)
    np.testing.assert_allclose(sums[5][1:], [(problem.b - 1).sum(), -2 * prior.sum()], rtol=1e-12)


def test_the_slope_is_that_of_the_log_likelihood(problem):
    """By Fisher's identity EM's slope at its start is the slope of the log-likelihood."""
    _, sums = problem.step(glad, n_steps=0)
    for s in range(9):
        nudge = np.zeros(9)
        nudge[s] = 1e-5
        higher, lower = (
            problem.step(glad, n_steps=0, alpha=problem.alpha + sign * nudge)[1][5][0]
            for sign in (1, -1)
        )
        assert sums[0][s] == pytest.approx((higher - lower) / 2e-5, rel=1e-5, abs=1e-5)


def test_missing_reduces_the_curvature_of_the_log_likelihood(problem):
    """Its curvature in one ability is that of EM minus ``missing``."""
    _, (_, curvature, _, _, missing, _) = problem.step(glad, n_steps=0)
    for s in range(9):
        nudge = np.zeros(9)
        nudge[s] = 1e-4
        higher, lower = (
            problem.step(glad, n_steps=0, alpha=problem.alpha + sign * nudge)[1][0][s]
            for sign in (1, -1)
        )
        assert missing[s] - curvature[s] == pytest.approx(
            (higher - lower) / 2e-4, rel=1e-4, abs=1e-4
        )


def test_bounds_are_at_least_the_curvature(problem):
    state, (_, curvature, bound, steepest, *_) = problem.step(glad, n_steps=0)
    assert (bound >= curvature).all()
    beta = np.exp(state[0])
    item = problem.labels.item_of_cell()[problem.labels.cell_of_label()]
    for s in range(9):
        assert steepest[s] ** 0.125 >= beta[item[problem.labels.annotator == s]].max()


@pytest.mark.parametrize("spread", [1.0, 4.0])
@pytest.mark.parametrize("seed", range(5))
def test_no_item_decreases_and_many_steps_reach_a_maximum(make_labels, seed, spread):
    problem = Problem(make_labels, seed, 3, spread)
    before = problem.item_log_posterior(problem.b)
    once = problem.item_log_posterior(problem.step(glad, n_steps=1)[0][0])
    assert (once >= before - 1e-10 * (1 + np.abs(before))).all()
    maximum = problem.step(glad, n_steps=60)[0][0]
    top = problem.item_log_posterior(maximum)
    for nudge in (-1e-3, 1e-3):
        assert (problem.item_log_posterior(maximum + nudge) <= top + 1e-12).all()
