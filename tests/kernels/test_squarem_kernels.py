"""The kernels of SQUAREM against their NumPy twins, and both against the definition."""

import numpy as np
import pytest
from tests.kernels.twins import Kernels, Twins

squarem, reference = Kernels("squarem"), Twins("squarem")

ITEMS = 30


@pytest.fixture(params=[0, 1, 2])
def problem(request, make_labels):
    """Labels and three points of distributions, some of them converged or at a bound."""
    rng = np.random.default_rng(request.param)
    labels = make_labels(rng, n_items=ITEMS, n_annotators=8, n_categories=4)
    item = labels.item_of_cell()
    points = []
    for _ in range(3):
        theta = rng.exponential(size=labels.n_cells) ** 3
        theta[::5] = 0.0
        points.append(theta / np.maximum(np.bincount(item, theta)[item], 1e-300))
    converged = item % 4 == 0
    points[1][converged] = points[2][converged] = points[0][converged]
    no_label = item == 7  # a known truth without labels
    for theta in points:
        theta[no_label] = 0.0
    return labels, points


@pytest.mark.parametrize(("lo", "hi"), [(0, ITEMS), (4, 19)])
@pytest.mark.parametrize("limit", [1.0, 3.0, 100.0])
def test_distributions_are_extrapolated_as_by_the_twin(problem, lo, hi, limit):
    labels, (x0, x1, x2) = problem
    results = []
    for kernels in (squarem, reference):
        state = [x2.copy(), x0.copy(), x1.copy()]
        kernels.extrapolate_cells(labels.block(), lo, hi, *state, limit)
        results.append(state)
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)
    new, new_x0, new_x1 = results[0]
    cells = slice(labels.item_ptr[lo], labels.item_ptr[hi])
    np.testing.assert_array_equal(new[cells], new_x0[cells])
    np.testing.assert_array_equal(new_x1, x1)
    others = np.ones(len(x2), dtype=bool)
    others[cells] = False
    for after, prior in zip(results[0], (x2, x0, x1), strict=True):
        np.testing.assert_array_equal(after[others], prior[others])
    assert (new[x2 > 0] > 0).all()  # nothing possible has become impossible
    totals = np.bincount(labels.item_of_cell(), new)[lo:hi]
    np.testing.assert_allclose(totals[totals > 0], 1.0, rtol=1e-14)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(("lo", "hi"), [(0, ITEMS), (4, 19)])
def test_numbers_are_extrapolated_as_by_the_twin(problem, lo, hi, bounded):
    labels, _ = problem
    rng = np.random.default_rng(5)
    x0, x1, x2 = rng.exponential(size=(3, ITEMS))
    x1[::6] = x2[::6] = x0[::6]
    results = []
    for kernels in (squarem, reference):
        state = [x2.copy(), x0.copy(), x1.copy()]
        kernels.extrapolate_items(labels.block(), lo, hi, *state, 10.0, bounded)
        results.append(state)
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)
    assert (results[0][0][lo:hi] != x2[lo:hi]).any()
    assert (results[0][0][lo:hi] >= 0).all() == bounded
    np.testing.assert_array_equal(results[0][0][hi:], x2[hi:])


def test_linear_convergence_is_extrapolated_to_its_limit(problem):
    labels, _ = problem
    end, first = np.full(ITEMS, 2.5), np.linspace(-1.0, 1.0, ITEMS)
    x0, x1, x2 = (end - first * rate for rate in (1.0, 0.9, 0.81))
    for kernels in (squarem, reference):
        state = [x2.copy(), x0.copy(), x1.copy()]
        kernels.extrapolate_items(labels.block(), 0, ITEMS, *state, 100.0, False)
        np.testing.assert_allclose(state[0], end, rtol=1e-12)


@pytest.mark.parametrize("per", ["cells", "items"])
def test_points_are_copied(problem, per):
    labels, (x2, *_) = problem
    x2 = x2 if per == "cells" else np.arange(float(ITEMS))
    copies = []
    for kernels in (squarem, reference):
        copies.append(np.full(len(x2), -1.0))
        getattr(kernels, f"copy_{per}")(labels.block(), 4, 19, x2, copies[-1])
    np.testing.assert_array_equal(*copies)
    inside = slice(4, 19) if per == "items" else slice(labels.item_ptr[4], labels.item_ptr[19])
    np.testing.assert_array_equal(copies[0][inside], x2[inside])
    assert (copies[0] == -1.0).sum() == len(x2) - len(x2[inside])
