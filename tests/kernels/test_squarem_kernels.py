"""The kernels of SQUAREM and their NumPy twins against the definition."""

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


@pytest.mark.parametrize("limit", [1.0, 3.0, 100.0])
def test_distributions_remain_distributions(problem, limit):
    labels, (x0, x1, x2) = problem
    new, new_x0 = x2.copy(), x0.copy()
    squarem.extrapolate_cells(labels.block(), 0, ITEMS, new, new_x0, x1.copy(), limit)
    np.testing.assert_array_equal(new, new_x0)
    assert (new[x2 > 0] > 0).all()  # nothing possible has become impossible
    totals = np.bincount(labels.item_of_cell(), new)
    np.testing.assert_allclose(totals[totals > 0], 1.0, rtol=1e-14)


def test_linear_convergence_is_extrapolated_to_its_limit(problem):
    labels, _ = problem
    end, first = np.full(ITEMS, 2.5), np.linspace(-1.0, 1.0, ITEMS)
    x0, x1, x2 = (end - first * rate for rate in (1.0, 0.9, 0.81))
    for kernels in (squarem, reference):
        state = [x2.copy(), x0.copy(), x1.copy()]
        kernels.extrapolate_items(labels.block(), 0, ITEMS, *state, 100.0, False)
        np.testing.assert_allclose(state[0], end, rtol=1e-12)
