"""The ordinal mixture's kernels against their NumPy twins, and its table against SciPy."""

import numpy as np
import pytest
from scipy.stats import norm
from tests.kernels.twins import Kernels, Twins, assert_same

from annotruth.models.scales.ordinal_steps import make_lattice, table_shape

ordinal_mixture, reference = Kernels("ordinal_mixture"), Twins("ordinal_mixture")


@pytest.fixture(params=[0, 1, 2])
def problem(request, make_labels):
    """Labels with known truths, a lattice, and parameters as in the middle of a run."""
    rng = np.random.default_rng(request.param)
    labels = make_labels(rng, n_items=40, n_annotators=30, n_categories=4)
    labels.known[::7] = 2
    lattice = make_lattice(np.array([1.0, 2.0, 4.0, 4.5]), 3.0, 3.0)
    level = rng.integers(1, len(lattice.noise) - 1, size=labels.n_annotators)
    levels = np.stack([level - 1, level, level + 1], axis=1)
    eps = rng.uniform(0.01, 0.99, size=labels.n_annotators)
    pi = rng.dirichlet(np.ones(4), size=labels.n_annotators)
    return labels, lattice, levels, eps, pi


def make_inputs(problem, learned):
    _, lattice, levels, eps, pi = problem
    tables = (lattice.prior, lattice.shift, lattice.anchor, lattice.probability)
    return tables, (levels, eps, pi if learned else np.zeros((0, 0)), 0.25)


def test_unsafeguarded_gains_are_those_of_one_annotator_who_moves(problem):
    labels, lattice, levels, eps, pi = problem
    tables, _ = make_inputs(problem, learned=True)
    block = labels.block(), 0, labels.n_items

    def sums_at(levels):
        sums = [np.zeros(s) for s in (len(eps), (len(eps), 3), pi.shape, 1)]
        ordinal_mixture.step(
            *block, *tables, lattice.log_probability[:0], levels, eps, pi, 0.25, *sums
        )
        return sums

    serious, gain, irregular, (before,) = sums_at(levels)
    expected = [np.zeros_like(total) for total in (serious, gain, irregular)]
    step_tables = (*tables, lattice.log_probability)
    ordinal_mixture.step(*block, *step_tables, levels, eps, pi, 0.25, *expected, np.zeros(1))
    assert_same(((serious, irregular), (expected[0], expected[2])))
    for s in range(5):
        for place in (0, 2):
            moved = levels.copy()
            moved[s, 1] = levels[s, place]
            assert gain[s, place] == pytest.approx(sums_at(moved)[3][0] - before, abs=1e-9)


def test_log_likelihood_by_annotator_is_that_of_one_annotator(problem):
    """It changes with one eps as the log-likelihood of all labels does."""
    labels, lattice, levels, eps, pi = problem
    tables, inputs = make_inputs(problem, learned=True)
    block, items = labels.block(), (0, labels.n_items)
    predicted = np.zeros(labels.n_labels)
    ordinal_mixture.leave_one_out(block, *items, predicted, *tables, *inputs, levels[:, 1].copy())

    def total_log_likelihood(eps):
        sums = [np.zeros(s) for s in (len(eps), (len(eps), 3), pi.shape, 1)]
        ordinal_mixture.step(
            block, *items, *tables, lattice.log_probability, levels, eps, pi, 0.25, *sums
        )
        return sums[-1][0]

    def annotator_log_likelihood(eps):
        value, slope = np.zeros(len(eps)), np.zeros(len(eps))
        ordinal_mixture.log_likelihood_by_annotator(
            block, *items, predicted, eps, pi, 0.25, value, slope
        )
        return value, slope

    for s in range(5):
        changed = eps.copy()
        changed[s] = 0.3
        (before, slope), (after, _) = map(annotator_log_likelihood, (eps, changed))
        expected = total_log_likelihood(changed) - total_log_likelihood(eps)
        assert after[s] - before[s] == pytest.approx(expected, abs=1e-9)
        changed[s] = eps[s] + 1e-6
        after, _ = annotator_log_likelihood(changed)
        assert slope[s] == pytest.approx((after[s] - before[s]) / 1e-6, rel=1e-3, abs=1e-3)


