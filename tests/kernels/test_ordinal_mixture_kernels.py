"""The compiled kernels against their plain twins, and the table against SciPy's Gaussians."""

import numpy as np
import pytest
from scipy.stats import norm

from annotruth.kernels import ordinal_mixture as fast
from annotruth.kernels.reference import ordinal_mixture as plain
from annotruth.models.ordinal_mixture.lattice import lattice_of, shape_of

RANGES = [(0, 40), (5, 23)]


@pytest.fixture(params=[0, 1, 2])
def problem(request, make_labels):
    """Labels with known truths, a lattice, and parameters as in the middle of a run."""
    rng = np.random.default_rng(request.param)
    labels = make_labels(rng, n_items=40, n_annotators=30, n_categories=4)
    labels.known[::7] = 2
    on = lattice_of(np.array([1.0, 2.0, 4.0, 4.5]), 3.0, 3.0)
    level = rng.integers(1, len(on.noise) - 1, size=labels.n_annotators)
    levels = np.stack([level - 1, level, level + 1], axis=1)
    eps = rng.uniform(0.01, 0.99, size=labels.n_annotators)
    pi = rng.dirichlet(np.ones(4), size=labels.n_annotators)
    return labels, on, levels, eps, pi


def shared_of(problem, learned):
    _, on, levels, eps, pi = problem
    tables = (on.prior, on.shift, on.anchor, on.probability)
    return tables, (levels, eps, pi if learned else np.zeros((0, 0)), 0.25)


def compare(results, rtol=1e-12):
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-13)


@pytest.mark.parametrize("bold", [False, True])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(("lo", "hi"), RANGES)
def test_step_equals_its_twin(problem, learned, lo, hi, bold):
    labels, on, *_ = problem
    tables, shared = shared_of(problem, learned)
    people = labels.n_annotators
    logs = on.log_probability[: 0 if bold else None]
    results = []
    for room in (fast, plain):
        sums = [np.zeros(s) for s in (people, (people, 3), (people, 4) if learned else (0, 0), 1)]
        room.step(labels.block(), lo, hi, *tables, logs, *shared, *sums)
        results.append(sums)
    compare(results)
    assert results[0][0].sum() > 0


def test_bold_gains_are_those_of_one_who_moves_alone(problem):
    labels, on, levels, eps, pi = problem
    tables, _ = shared_of(problem, learned=True)
    block = labels.block(), 0, labels.n_items

    def sums_at(levels):
        sums = [np.zeros(s) for s in (len(eps), (len(eps), 3), pi.shape, 1)]
        fast.step(*block, *tables, on.log_probability[:0], levels, eps, pi, 0.25, *sums)
        return sums

    serious, gain, irregular, (here,) = sums_at(levels)
    usual = [np.zeros_like(total) for total in (serious, gain, irregular)]
    step_tables = (*tables, on.log_probability)
    fast.step(*block, *step_tables, levels, eps, pi, 0.25, *usual, np.zeros(1))
    compare(((serious, irregular), (usual[0], usual[2])))
    for s in range(5):
        for place in (0, 2):
            moved = levels.copy()
            moved[s, 1] = levels[s, place]
            assert gain[s, place] == pytest.approx(sums_at(moved)[3][0] - here, abs=1e-9)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(("lo", "hi"), RANGES)
def test_posterior_equals_its_twin(problem, learned, lo, hi):
    labels, on, *_ = problem
    tables, shared = shared_of(problem, learned)
    results = []
    for room in (fast, plain):
        shapes = ((labels.n_items, 3), labels.n_items, (labels.n_items, 4), labels.n_labels)
        state = [np.full(shape, -9.0) for shape in shapes]
        totals = np.zeros(1)
        typical = (on.nodes, on.edges, on.difficulty, 30)
        room.posterior(labels.block(), lo, hi, *state, *tables, *shared, *typical, totals)
        results.append([*state, totals])
    compare(results)
    score, difficulty, theta, p_serious, _ = results[0]
    outside = np.r_[0:lo, hi : labels.n_items]
    for written in (score, difficulty, theta):
        assert (written[outside] == -9.0).all()
        assert (written[lo:hi] != -9.0).all()
    first, last = labels.cell_ptr[labels.item_ptr[[lo, hi]]]
    assert (np.delete(p_serious, np.arange(first, last)) == -9.0).all()


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(("lo", "hi"), RANGES)
def test_judge_equals_its_twin(problem, learned, lo, hi):
    labels, on, *_ = problem
    tables, shared = shared_of(problem, learned)
    results = []
    for room in (fast, plain):
        weight = np.full((labels.n_items, *on.prior.shape), -9.0)
        room.judge(labels.block(), lo, hi, weight, *tables, *shared)
        results.append([weight])
    compare(results)
    ((weight,), _) = results
    assert (np.delete(weight, np.arange(lo, hi), axis=0) == -9.0).all()
    np.testing.assert_allclose(weight[lo:hi].sum(axis=(1, 2)), 1.0)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(("lo", "hi"), RANGES)
