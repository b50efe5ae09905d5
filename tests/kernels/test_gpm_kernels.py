"""GPM's kernels against their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Kernels, Twins, assert_same

from annotruth.observations import Labels, Scale

gpm, reference = Kernels("gpm"), Twins("gpm")


def make_crowd(labels_per_item, n_annotators, n_categories, seed=0):
    """Return labels with these numbers per item."""
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


# `step` processes some hundred labels at once: larger items among small ones and at both ends, cells of
# many labels, items of many cells.
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
def test_step_equals_its_twin_for_items_of_any_size(sizes, n_categories, learned):
    labels = make_crowd(sizes, 50, n_categories)
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
    assert_same(results, rtol=1e-11)


@pytest.mark.parametrize("eps", [[1e-300, 2e-300, 3e-300, 1e-301, 0.0], [0.0] * 5])
def test_annotators_who_are_hardly_ever_serious(make_labels, eps):
    """Tiny reliabilities determine theta; without serious labels it is the observed shares."""
    labels = make_labels(np.random.default_rng(4), n_items=30, n_annotators=5, n_categories=3)
    none, results = np.zeros((0, 0)), []
    for step in (gpm.step, reference.step):
        results.append(np.full(labels.n_cells, 0.1))
        inputs = np.array(eps), none, 1 / 3, np.zeros(5), none, np.zeros(2)
        step(labels.block(), 0, 30, results[-1], *inputs)
    np.testing.assert_allclose(*results, rtol=1e-12)
    shares = np.zeros(labels.n_cells)
    gpm.start(labels.block(), 0, 30, shares)
    assert np.allclose(results[0], shares, rtol=0.0, atol=1e-15) == (not any(eps))


def test_log_likelihood_of_tiny_probabilities_is_finite(make_labels):
    labels = make_labels(np.random.default_rng(3), n_items=200, n_annotators=5, n_categories=3)
    theta = np.full(labels.n_cells, 1e-250)
    eps, none = np.full(5, 1.0 - 1e-16), np.zeros((0, 0))
    totals, expected = np.zeros(2), np.zeros(2)
    args = (eps, none, 1e-190, np.zeros(5), none)
    gpm.step(labels.block(), 0, 200, theta.copy(), *args, totals)
    reference.step(labels.block(), 0, 200, theta.copy(), *args, expected)
    assert np.isfinite(totals[0])
    np.testing.assert_allclose(totals[0], expected[0], rtol=1e-12)
