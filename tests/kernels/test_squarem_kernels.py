"""The compiled kernels of leaps against their plain twins, and both against the definition."""

import numpy as np
import pytest

from annotruth.kernels import squarem as acceleration
from annotruth.kernels.reference import squarem as reference

ITEMS = 30


@pytest.fixture(params=[0, 1, 2])
def problem(request, make_labels):
    """Labels and three points of distributions, some of which have arrived or lie at a bound."""
    rng = np.random.default_rng(request.param)
    labels = make_labels(rng, n_items=ITEMS, n_annotators=8, n_categories=4)
    item = labels.item_of_cell()
    points = []
    for _ in range(3):
        theta = rng.exponential(size=labels.n_cells) ** 3
        theta[::5] = 0.0
        points.append(theta / np.maximum(np.bincount(item, theta)[item], 1e-300))
    arrived = item % 4 == 0
    points[1][arrived] = points[2][arrived] = points[0][arrived]
    nowhere = item == 7  # a known truth that nobody chose
    for theta in points:
        theta[nowhere] = 0.0
    return labels, points


@pytest.mark.parametrize(("lo", "hi"), [(0, ITEMS), (4, 19)])
@pytest.mark.parametrize("longest", [1.0, 3.0, 100.0])
def test_distributions_leap_as_the_twin_has_it(problem, lo, hi, longest):
    labels, (before, between, x) = problem
    left = []
    for kernels in (acceleration, reference):
        state = [x.copy(), before.copy(), between.copy()]
        kernels.leap_cells(labels.block(), lo, hi, *state, longest)
        left.append(state)
    for one, other in zip(*left, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
    new, again, untouched = left[0]
    cells = slice(labels.item_ptr[lo], labels.item_ptr[hi])
    np.testing.assert_array_equal(new[cells], again[cells])
    np.testing.assert_array_equal(untouched, between)
    others = np.ones(len(x), dtype=bool)
    others[cells] = False
    for after, prior in zip(left[0], (x, before, between), strict=True):
        np.testing.assert_array_equal(after[others], prior[others])
    assert (new[x > 0] > 0).all()  # nothing that could be has become impossible
    totals = np.bincount(labels.item_of_cell(), new)[lo:hi]
    np.testing.assert_allclose(totals[totals > 0], 1.0, rtol=1e-14)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(("lo", "hi"), [(0, ITEMS), (4, 19)])
def test_numbers_leap_as_the_twin_has_it(problem, lo, hi, bounded):
    labels, _ = problem
    rng = np.random.default_rng(5)
    before, between, x = rng.exponential(size=(3, ITEMS))
    between[::6] = x[::6] = before[::6]
    left = []
    for kernels in (acceleration, reference):
        state = [x.copy(), before.copy(), between.copy()]
        kernels.leap_items(labels.block(), lo, hi, *state, 10.0, bounded)
        left.append(state)
    for one, other in zip(*left, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
    assert (left[0][0][lo:hi] != x[lo:hi]).any()
    assert (left[0][0][lo:hi] >= 0).all() == bounded
    np.testing.assert_array_equal(left[0][0][hi:], x[hi:])


def test_steps_that_shrink_evenly_lead_to_where_they_end(problem):
    labels, _ = problem
    end, first = np.full(ITEMS, 2.5), np.linspace(-1.0, 1.0, ITEMS)
    before, between, x = (end - first * rate for rate in (1.0, 0.9, 0.81))
    for kernels in (acceleration, reference):
        state = [x.copy(), before.copy(), between.copy()]
        kernels.leap_items(labels.block(), 0, ITEMS, *state, 100.0, False)
        np.testing.assert_allclose(state[0], end, rtol=1e-12)


@pytest.mark.parametrize("per", ["cells", "items"])
def test_points_are_kept(problem, per):
    labels, (x, *_) = problem
    x = x if per == "cells" else np.arange(float(ITEMS))
    kept = []
    for kernels in (acceleration, reference):
        kept.append(np.full(len(x), -1.0))
        getattr(kernels, f"keep_{per}")(labels.block(), 4, 19, x, kept[-1])
    np.testing.assert_array_equal(*kept)
    of = slice(4, 19) if per == "items" else slice(labels.item_ptr[4], labels.item_ptr[19])
    np.testing.assert_array_equal(kept[0][of], x[of])
    assert (kept[0] == -1.0).sum() == len(x) - len(x[of])