def test_predict_and_support_equal_their_twins(problem, learned, lo, hi):
    labels, on, levels, eps, _ = problem
    tables, shared = shared_of(problem, learned)
    tried = np.clip(levels[:, 1] + 9, 0, len(on.noise) - 1)
    results = []
    for room in (fast, plain):
        predicted = np.full(labels.n_labels, 0.5)
        room.predict(labels.block(), lo, hi, predicted, *tables, *shared, tried)
        value, slope = np.zeros(len(eps)), np.zeros(len(eps))
        room.support(labels.block(), lo, hi, predicted, *shared[1:], value, slope)
        results.append((predicted, value, slope))
    compare(results)
    assert (results[0][0] != 0.5).sum() == np.diff(labels.cell_ptr[labels.item_ptr[[lo, hi]]])


def test_support_is_the_likelihood_of_one_annotator(problem):
    """With all others as they are, it moves with eps as the log-likelihood of all labels does."""
    labels, on, levels, eps, pi = problem
    tables, shared = shared_of(problem, learned=True)
    block, everything = labels.block(), (0, labels.n_items)
    predicted = np.zeros(labels.n_labels)
    fast.predict(block, *everything, predicted, *tables, *shared, levels[:, 1])

    def whole(eps):
        sums = [np.zeros(s) for s in (len(eps), (len(eps), 3), pi.shape, 1)]
        fast.step(block, *everything, *tables, on.log_probability, levels, eps, pi, 0.25, *sums)
        return sums[-1][0]

    def alone(eps):
        value, slope = np.zeros(len(eps)), np.zeros(len(eps))
        fast.support(block, *everything, predicted, eps, pi, 0.25, value, slope)
        return value, slope

    for s in range(5):
        other = eps.copy()
        other[s] = 0.3
        assert alone(other)[0][s] - alone(eps)[0][s] == pytest.approx(
            whole(other) - whole(eps), abs=1e-9
        )
        near = eps.copy()
        near[s] += 1e-6
        slope = (alone(near)[0][s] - alone(eps)[0][s]) / 1e-6
        assert alone(eps)[1][s] == pytest.approx(slope, rel=1e-3, abs=1e-3)


def test_many_labels_an_item_do_not_underflow(make_labels):
    labels = make_labels(np.random.default_rng(3), n_items=2, n_annotators=3000, n_categories=5)
    on = lattice_of(np.arange(1.0, 6.0), 3.0, 3.0)
    levels = np.full((3000, 3), len(on.noise) - 1)
    sums = [np.zeros(s) for s in (3000, (3000, 3), (0, 0), 1)]
    tables = (on.prior, on.shift, on.anchor, on.probability, on.log_probability)
    shared = (levels, np.full(3000, 1 - 1e-9), np.zeros((0, 0)), 0.2)
    fast.step(labels.block(), 0, 2, *tables, *shared, *sums)
    assert all(np.isfinite(total).all() for total in sums)
    again = [np.zeros_like(total) for total in sums]
    plain.step(labels.block(), 0, 2, *tables, *shared, *again)
    compare((sums, again), rtol=1e-10)


@pytest.mark.parametrize(
    "values", [[1, 2, 3, 4, 5], [0, 1], [1, 2, 10], [3], list(range(101)), list(range(300))]
)
def test_the_table_holds_rounded_gaussians(values):
    values = np.array(values, dtype=float)
    on = lattice_of(values, 3.0, 2.0)
    assert on.probability.shape == shape_of(values)
    np.testing.assert_allclose(on.probability.sum(axis=1), 1.0, rtol=1e-12)
    bounds = np.r_[-np.inf, (values[1:] + values[:-1]) / 2, np.inf]
    for level in (0, len(on.noise) // 2, len(on.noise) - 1):
        for j in (0, 2, 4):
            sd = on.noise[level] * on.difficulty[j]
            expected = np.diff(norm.cdf(bounds[:, np.newaxis], on.nodes, sd), axis=0)
            found = on.probability[level + on.shift[j]]
            np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(on.log_probability), on.probability, rtol=1e-9)


def test_tails_keep_their_digits():
    on = lattice_of(np.arange(1.0, 6.0), 3.0, 3.0)
    row = len(on.noise) - 1 + on.shift[2]
    sd = on.noise[-1]
    low, high = (norm.sf((b - 1.0) / sd) for b in (1.5, 2.5))
    assert on.probability[row, 1, 0] == pytest.approx(low - high, rel=1e-9)
    low, high = (norm.cdf((b - 5.0) / sd) for b in (3.5, 4.5))
    assert on.probability[row, 3, -1] == pytest.approx(high - low, rel=1e-9)
    # The same from either end of the scale.
    mirrored = on.log_probability[:, ::-1, ::-1]
    np.testing.assert_allclose(on.log_probability, mirrored, rtol=1e-9, atol=1e-12)


def test_scores_are_uniform_and_categories_are_among_them():
    on = lattice_of(np.array([1.0, 2.0, 10.0]), 3.0, 3.0)
    np.testing.assert_array_equal(on.nodes[on.anchor], [1.0, 2.0, 10.0])
    assert on.prior.sum() == pytest.approx(1.0)
    below = on.prior.sum(axis=0) @ (on.nodes < 6.0)
    assert below == pytest.approx(5 / 9, abs=0.05)
    assert on.noise[on.usual] == pytest.approx(9 / 4, rel=0.03)
    assert on.log_prior.argmax() == on.usual