def test_many_labels_per_item_do_not_underflow(make_labels):
    labels = make_labels(np.random.default_rng(3), n_items=2, n_annotators=3000, n_categories=5)
    lattice = make_lattice(np.arange(1.0, 6.0), 3.0, 3.0)
    levels = np.full((3000, 3), len(lattice.noise) - 1)
    sums = [np.zeros(s) for s in (3000, (3000, 3), (0, 0), 1)]
    tables = (
        lattice.prior,
        lattice.shift,
        lattice.anchor,
        lattice.probability,
        lattice.log_probability,
    )
    inputs = (levels, np.full(3000, 1 - 1e-9), np.zeros((0, 0)), 0.2)
    ordinal_mixture.step(labels.block(), 0, 2, *tables, *inputs, *sums)
    assert all(np.isfinite(total).all() for total in sums)
    again = [np.zeros_like(total) for total in sums]
    reference.step(labels.block(), 0, 2, *tables, *inputs, *again)
    assert_same((sums, again), rtol=1e-10)


@pytest.mark.parametrize(
    "values", [[1, 2, 3, 4, 5], [0, 1], [1, 2, 10], [3], list(range(101)), list(range(300))]
)
def test_the_table_contains_rounded_gaussians(values):
    values = np.array(values, dtype=float)
    lattice = make_lattice(values, 3.0, 2.0)
    assert lattice.probability.shape == table_shape(values)
    np.testing.assert_allclose(lattice.probability.sum(axis=1), 1.0, rtol=1e-12)
    bounds = np.r_[-np.inf, (values[1:] + values[:-1]) / 2, np.inf]
    for level in (0, len(lattice.noise) // 2, len(lattice.noise) - 1):
        for j in (0, 2, 4):
            sd = lattice.noise[level] * lattice.difficulty[j]
            expected = np.diff(norm.cdf(bounds[:, np.newaxis], lattice.nodes, sd), axis=0)
            actual = lattice.probability[level + lattice.shift[j]]
            np.testing.assert_allclose(actual, expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(lattice.log_probability), lattice.probability, rtol=1e-9)


def test_tails_are_exact():
    lattice = make_lattice(np.arange(1.0, 6.0), 3.0, 3.0)
    row = len(lattice.noise) - 1 + lattice.shift[2]
    sd = lattice.noise[-1]
    low, high = (norm.sf((b - 1.0) / sd) for b in (1.5, 2.5))
    assert lattice.probability[row, 1, 0] == pytest.approx(low - high, rel=1e-9)
    low, high = (norm.cdf((b - 5.0) / sd) for b in (3.5, 4.5))
    assert lattice.probability[row, 3, -1] == pytest.approx(high - low, rel=1e-9)
    # The table is the same from both ends of the scale.
    mirrored = lattice.log_probability[:, ::-1, ::-1]
    np.testing.assert_allclose(lattice.log_probability, mirrored, rtol=1e-9, atol=1e-12)


def test_scores_are_uniform_and_categories_are_among_them():
    lattice = make_lattice(np.array([1.0, 2.0, 10.0]), 3.0, 3.0)
    np.testing.assert_array_equal(lattice.nodes[lattice.anchor], [1.0, 2.0, 10.0])
    assert lattice.prior.sum() == pytest.approx(1.0)
    below = lattice.prior.sum(axis=0) @ (lattice.nodes < 6.0)
    assert below == pytest.approx(5 / 9, abs=0.05)
    assert lattice.noise[lattice.usual] == pytest.approx(9 / 4, rel=0.03)
    assert lattice.log_prior.argmax() == lattice.usual
